package model

import (
	"strings"
	"testing"
)

// jugs are two jugs, of 3 and 5 litres, next to a well. Harm is a state with 4 litres in the large one.
type jugs struct{ harmless bool }

type litres struct{ Small, Large uint8 }

func (jugs) initial() []litres         { return []litres{{}} }
func (j jugs) harmed(have litres) bool { return have.Large == 4 && !j.harmless }
func (jugs) steps(from litres, do func(step, litres)) {
	for _, to := range []litres{{3, from.Large}, {from.Small, 5}, {0, from.Large}, {from.Small, 0}} {
		do(step{"jug", 0, "is filled or emptied"}, to)
	}
	into := min(from.Small, 5-from.Large)
	do(step{"small jug", 0, "is poured"}, litres{from.Small - into, from.Large + into})
	back := min(from.Large, 3-from.Small)
	do(step{"large jug", 0, "is poured"}, litres{from.Small + back, from.Large - back})
}

// The search finds the known shortest way, sees every state if there is no harm, and returns an error if it was not complete.
func TestA5_Model_SearchIsCompleteAndShortest(t *testing.T) {
	seen, err := search(jugs{}, 100)
	if err != nil {
		t.Fatal(err)
	}
	want := `  0. begin: 
  1. jug 0 is filled or emptied: Large=5
  2. large jug 0 is poured: Small=3, Large=2
  3. jug 0 is filled or emptied: Small=0
  4. large jug 0 is poured: Small=2, Large=0
  5. jug 0 is filled or emptied: Large=5
  6. large jug 0 is poured: Small=3, Large=4
`
	if seen.trace != want {
		t.Errorf("trace:\n%swant:\n%s", seen.trace, want)
	}
	// One jug is empty or full in each of the 16 states that can be reached.
	switch seen, err := search(jugs{harmless: true}, 100); {
	case err != nil:
		t.Error(err)
	case seen.states != 16 || seen.trace != "":
		t.Errorf("%d states, trace %q; want 16 states and no trace", seen.states, seen.trace)
	}
	if _, err := search(jugs{harmless: true}, 15); err == nil || !strings.Contains(err.Error(), "more than 15 states") {
		t.Errorf("a search that is not complete: got error %v", err)
	}
}
