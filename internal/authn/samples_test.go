package authn

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/fieldperm/fieldperm/test/issuer"
)

const mended = "../../testdata/configuration/authentication/mended"

// trials are the tokens for each mended sample of KEP-3331, with what the KEP says of them.
var trials = map[string][]trial{
	"kep-3331-file.yaml": {
		{name: "all is mapped", want: &user.DefaultInfo{
			Name: "jane_doe:external-user", UID: "119abc", Groups: []string{"admin", "user", all},
			Extra: map[string][]string{"example.com/client_name": {"some"}},
		}},
		{name: "another audience of the list", change: map[string]any{"aud": []string{"other-app"}}, want: &user.DefaultInfo{
			Name: "jane_doe:external-user", UID: "119abc", Groups: []string{"admin", "user", all},
			Extra: map[string][]string{"example.com/client_name": {"some"}},
		}},
		{name: "no audience of the list", change: map[string]any{"aud": "third-app"}, err: "is for none of issuer.audiences"},
		{name: "the wrong domain", change: map[string]any{"hd": "example.org"}, err: `claimValidationRules: claim "hd" has another value`},
		{name: "no domain", change: map[string]any{"hd": nil}, err: `claimValidationRules: claim "hd" is missing`},
		{name: "a long life", change: map[string]any{"nbf": time.Now().Add(-48 * time.Hour).Unix()}, err: "total token lifetime must not exceed 24 hours"},
		{name: "a reserved group", change: map[string]any{"roles": "user,system:masters"}, err: "groups cannot used reserved system: prefix"},
		{name: "a reserved name", change: map[string]any{"username": "system:admin"}, err: "username cannot used reserved system: prefix"},
	},
	"kep-3331-claim-mappings.yaml": {
		{name: "as the KEP says", change: map[string]any{"aud": "kubernetes"}, want: &user.DefaultInfo{
			Name: "jane_doe:external-user", UID: "119abc", Groups: []string{"admin", "user", all},
			Extra: map[string][]string{"example.com/client_name": {"kubernetes"}},
		}},
		{name: "no roles", change: map[string]any{"aud": "kubernetes", "roles": ""}, want: &user.DefaultInfo{
			Name: "jane_doe:external-user", UID: "119abc", Groups: []string{all}, Extra: map[string][]string{"example.com/client_name": {"kubernetes"}},
		}},
	},
	"kep-3331-claim-validation-rules.yaml": {
		{name: "the first client", change: map[string]any{"aud": "charmander"}, want: &user.DefaultInfo{Name: "oidc:119abc", Groups: []string{all}}},
		{name: "the second client", change: map[string]any{"aud": "bulbasaur"}, want: &user.DefaultInfo{Name: "oidc:119abc", Groups: []string{all}}},
		{name: "both clients in one list", change: map[string]any{"aud": []string{"charmander", "bulbasaur"}}, err: "clients other than charmander or bulbasaur are not allowed"},
		{name: "another client", change: map[string]any{"aud": "squirtle"}, err: "is for none of issuer.audiences"},
		{name: "a long life", change: map[string]any{"aud": "charmander", "nbf": time.Now().Add(-48 * time.Hour).Unix()}, err: "total token lifetime must not exceed 24 hours"},
	},
	"kep-3331-user-validation-rules.yaml": {
		{name: "a token without an id", want: &user.DefaultInfo{Name: "oidc:119abc", Groups: []string{all}}},
		{name: "another token", change: map[string]any{"jti": "other"}, want: &user.DefaultInfo{Name: "oidc:119abc", Groups: []string{all}, Extra: map[string][]string{user.CredentialIDKey: {"JTI=other"}}}},
		{name: "the revoked token", change: map[string]any{"jti": "e28ed49-2e11-4280-9ec5-bc3d1d84661a"}, err: "credential id is revoked"},
	},
}

type trial struct {
	name   string
	change map[string]any
	want   *user.DefaultInfo
	err    string
}

// Every mended sample of the KEP does with tokens of a real issuer what the KEP says. Only discoveryURL and certificateAuthority are added,
// by which the issuer of the test is found under the name in the sample.
func TestKEP3331_SamplesDoWhatTheKEPSays(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(mended, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != len(trials) {
		t.Errorf("%d samples, and tokens for %d", len(files), len(trials))
	}
	i := startIssuer(t, issuer.Config{Name: "https://example.com", DiscoveryPath: "/configuration"})
	const url = "    url: https://example.com\n"
	ca := strings.ReplaceAll(strings.TrimSpace(string(i.CA())), "\n", "\n      ")
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Count(string(raw), url) != 1 {
			t.Fatalf("%s: has not one issuer https://example.com", file)
		}
		text := strings.Replace(string(raw), url, url+"    discoveryURL: "+i.DiscoveryURL()+"\n    certificateAuthority: |\n      "+ca+"\n", 1)
		a, _ := start(t, settings(t, text))
		for _, one := range trials[filepath.Base(file)] {
			t.Run(filepath.Base(file)+"/"+one.name, func(t *testing.T) {
				token := sign(t, i, claims(map[string]any{
					"sub": "119abc", "aud": []string{"my-app"}, "hd": "example.com", "username": "jane_doe", "roles": "admin,user", "some_claim": "some",
					"nbf": time.Now().Add(-time.Minute).Unix(),
				}, one.change), issuer.Token{})
				if one.want == nil {
					refusedWith(t, a, token, one.err)
					return
				}
				if got := accepted(t, a, token, one.want.Name); !reflect.DeepEqual(got, one.want) {
					t.Errorf("user is %+v, want %+v", got, one.want)
				}
			})
		}
	}
}
