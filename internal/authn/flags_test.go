//go:build integration

package authn

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/fieldperm/fieldperm/test/cluster"
	"github.com/fieldperm/fieldperm/test/issuer"
)

// A file that is written as docs/guide/authentication.md says (Moving from --oidc flags) gives the user that kube-apiserver gives with the
// flags. The token is the same, and so are the refusals.
func TestKEP3331_AFileInPlaceOfFlagsGivesTheSameUser(t *testing.T) {
	i := startIssuer(t, issuer.Config{})
	ca := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(ca, i.CA(), 0o600); err != nil {
		t.Fatal(err)
	}
	good := claims(map[string]any{"groups": []string{"dev", "ops"}, "email": "ann@example.com", "email_verified": true, "hd": "acme", "team": "a"})
	with := func(change map[string]any) map[string]any { return claims(good, change) }
	for name, c := range map[string]struct {
		flags map[string][]string
		file  string
		// users are the names for the claims, "" for a refusal.
		tokens []map[string]any
		users  []string
	}{
		"defaults": {
			map[string][]string{"oidc-groups-claim": {"groups"}},
			"\n  claimMappings:\n    username: {claim: sub, prefix: '" + i.URL() + "#'}\n    groups: {claim: groups, prefix: ''}",
			[]map[string]any{good, with(map[string]any{"groups": "one"}), with(map[string]any{"groups": nil}), with(map[string]any{"aud": "other"})},
			[]string{i.URL() + "#ann", i.URL() + "#ann", i.URL() + "#ann", ""},
		},
		"no prefix, and required claims": {
			map[string][]string{"oidc-username-claim": {"sub"}, "oidc-username-prefix": {"-"}, "oidc-groups-claim": {"groups"}, "oidc-groups-prefix": {"oidc:"}, "oidc-required-claim": {"hd=acme", "team=a"}},
			"\n  claimValidationRules: [{claim: hd, requiredValue: acme}, {claim: team, requiredValue: a}]" +
				"\n  claimMappings:\n    username: {claim: sub, prefix: ''}\n    groups: {claim: groups, prefix: 'oidc:'}",
			[]map[string]any{good, with(map[string]any{"hd": "other"}), with(map[string]any{"team": nil})},
			[]string{"ann", "", ""},
		},
		"e-mail": {
			map[string][]string{"oidc-username-claim": {"email"}, "oidc-groups-claim": {"groups"}, "oidc-groups-prefix": {"-"}},
			"\n  claimMappings:\n    username: {claim: email, prefix: ''}\n    groups: {claim: groups, prefix: '-'}",
			[]map[string]any{good, with(map[string]any{"email_verified": false}), with(map[string]any{"email_verified": nil})},
			[]string{"ann@example.com", "", "ann@example.com"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.flags["oidc-issuer-url"], c.flags["oidc-client-id"], c.flags["oidc-ca-file"] = []string{i.URL()}, []string{audience}, []string{ca}
			// The algorithm of the test issuer. With the flags it must be named.
			c.flags["oidc-signing-algs"] = []string{"ES256"}
			plane, err := cluster.Start(t.Context(), cluster.Config{ExtraArgs: c.flags})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := plane.Stop(); err != nil {
					t.Error(err)
				}
			})
			here := startWith(t, entry(i, c.file))
			eventually(t, "kube-apiserver knows the issuer", func() bool { return whoAmI(t, plane, sign(t, i, good, issuer.Token{})) != nil })
			for n, of := range c.tokens {
				token := sign(t, i, of, issuer.Token{})
				theirs := whoAmI(t, plane, token)
				ours, err := identify(here, token)
				if c.users[n] == "" {
					if theirs != nil || err == nil {
						t.Errorf("%v: kube-apiserver says %+v, and fieldperm %+v, want refusals", of, theirs, ours)
					}
					continue
				}
				if err != nil || theirs == nil || theirs.Username != c.users[n] {
					t.Errorf("%v: kube-apiserver says %+v, and fieldperm %+v, %v, want %q", of, theirs, ours, err, c.users[n])
					continue
				}
				slices.Sort(theirs.Groups)
				groups := slices.Sorted(slices.Values(ours.GetGroups()))
				if ours.GetName() != theirs.Username || ours.GetUID() != theirs.UID || !slices.Equal(groups, theirs.Groups) || !reflect.DeepEqual(ours.GetExtra(), extraOf(theirs)) {
					t.Errorf("%v: kube-apiserver says %+v, and fieldperm %+v", of, theirs, ours)
				}
			}
		})
	}
}

// whoAmI returns the user that kube-apiserver sees in a token, nil if it refuses the token.
func whoAmI(t *testing.T, plane *cluster.Cluster, token string) *authenticationv1.UserInfo {
	t.Helper()
	config := rest.AnonymousClientConfig(plane.Admin())
	config.BearerToken = token
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	review, err := client.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return nil
	}
	return &review.Status.UserInfo
}

func extraOf(u *authenticationv1.UserInfo) map[string][]string {
	raw, _ := json.Marshal(u.Extra)
	var out map[string][]string
	_ = json.Unmarshal(raw, &out)
	return out
}
