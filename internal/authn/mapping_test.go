package authn

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/plugin/pkg/authenticator/token/oidc"

	"github.com/fieldperm/fieldperm/internal/configfile"
	"github.com/fieldperm/fieldperm/test/issuer"
)

// listExpressions are mappings of claims to groups, with the groups that the KEP promises for the claims of the test. For those that
// k8s.io/apiserver refuses, the file is refused.
var listExpressions = []struct {
	expression string
	groups     []string
	refused    bool
}{
	{"claims.roles.split(',')", []string{"admin", "user"}, true},
	{"claims.roles.split(',').map(g, g)", []string{"admin", "user"}, false},
	{"claims.roles.split(',').filter(g, g != 'user')", []string{"admin"}, false},
	{"claims.roles.split(',').map(g, g != 'user', 'x:' + g)", []string{"x:admin"}, false},
	{"claims.roles.split(',') + claims.other_roles.split(',')", []string{"admin", "user", "baz"}, false},
	{"claims.roles.split(',') + ['hardcoded_group']", []string{"admin", "user", "hardcoded_group"}, false},
	{"claims.roles.split(',') + (claims.is_admin ? ['admin'] : [])", []string{"admin", "user"}, true},
	{"claims.roles.split(',') + (claims.is_admin ? ['admin'] : ['none'])", []string{"admin", "user", "none"}, false},
	{"(type(claims.other_roles) == string ? [claims.other_roles] : claims.other_roles) + ['hardcoded_group']", []string{"baz", "hardcoded_group"}, false},
	{"[] + claims.roles.split(',')", []string{"admin", "user"}, true},
	{"claims.none + claims.roles.split(',')", []string{"admin", "user"}, true},
	{"claims.list + claims.roles.split(',')", nil, true}, // The claim may be empty in another token.
	{"true ? claims.roles.split(',') : []", []string{"admin", "user"}, true},
	{"(true ? claims.roles.split(',') : []).map(g, g)", []string{"admin", "user"}, false},
	{"has(claims.absent) ? claims.absent : claims.roles.split(',')", []string{"admin", "user"}, true},
	{"claims.?roles.optMap(r, r.split(',')).orValue([])", []string{"admin", "user"}, true},
	{"claims.?roles.optMap(r, r.split(',').map(g, g)).orValue([])", []string{"admin", "user"}, false},
	{"claims.?roles.optFlatMap(r, optional.of(r.split(','))).orValue([])", []string{"admin", "user"}, true},
	{"optional.of(claims.roles.split(',')).optMap(r, r).orValue([])", []string{"admin", "user"}, true},
	{"optional.of(claims.roles.split(',')).or(optional.none()).value()", []string{"admin", "user"}, true},
	{"claims.?absent.orValue(claims.roles.split(','))", []string{"admin", "user"}, true},
	{"dyn(claims.roles.split(','))", []string{"admin", "user"}, true},
	{"claims.roles.split(',').sort()", []string{"admin", "user"}, false},
	{"claims.roles.split(',').distinct()", []string{"admin", "user"}, false},
	{"claims.roles.split(',', 0).distinct()", nil, true},
	{"claims.roles.findAll('[a-z]+')", []string{"admin", "user"}, true},
	{"claims.roles.findAll('[0-9]+').sort()", nil, true},
	{"claims.roles.findAll('[a-z]+').map(g, g)", []string{"admin", "user"}, false},
	{"claims.roles.split(',').slice(0, 1)", []string{"admin"}, false},
	{"claims.roles.split(',').reverse()", []string{"user", "admin"}, false},
	{"[claims.roles.split(',')].flatten()", []string{"admin", "user"}, false},
	{"[claims.roles.split(',')][0]", []string{"admin", "user"}, true},
	{"{'a': claims.roles.split(',')}.a", []string{"admin", "user"}, true},
	{"{'a': claims.roles.split(',')}['a']", []string{"admin", "user"}, true},
	{"{'a': claims.roles.split(',')}[?'a'].orValue([])", []string{"admin", "user"}, true},
	{"url('https://a.example/?g=admin').getQuery()['g']", []string{"admin"}, true},
	{"format.dns1123Label().validate('A').orValue([]).map(m, 'bad')", []string{"bad"}, false},
	{"format.dns1123Label().validate('A').value()", nil, true},
	{"claims.roles.split(',')[0]", []string{"admin"}, false},
	{"claims.roles.split(',').join('/')", []string{"admin/user"}, false},
	{"claims.list", []string{"a", "b"}, false},
	{"claims.list + claims.none", []string{"a", "b"}, false},
	{"claims.?list.orValue([])", []string{"a", "b"}, false},
	{"claims.nested.groups", []string{"n"}, false},
	{"['a', '', 'b']", []string{"a", "b"}, false},
	{"[]", nil, false},
	{"''", nil, false},
	{"null", nil, false},
	{"claims['null']", nil, false},
	{"claims.is_admin == true", nil, true},
	{"claims.?list", nil, true},
	{"[1, 2]", nil, true},
	{"[['a']]", nil, true},
	{"{'a': 'b'}", nil, true},
	{"1", nil, true},
}

