package walk

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/fieldperm/fieldperm/internal/rawjson"
)

// Every level gets its own parts back, in whatever blocks the levels around it and below it are.
func TestStack_LevelsKeepTheirParts(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 3617))
	d := &Differ{}
	var level func(name string, depth int)
	level = func(name string, depth int) {
		before := d.waiting()
		n := []int{0, 1, 2, 7, largestBlock / 4}[r.IntN(5-depth/3)]
		around := d.changed
		d.enterLevel(rawjson.Value{}, rawjson.Value{})
		for i := range n {
			d.push(pair{name: fmt.Append(nil, name, ".", i)})
		}
		for begin := d.level; len(d.changed) > begin; {
			n--
			if got, want := string(d.pop().name), fmt.Sprint(name, ".", n); got != want {
				t.Fatalf("got part %s, want %s", got, want)
			}
			if depth < 9 && r.IntN(2+n/4) == 0 {
				level(fmt.Sprint(name, ".", n), depth+1)
			}
		}
		d.leave(around)
		if n != 0 || d.waiting() != before {
			t.Fatalf("level %s lost %d parts, and %d wait instead of %d", name, n, d.waiting(), before)
		}
	}
	for i := range 20 {
		level(fmt.Sprint(i), 0)
	}
}

// A block that a level has left is used again, so that many small levels at the end of a full block do not cost a block each.
func TestStack_UsesALeftBlockAgain(t *testing.T) {
	d := &Differ{}
	for range largestBlock {
		d.push(pair{})
	}
	d.changed = d.changed[:len(d.changed):len(d.changed)]
	if allocated := testing.AllocsPerRun(100, func() {
		around := d.changed
		d.enterLevel(rawjson.Value{}, rawjson.Value{})
		d.push(pair{})
		d.leave(around)
	}); allocated != 0 {
		t.Errorf("a small level allocates %v blocks", allocated)
	}
}

// A large level moves once to a block of the right size.
func TestStack_ALargeLevelGetsABlockOfItsSize(t *testing.T) {
	text := []byte("{")
	for i := range 4 * largeLevel {
		text = fmt.Appendf(text, `"%d":1,`, i)
	}
	doc, err := rawjson.Scan(append(text[:len(text)-1], '}'))
	if err != nil {
		t.Fatal(err)
	}
	d := &Differ{}
	d.changes(doc.Root(), rawjson.Value{})
	if len(d.changed) != 4*largeLevel || cap(d.changed) != len(d.changed) {
		t.Errorf("%d parts are in a block for %d", len(d.changed), cap(d.changed))
	}
}
