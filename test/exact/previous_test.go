package exact

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/test/previous"
	"github.com/fieldperm/fieldperm/verbs"
)

// TestPrevious_BuiltInKinds: what the core allows, the previous one allowed too, but for the rows of the table.
func TestPrevious_BuiltInKinds(t *testing.T) {
	subjects, err := builtIn()
	if err != nil {
		t.Fatal(err)
	}
	world, err := previous.Offline(nil)
	if err != nil {
		t.Fatal(err)
	}
	tally := previous.Tally{}
	for i := range drawn() {
		seed := *seeds + uint64(i)
		one := *subjects[seed%uint64(len(subjects))]
		compare(t, tally, world, drawPair(newDraw(seed, 1), &one), seed)
	}
	t.Logf("%d pairs, differences by row: %v", drawn(), tally)
}

// TestPrevious_GeneratedCRDs is TestPrevious_BuiltInKinds for definitions that are drawn.
func TestPrevious_GeneratedCRDs(t *testing.T) {
	every, err := catalogue()
	if err != nil {
		t.Fatal(err)
	}
	tally, all := previous.Tally{}, drawn()
	for i := 0; i < all; {
		seed := *seeds + uint64(i)
		d := &definitions{draw: newDraw(seed, 2)}
		raw := d.definition()
		subjects, errs := compiled(raw, every)
		if len(errs) > 0 {
			i++
			continue
		}
		world, err := previous.Definition(raw)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for range min(pairsOfADefinition, all-i) {
			next := *seeds + uint64(i)
			one := *subjects[next%uint64(len(subjects))]
			compare(t, tally, world, drawPair(newDraw(next, 3), &one), seed)
			i++
		}
	}
	t.Logf("%d pairs, differences by row: %v", all, tally)
}

func compare(t *testing.T, tally previous.Tally, world *previous.World, p *pair, seed uint64) {
	t.Helper()
	barriers := slices.SortedFunc(maps.Keys(p.uncovered), func(a, b verbs.Verb) int { return strings.Compare(a.String(), b.String()) })
	for _, d := range tally.Add(world.CompareObjects(context.Background(), p.kind.GroupVersionKind, p.oldText, p.newText, barriers)) {
		t.Errorf("seed %d: %s: %s\n%s\n%s\n%s\nbarriers %v\n%s", seed, p.operation(), d, p.kind, p.oldText, p.newText, barriers, p.source)
	}
}
