package authn

import (
	"testing"

	"github.com/fieldperm/fieldperm/test/issuer"
)

func BenchmarkAuthenticate(b *testing.B) {
	for _, algorithm := range []string{"ES256", "RS256"} {
		i := startIssuer(b, issuer.Config{Algorithm: algorithm})
		a := startWith(b, entry(i, named+"\n    groups: {expression: claims.groups}"))
		token := sign(b, i, claims(map[string]any{"groups": []string{"a", "b", "c"}}), issuer.Token{})
		accepted(b, a, token, "ann")
		b.Run(algorithm+"/cached", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, ok, err := a.AuthenticateRequest(bearing(token)); !ok || err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(algorithm+"/uncached", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, ok, err := a.current.providers[0].token.AuthenticateToken(b.Context(), token); !ok || err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
