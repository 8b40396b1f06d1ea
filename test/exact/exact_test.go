package exact

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/schema/load"
)

var (
	pairs = flag.Int("pairs", 700, "how many pairs each test of exactness draws")
	seeds = flag.Uint64("seed", 3617, "where chance begins; a failure prints the one to begin from with -pairs=100")
)

// drawn is how many pairs a test draws: a third with -short.
func drawn() int {
	if testing.Short() {
		return *pairs / 3
	}
	return *pairs
}

// builtIn returns the subjects of every built-in kind, sorted by name.
var builtIn = sync.OnceValues(func() ([]*subject, error) {
	topology, err := load.BuiltIn()
	if err != nil {
		return nil, err
	}
	permissions, err := load.Catalogue(false)
	if err != nil {
		return nil, err
	}
	// The oracle compares JSON. What an object holds beyond its JSON is charged in addition, and has tests of its own (D10).
	topology.JSON = true
	compiled, errs := compile.Compile(compile.Documents{Topologies: []compile.Topology{topology}, Permissions: permissions})
	if len(errs) > 0 {
		return nil, errs[0]
	}
	loose := loosen(topology.Types)
	var out []*subject
	for _, kind := range compiled.Kinds() {
		out = append(out, newSubject(kind, &topology, loose))
	}
	slices.SortFunc(out, func(a, b *subject) int { return cmp.Compare(a.kind.String(), b.kind.String()) })
	related(out)
	return out, nil
})

// catalogue returns the entries of the built-in catalogue for every kind.
var catalogue = sync.OnceValues(func() ([]compile.PermissionDocument, error) {
	all, err := load.Catalogue(false)
	return slices.DeleteFunc(all, func(d compile.PermissionDocument) bool { return d.Kind != "*" }), err
})

func TestExact_BuiltInKinds(t *testing.T) {
	subjects, err := builtIn()
	if err != nil {
		t.Fatal(err)
	}
	tally := newTally()
	for i := range drawn() {
		seed := *seeds + uint64(i)
		one := *subjects[seed%uint64(len(subjects))]
		p := drawPair(newDraw(seed, 1), &one)
		if !tally.add(t, p, seed) {
			break
		}
	}
	tally.report(t)
}

const pairsOfADefinition = 100

func TestExact_GeneratedCRDs(t *testing.T) {
	every, err := catalogue()
	if err != nil {
		t.Fatal(err)
	}
	tally := newTally()
	for i, all := 0, drawn(); i < all; {
		seed := *seeds + uint64(i)
		d := &definitions{draw: newDraw(seed, 2)}
		subjects, errs := compiled(d.definition(), every)
		if len(errs) > 0 {
			tally.useless[trim(errs[0].Error())]++
			i++
			continue
		}
		tally.definitions++
		for range min(pairsOfADefinition, all-i) {
			next := *seeds + uint64(i)
			one := *subjects[next%uint64(len(subjects))]
			if p := drawPair(newDraw(next, 3), &one); !tally.add(t, p, seed) {
				i = all
				break
			}
			i++
		}
	}
	useless := 0
	for _, n := range tally.useless {
		useless += n
	}
	if useless*3 > tally.definitions {
		t.Errorf("%d definitions are taken and %d are not: %s", tally.definitions, useless, counts(tally.useless))
	}
	tally.report(t)
}

// FuzzExact uses the fuzzer's bytes as randomness: the first bytes draw the schema or choose the kind.
func FuzzExact(f *testing.F) {
	subjects, err := builtIn()
	if err != nil {
		f.Fatal(err)
	}
	every, err := catalogue()
	if err != nil {
		f.Fatal(err)
	}
	for seed := range uint64(8) {
		d, data := newDraw(seed, 4), make([]byte, 200)
		for i := range data {
			data[i] = byte(d.IntN(256))
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		d := bytesDraw(data)
		one := *pick(d, subjects)
		if d.oneIn(3) {
			random, errs := compiled((&definitions{draw: d}).definition(), every)
			if len(errs) > 0 {
				t.Skip()
			}
			one = *random[0]
		}
		if p := drawPair(d, &one); theJudges().judge(p).wrong != "" {
			t.Error(theJudges().report(p, 0))
		}
	})
}

