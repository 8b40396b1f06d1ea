package corpus

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/test/previous"
)

// TestPrevious_Scenarios: what the core allows in a scenario, the previous one allowed too, but for the rows of the table.
func TestPrevious_Scenarios(t *testing.T) {
	files, err := SchemaFiles(root)
	must(t, err)
	// The previous core knows no document about a fragment.
	files = slices.DeleteFunc(files, func(file string) bool {
		raw, err := os.ReadFile(file)
		return err == nil && strings.Contains(string(raw), "\n  fragment: ")
	})
	world, err := previous.Offline(files)
	must(t, err)
	tally := previous.Tally{}
	for _, s := range scenarios(t) {
		for _, step := range s.Reviewed() {
			req, err := s.Request(step)
			must(t, err)
			for _, d := range tally.Add(world.Compare(t.Context(), req)) {
				t.Errorf("%s: %s: %s", s.Name, step.Name, d)
			}
		}
	}
	t.Logf("differences by row: %v", tally)
}
