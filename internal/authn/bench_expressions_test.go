package authn

import (
	"fmt"
	"testing"

	"github.com/fieldperm/fieldperm/test/issuer"
)

// measured are the expressions that KEP-3331 and its examples write, by what they cost.
var measured = []struct{ name, entry string }{
	{"claims", "\n  claimMappings:\n    username: {claim: sub, prefix: ''}\n    groups: {claim: groups, prefix: ''}"},
	{"username", "\n  claimMappings:\n    username: {expression: 'claims.sub + \":external-user\"'}"},
	{"groups by split", "\n  claimMappings:\n    username: {claim: sub, prefix: ''}\n    groups: {expression: 'claims.roles.split(\",\").map(g, g)'}"},
	{"validation rules", named + "\n  claimValidationRules:\n  - expression: 'claims.hd == \"example.com\"'\n  - expression: claims.exp - claims.iat <= 86400"},
	{"user rules", named + "\n    groups: {claim: groups, prefix: ''}\n  userValidationRules:\n  - expression: '!user.username.startsWith(\"system:\")'\n  - expression: 'user.groups.all(group, !group.startsWith(\"system:\"))'"},
	{"the KEP's file", `
  claimValidationRules:
  - {claim: hd, requiredValue: example.com}
  - expression: 'claims.exp - claims.iat <= 86400'
  claimMappings:
    username: {expression: 'claims.sub + ":external-user"'}
    groups: {expression: 'claims.roles.split(",").map(g, g)'}
    uid: {claim: sub}
    extra: [{key: example.com/client_name, valueExpression: claims.hd}]
  userValidationRules:
  - expression: "!user.username.startsWith('system:')"
  - expression: "user.groups.all(group, !group.startsWith('system:'))"`},
}

// expressive returns an authenticator of tokens that no cache answers for, and a token with 50 groups.
func expressive(t testing.TB, rest string) (authenticate func() error) {
	i := startIssuer(t, issuer.Config{})
	a := startWith(t, entry(i, rest))
	groups, roles := make([]string, 50), ""
	for n := range groups {
		groups[n] = fmt.Sprintf("group-%d", n)
		roles += "," + groups[n]
	}
	token := sign(t, i, claims(map[string]any{"hd": "example.com", "groups": groups, "roles": roles[1:]}), issuer.Token{})
	return func() error {
		_, ok, err := a.current.providers[0].token.AuthenticateToken(t.Context(), token)
		if err == nil && !ok {
			err = fmt.Errorf("token is of no issuer")
		}
		return err
	}
}

// BenchmarkExpressions measures what expressions add to the verification of a token (KEP-3331, Beta).
func BenchmarkExpressions(b *testing.B) {
	for _, one := range measured {
		b.Run(one.name, func(b *testing.B) {
			authenticate := expressive(b, one.entry)
			b.ReportAllocs()
			for b.Loop() {
				if err := authenticate(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// What BenchmarkExpressions measures succeeds each time.
func TestKEP3331_BenchmarksOfExpressionsAuthenticate(t *testing.T) {
	for _, one := range measured {
		authenticate := expressive(t, one.entry)
		for range 2 {
			if err := authenticate(); err != nil {
				t.Errorf("%s: %v", one.name, err)
			}
		}
	}
}