// tally counts the cases of a run.
type tally struct {
	judges
	start                              time.Time
	all, said, refused, silent, broken int
	charged, free, creations           int
	definitions                        int
	byEdit, byCharge                   map[string]int
	silences, useless                  map[string]int
	wrong                              map[string]int
}

func newTally() *tally {
	return &tally{
		judges: theJudges(), start: time.Now(), byEdit: map[string]int{}, byCharge: map[string]int{},
		silences: map[string]int{}, useless: map[string]int{}, wrong: map[string]int{},
	}
}

const maxFindings = 12

// add judges one pair. It reports false after enough failures.
func (c *tally) add(t *testing.T, p *pair, seed uint64) bool {
	v := c.judge(p)
	c.all++
	for _, e := range slices.Compact(slices.Sorted(slices.Values(p.edits))) {
		c.byEdit[e]++
	}
	switch {
	case p.broken != "":
		c.broken++
	case v.silent != "":
		c.silent++
		c.silences[trim(v.silent)]++
	case v.fast.failed:
		c.refused++
	default:
		c.said++
	}
	if p.old == nil {
		c.creations++
	}
	if len(v.fast.charges) > 0 {
		c.charged++
	} else if !v.fast.failed {
		c.free++
	}
	for _, charge := range v.fast.charges {
		operation, _, _ := strings.Cut(charge, " ")
		c.byCharge[operation]++
		if strings.Contains(charge, " |") {
			c.byCharge["barred"]++
		}
	}
	if v.wrong != "" {
		c.wrong[v.wrong[:min(len(v.wrong), 30)]]++
		t.Errorf("%s", c.judges.report(p, seed))
	}
	if c.all%100_000 == 0 {
		c.report(t)
	}
	n := 0
	for _, k := range c.wrong {
		n += k
	}
	return n < maxFindings
}

func trim(s string) string {
	return s[:min(len(s), 160)]
}

func (c *tally) report(t *testing.T) {
	t.Logf("%d pairs in %v, %d definitions: the oracle answered %d, refused %d, could not say %d; %d were no JSON, %d charged, %d free, %d creations",
		c.all, time.Since(c.start).Round(time.Millisecond), c.definitions, c.said, c.refused, c.silent, c.broken, c.charged, c.free, c.creations)
	t.Logf("by edit: %s", counts(c.byEdit))
	t.Logf("by charge: %s", counts(c.byCharge))
	for _, m := range []map[string]int{c.silences, c.useless} {
		if len(m) > 0 {
			t.Logf("not judged: %s", counts(m))
		}
	}
	if c.all >= 500 && (c.charged < c.all/2 || c.free == 0 || c.said < c.all*8/10) {
		t.Errorf("%d of %d pairs charged, %d free, %d answered by the oracle: the draw proves little", c.charged, c.all, c.free, c.said)
	}
}

func counts(m map[string]int) string {
	var out []string
	for _, k := range slices.SortedFunc(maps.Keys(m), func(a, b string) int { return cmp.Or(m[b]-m[a], strings.Compare(a, b)) }) {
		out = append(out, fmt.Sprintf("%s %d", k, m[k]))
	}
	return strings.Join(out[:min(len(out), 40)], ", ")
}

// A seed draws the same pair each time. Otherwise a failure could not be repeated.
func TestExact_SeedsRepeat(t *testing.T) {
	every, err := catalogue()
	if err != nil {
		t.Fatal(err)
	}
	draw := func(seed uint64) string {
		random, errs := compiled((&definitions{draw: newDraw(seed, 2)}).definition(), every)
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		out := random[0].source
		for n := range uint64(5) {
			p := drawPair(newDraw(seed+n, 3), random[0])
			out += fmt.Sprintf("\n%s\n%s\n%v", p.oldText, p.newText, p.uncovered)
		}
		return out
	}
	for seed := range uint64(4) {
		if a, b := draw(seed), draw(seed); a != b {
			t.Errorf("seed %d draws\n%s\nand then\n%s", seed, a, b)
		}
	}
}
