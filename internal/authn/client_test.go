package authn

import (
	"testing"
	"time"

	"github.com/fieldperm/fieldperm/test/issuer"
)

// The library caches keys for as long as the issuer says, and would not know a new key until then.
func TestKEP3331_ANewKeyIsFetchedBeforeTheCacheTimeOfTheIssuer(t *testing.T) {
	t.Parallel()
	i := startIssuer(t, issuer.Config{})
	i.Behave(issuer.Behaviour{KeysFor: time.Hour})
	a := startWith(t, entry(i, named))
	accepted(t, a, sign(t, i, claims(), issuer.Token{}), "ann")
	if _, err := i.Rotate(true); err != nil {
		t.Fatal(err)
	}
	acceptedSoon(t, a, sign(t, i, claims(), issuer.Token{}), "ann")
}