// payloads is a key set that verifies nothing: the test is about mappings.
type payloads struct{}

func (payloads) VerifySignature(_ context.Context, token string) ([]byte, error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return nil, errors.New("no token")
	}
	return base64.RawURLEncoding.DecodeString(parts[1])
}

// A file with a mapping is refused if, and only if, k8s.io/apiserver refuses a token for the result of the mapping. Each expression is
// evaluated for a token whose lists have items, and for one whose lists are empty.
func TestKEP3331_AMappingThatRefusesTokensIsAFault(t *testing.T) {
	i := startIssuer(t, issuer.Config{})
	full := claims(map[string]any{
		"roles": "admin,user", "other_roles": "baz", "is_admin": false, "list": []string{"a", "b"}, "none": []string{}, "null": json.RawMessage("null"),
		"nested": map[string]any{"groups": []string{"n"}},
	})
	empty := claims(map[string]any{"roles": "", "other_roles": "", "is_admin": false, "list": []string{}, "none": []string{}, "nested": map[string]any{"groups": []string{}}})
	for _, c := range listExpressions {
		t.Run(c.expression, func(t *testing.T) {
			text := configuration(entry(i, fmt.Sprintf("\n  claimMappings:\n    username: {claim: sub, prefix: ''}\n    groups: {expression: %q}", c.expression)))
			_, _, fault := configfile.LoadAuthentication("authentication.yaml", []byte(text))
			if (fault != nil) != c.refused {
				t.Fatalf("the file: %v", fault)
			}
			// Extra takes the same values. The file is the same but for the mapping.
			_, _, extra := configfile.LoadAuthentication("authentication.yaml", []byte(configuration(entry(i,
				fmt.Sprintf("\n  claimMappings:\n    username: {claim: sub, prefix: ''}\n    extra: [{key: example.com/x, valueExpression: %q}]", c.expression)))))
			if (extra != nil) != c.refused {
				t.Errorf("extra: %v", extra)
			}
			got, err := mapGroups(t, i, c.expression, full)
			_, emptyErr := mapGroups(t, i, c.expression, empty)
			if !c.refused {
				if err != nil || !slices.Equal(got, c.groups) {
					t.Errorf("groups are %q, %v, want %q", got, err, c.groups)
				}
				return
			}
			const message = "expression must return a string or a list of strings"
			if (err == nil || !strings.HasSuffix(err.Error(), message)) && (emptyErr == nil || !strings.HasSuffix(emptyErr.Error(), message)) {
				t.Errorf("k8s.io/apiserver accepts it, so that the file must load: %v, %v", err, emptyErr)
			}
		})
	}
}

// mapGroups returns the groups of a token by k8s.io/apiserver alone.
func mapGroups(t *testing.T, i *issuer.Issuer, expression string, of map[string]any) ([]string, error) {
	t.Helper()
	one := apiserver.JWTAuthenticator{
		Issuer: apiserver.Issuer{URL: i.URL(), Audiences: []string{audience}},
		ClaimMappings: apiserver.ClaimMappings{
			Username: apiserver.PrefixedClaimOrExpression{Expression: "claims.sub"},
			Groups:   apiserver.PrefixedClaimOrExpression{Expression: expression},
		},
	}
	tokens, err := oidc.New(t.Context(), oidc.Options{JWTAuthenticator: one, KeySet: payloads{}, SupportedSigningAlgs: []string{"ES256"}, Client: http.DefaultClient})
	if err != nil {
		t.Fatal(err)
	}
	response, ok, err := tokens.AuthenticateToken(t.Context(), sign(t, i, of, issuer.Token{}))
	if err != nil || !ok {
		return nil, err
	}
	return response.User.GetGroups(), nil
}
