package authn

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/fieldperm/fieldperm/test/issuer"
)

// The claims that KEP-3331 calls the minimum payload are enough: iss, aud, exp and the claim of the username. Each of them is needed.
func TestKEP3331_TheMinimumPayload(t *testing.T) {
	i := startIssuer(t, issuer.Config{})
	a := startWith(t, entry(i, "\n  claimMappings: {username: {claim: login, prefix: ''}}"))
	minimum := map[string]any{"aud": []string{audience}, "login": "user", "iat": nil}
	accepted(t, a, sign(t, i, minimum, issuer.Token{}), "user")
	for claim, want := range map[string]string{"iss": "is none of jwt[].issuer.url", "aud": "is for none of issuer.audiences", "exp": "is expired", "login": "is missing"} {
		without := map[string]any{"aud": []string{audience}, "login": "user", "iat": nil, claim: nil}
		refusedWith(t, a, sign(t, i, without, issuer.Token{}), want)
	}
}

// Empty values are no groups, in claims and in expressions.
func TestKEP3331_EmptyValuesAreNoGroups(t *testing.T) {
	i := startIssuer(t, issuer.Config{})
	for name, groups := range map[string]string{"claim": "{claim: groups, prefix: 'p:'}", "expression": "{expression: 'has(claims.groups) ? claims.groups : null'}"} {
		a := startWith(t, entry(i, named+"\n    groups: "+groups))
		for what, value := range map[string]any{"[]": []string{}, "missing": nil, "null": json.RawMessage("null")} {
			if got := accepted(t, a, sign(t, i, claims(map[string]any{"groups": value}), issuer.Token{}), "ann"); !slices.Equal(got.GetGroups(), []string{all}) {
				t.Errorf("%s, %s: groups are %q", name, what, got.GetGroups())
			}
		}
		// An empty text is no group of an expression. k8s.io/apiserver takes it for the name of a group of a claim.
		got := accepted(t, a, sign(t, i, claims(map[string]any{"groups": ""}), issuer.Token{}), "ann").GetGroups()
		if want := map[string][]string{"claim": {"p:", all}, "expression": {all}}[name]; !slices.Equal(got, want) {
			t.Errorf("%s, empty text: groups are %q, want %q", name, got, want)
		}
	}
}

// The examples of extra in KEP-3331: a fixed value, a copied claim and a derived one. Empty values are not there.
func TestKEP3331_ExtraOfTheKEP(t *testing.T) {
	i := startIssuer(t, issuer.Config{})
	a := startWith(t, entry(i, named+`
    extra:
    - {key: example.com/fixed, valueExpression: "'bar'"}
    - {key: example.com/copied, valueExpression: claims.some_claim}
    - {key: example.com/admin, valueExpression: '(has(claims.is_admin) && claims.is_admin) ? "true":""'}
    - {key: example.com/list, valueExpression: claims.list}`))
	for name, c := range map[string]struct {
		claims map[string]any
		want   map[string][]string
	}{
		"all": {
			map[string]any{"some_claim": "x", "is_admin": true, "list": []string{"a", "", "b"}},
			map[string][]string{"example.com/fixed": {"bar"}, "example.com/copied": {"x"}, "example.com/admin": {"true"}, "example.com/list": {"a", "b"}},
		},
		"empty": {
			map[string]any{"some_claim": "", "is_admin": false, "list": []string{}},
			map[string][]string{"example.com/fixed": {"bar"}},
		},
		"null, and a list of nothing": {
			map[string]any{"some_claim": json.RawMessage("null"), "list": []string{""}},
			map[string][]string{"example.com/fixed": {"bar"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := accepted(t, a, sign(t, i, claims(c.claims), issuer.Token{}), "ann"); !reflect.DeepEqual(got.GetExtra(), c.want) {
				t.Errorf("extra is %v, want %v", got.GetExtra(), c.want)
			}
		})
	}
}

// Nested claims, and all of the audiences by a rule, as KEP-3331 writes them.
func TestKEP3331_NestedClaimsAndExactAudiences(t *testing.T) {
	i := startIssuer(t, issuer.Config{})
	a := startWith(t, issuerOnly(i, "[bar, foo, baz]", "\n    audienceMatchPolicy: MatchAny")+`
  claimValidationRules:
  - {expression: "sets.equivalent(claims.aud, ['bar', 'foo', 'baz'])", message: all audiences are needed}
  claimMappings:
    username: {expression: "'n:' + claims.custom.data.name"}
`)
	nested := map[string]any{"data": map[string]any{"name": "foo"}}
	got := accepted(t, a, sign(t, i, map[string]any{"aud": []string{"foo", "baz", "bar"}, "custom": nested}, issuer.Token{}), "n:foo")
	if _, ok := got.(*user.DefaultInfo); !ok {
		t.Errorf("user is a %T", got)
	}
	refusedWith(t, a, sign(t, i, map[string]any{"aud": []string{"foo", "baz"}, "custom": nested}, issuer.Token{}), "all audiences are needed")
}

// A rule sees the groups that a distributed claim refers to.
func TestKEP3331_RulesSeeDistributedGroups(t *testing.T) {
	i := startIssuer(t, issuer.Config{})
	a := startWith(t, entry(i, "\n  claimValidationRules: [{expression: \"'dev' in dyn(claims.groups)\", message: only dev}]"+named+"\n    groups: {claim: groups, prefix: 'd:'}"))
	referring := func(groups ...string) string {
		return sign(t, i, claims(i.Distribute("groups", sign(t, i, map[string]any{"aud": audience, "groups": groups}, issuer.Token{}), "")), issuer.Token{})
	}
	good := referring("dev", "x")
	// The library makes the verifier of distributed claims when the first token of an issuer arrives, and refuses that token.
	eventually(t, "distributed claims are read", func() bool {
		_, err := identify(a, good)
		return err == nil
	})
	if got := accepted(t, a, good, "ann").GetGroups(); !slices.Equal(got, []string{"d:dev", "d:x", all}) {
		t.Errorf("groups are %q", got)
	}
	refusedWith(t, a, referring("ops"), "only dev")
}
