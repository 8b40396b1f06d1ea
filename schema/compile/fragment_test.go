package compile

import (
	"fmt"
	"strings"
	"testing"
)

// TestG5_TooManyPlacesOfAFragmentAreAFaultOfTheInclude, not of the document about the fragment.
func TestG5_TooManyPlacesOfAFragmentAreAFaultOfTheInclude(t *testing.T) {
	including := PermissionDocument{Source: "definition", Rank: RankCustomResource, Group: "example.com", Kind: "Vault"}
	for i := range 400 {
		including.Contains = append(including.Contains, Contained{Fragment: Fragment{"conditions", fmt.Sprintf(".spec.f%d", i)}, IsPart: true})
	}
	about := PermissionDocument{Source: "fragment", Rank: RankAdministrator, Fragment: "conditions", Entries: make([]Entry, 51)}
	placed, _, faults := placeFragments([]PermissionDocument{including, about})
	if len(faults) != 1 || !strings.HasPrefix(faults[0].Error(), `definition:: includes fragment "conditions" at so many fields`) || len(placed) != 1 {
		t.Errorf("%d documents, faults %v", len(placed), faults)
	}
	about.Entries = about.Entries[:50]
	if placed, _, faults = placeFragments([]PermissionDocument{including, about}); len(faults) > 0 || len(placed) != 2 || len(placed[1].Entries) != 20_000 {
		t.Errorf("%d documents, faults %v", len(placed), faults)
	}
}
