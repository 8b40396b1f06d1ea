package schema

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

// barrierAt adds an entry to an overlay, with a verb of its own.
func barrierAt(o *overlay, path string, bars bool) {
	at := o.at(pattern(path))
	e := &Entry{Pointer: path}
	e.Verb, e.Excluded = fmt.Sprintf("example.com/v%d", len(path)), bars
	at.guard = newGuard("a", RankAdministrator, e, nil)
}

// TestC8_EachKeyNeedsWhatTheWaysToBarriersNeed: of the ways to a field and below it, barring finds only those of the patterns of entries. A simple walk
// finds those of all keys. What passes the barriers of the former passes those of the latter.
func TestC8_EachKeyNeedsWhatTheWaysToBarriersNeed(t *testing.T) {
	field := pattern(".f")
	r := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		root := &overlay{}
		for range 1 + r.IntN(12) {
			path := ".f"
			for range r.IntN(4) {
				path += []string{"[*]", ".a", ".b"}[r.IntN(3)]
			}
			barrierAt(root, path, r.IntN(2) == 0)
		}
		rooms := newRoom()
		found, hasRoom := root.barring(field, &rooms)
		if !hasRoom {
			t.Fatal("no room")
		}
		all := everyWay([]*overlay{root.field("f")}, nil, 1)
		for _, way := range found {
			if !slices.ContainsFunc(all, func(other []passage) bool { return slices.Equal(way, other) }) {
				t.Errorf("no key has the way %s", describeWay(way))
			}
		}
		for _, way := range all {
			if !slices.ContainsFunc(found, func(less []passage) bool {
				needed := passing(way)
				return !slices.ContainsFunc(passing(less), func(on passage) bool { return !slices.Contains(needed, on) })
			}) {
				t.Errorf("nothing needs what %s needs", describeWay(way))
			}
		}
	}
}

// everyWay returns the ways of all keys with a barrier at the last step, or above it at the first.
func everyWay(at []*overlay, above []passage, depth int) [][]passage {
	way := passed(above, at, depth)
	bars := func(on passage) bool { return on.bars() }
	var out [][]passage
	if slices.ContainsFunc(way[len(above):], bars) {
		out = append(out, way)
	}
	for _, key := range []string{"a", "b", "other"} {
		if next := below(at, func(name string) bool { return name == key }); len(next) > 0 {
			out = append(out, everyWay(next, way, depth+1)...)
		}
	}
	return out
}

// passing returns the last barrier of a way, and what passes it.
func passing(way []passage) []passage {
	for i := range slices.Backward(way) {
		if way[i].bars() {
			return way[i:]
		}
	}
	return nil
}

func describeWay(way []passage) string {
	var out []string
	for _, on := range way {
		out = append(out, fmt.Sprintf("%s %t", on.entry.Pointer, on.bars()))
	}
	return strings.Join(out, ", ")
}

// TestC8_TheWaysToBarriersAreAsManyAsTheEntries: a key has the barriers of all patterns that it matches, so that the ways of keys double with each step.
func TestC8_TheWaysToBarriersAreAsManyAsTheEntries(t *testing.T) {
	const steps = 300
	root := &overlay{}
	for i := range steps {
		path := ".spec.nodeSelector" + strings.Repeat("[*]", i)
		barrierAt(root, path+"[*]", true)
		barrierAt(root, path+".a", true)
	}
	r := newRoom()
	ways, hasRoom := root.barring(fieldpath.Pattern{{Name: "spec"}, {Name: "nodeSelector"}}, &r)
	if len(ways) > 2*steps {
		t.Errorf("%d entries have %d ways", 2*steps, len(ways))
	}
	if hasRoom || r.made > mostNodes+2*steps {
		t.Errorf("room for %d guards: %t", r.made, hasRoom)
	}
}
