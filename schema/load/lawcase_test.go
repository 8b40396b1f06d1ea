package load

import (
	"flag"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/schema"
)

// A case is what a law is about in one round. This file runs laws, and reduces a case that breaks one.

var (
	lawRounds = flag.Int("rounds", 0, "how many rounds each law has; 0 for a few, always the same")
	lawSeed   = flag.Uint64("seed", 1, "where chance begins; a failure prints the one to begin from with -rounds=1")
)

// lawPair is a change of an object, with what laws do with it.
type lawPair struct {
	old, new values
	// isNew means that the new object is created.
	isNew bool
	// isPod means that the other object is the Pod that an API server makes, and not only what the template has.
	isPod bool
	// spelled are other spellings of places.
	spelled map[string]string
	// part are the places of which only a part of the change has the new value.
	part map[string]bool
	// order is another order of members and items.
	order order
}

// lawCase is what one round draws.
type lawCase struct {
	scope
	documents []lawDocument
	// added are further documents, which the law compares with none. They stand before the documents, or after them.
	added   []lawDocument
	isFirst bool
	// places are those of the kind that the documents speak of.
	places []string
	pairs  []lawPair
	users  []lawUser
	// more are verbs that a user gets in addition.
	more lawUser
}

// all returns all documents.
func (c *lawCase) all() []lawDocument {
	if c.isFirst {
		return slices.Concat(c.added, c.documents)
	}
	return slices.Concat(c.documents, c.added)
}

// drawCase draws documents and changes of a kind. The changes are in a few places, of which the documents speak. They are changes
// of the kind, or of Pods.
func drawCase(r *rand.Rand, k, changed *lawKind, conditions bool, may string) *lawCase {
	c := &lawCase{scope: scope{kind: k, definition: r.IntN(6)}, isFirst: r.IntN(2) == 0, more: drawUser(r, "granular")}
	places := changed.places()
	r.Shuffle(len(places), func(i, j int) { places[i], places[j] = places[j], places[i] })
	places = places[:min(len(places), 14)]
	inKind := places
	if changed != k {
		inKind = nil
		for _, p := range places {
			inKind = append(inKind, k.in(p))
		}
	}
	c.places = inKind
	c.more.held["patch"] = r.IntN(2) == 0
	c.documents = drawDocuments(r, k, inKind, conditions)
	for range 15 {
		p := lawPair{isNew: r.IntN(4) == 0, isPod: r.IntN(2) == 0, spelled: map[string]string{}, part: map[string]bool{}, order: order{1 + r.Uint64N(1000), 1 + r.Uint64N(1000)}}
		p.old, p.new = drawPair(r, places)
		for _, place := range places {
			p.spelled[place], p.part[place] = respell(r, place), r.IntN(2) == 0
		}
		c.pairs = append(c.pairs, p)
	}
	for range 6 {
		c.users = append(c.users, drawUser(r, may))
	}
	return c
}

// law is a sentence about all cases.
type law struct {
	rounds int
	// draw returns nil for a case that the law is not about.
	draw func(r *rand.Rand) *lawCase
	// broken returns how a change of a case breaks the law, empty if it does not.
	broken func(t *testing.T, w *lawWorld, c *lawCase, p *lawPair) string
	// prepare runs before the changes. It returns false if the documents have a fault.
	prepare func(t *testing.T, w *lawWorld, c *lawCase) bool
}

// breaks returns how a case breaks the law, and whether the documents have no fault.
func (l *law) breaks(t *testing.T, w *lawWorld, c *lawCase) (string, bool) {
	t.Helper()
	if !l.prepare(t, w, c) {
		return "", false
	}
	for i := range c.pairs {
		if how := l.broken(t, w, c, &c.pairs[i]); how != "" {
			return how, true
		}
	}
	return "", true
}

// hold draws cases until one breaks the law, and reports the smallest that still does.
func (l *law) hold(t *testing.T) {
	t.Helper()
	w, rounds, tried := newLawWorld(t), l.rounds, 0
	if *lawRounds > 0 {
		rounds = *lawRounds
	} else if testing.Short() {
		rounds = (rounds + 3) / 4
	}
	for i := range rounds {
		seed := *lawSeed + uint64(i)
		w.compiled = map[string]*schema.Schema{}
		c := l.draw(rand.New(rand.NewPCG(seed, 1)))
		if c == nil {
			continue
		}
		how, valid := l.breaks(t, w, c)
		if valid {
			tried++
		}
		if how != "" {
			c, how = l.smallest(t, w, c, how)
			t.Fatalf("run it again with -rounds=1 -seed=%d\n%s\n%s", seed, how, c)
		}
	}
	if rounds >= 10 && tried < rounds/5 {
		t.Errorf("only %d of %d rounds had documents without a fault", tried, rounds)
	}
}

// smallest leaves out of a case what the law is broken without.
func (l *law) smallest(t *testing.T, w *lawWorld, c *lawCase, how string) (*lawCase, string) {
	t.Helper()
	for again := true; again; {
		again = false
		for smaller := range c.smaller() {
			if still, _ := l.breaks(t, w, smaller); still != "" {
				c, how, again = smaller, still, true
				break
			}
		}
	}
	return c, how
}

// smaller returns cases that lack one thing each.
func (c *lawCase) smaller() iter.Seq[*lawCase] {
	return func(yield func(*lawCase) bool) {
		with := func(change func(*lawCase)) bool {
			out := *c
			change(&out)
			return yield(&out)
		}
		pair := func(change func(*lawPair)) bool {
			p := c.pairs[0]
			p.old, p.new, p.spelled, p.part = maps.Clone(p.old), maps.Clone(p.new), maps.Clone(p.spelled), maps.Clone(p.part)
			change(&p)
			return with(func(out *lawCase) { out.pairs = []lawPair{p} })
		}
		for i := range c.pairs {
			if len(c.pairs) > 1 && !with(func(out *lawCase) { out.pairs = c.pairs[i : i+1] }) {
				return
			}
		}
		for i := range c.users {
			if len(c.users) > 1 && !with(func(out *lawCase) { out.users = c.users[i : i+1] }) {
				return
			}
		}
		for fewer := range fewerDocuments(c.documents) {
			if !with(func(out *lawCase) { out.documents = fewer }) {
				return
			}
		}
		for fewer := range fewerDocuments(c.added) {
			if !with(func(out *lawCase) { out.added = fewer }) {
				return
			}
		}
		if len(c.pairs) != 1 {
			return
		}
		p := c.pairs[0]
		for _, place := range slices.Sorted(maps.Keys(p.spelled)) {
			_, was := p.old[place]
			_, is := p.new[place]
			if (was || is) && !pair(func(p *lawPair) { delete(p.old, place); delete(p.new, place) }) ||
				was && p.old[place] != p.new[place] && !pair(func(p *lawPair) { p.new[place] = p.old[place] }) ||
				p.spelled[place] != place && !pair(func(p *lawPair) { p.spelled[place] = place }) {
				return
			}
		}
		if p.order.items != 0 && !pair(func(p *lawPair) { p.order.items = 0 }) || p.isNew && !pair(func(p *lawPair) { p.isNew = false }) || p.isPod && !pair(func(p *lawPair) { p.isPod = false }) {
			return
		}
		for fewer := range fewerVerbs(c.more) {
			if !with(func(out *lawCase) { out.more = fewer }) {
				return
			}
		}
		if len(c.users) == 1 {
			for fewer := range fewerVerbs(c.users[0]) {
				if !with(func(out *lawCase) { out.users = []lawUser{fewer} }) {
					return
				}
			}
		}
	}
}

// fewerDocuments returns the documents without one of them, or without one entry.
func fewerDocuments(documents []lawDocument) iter.Seq[[]lawDocument] {
	return func(yield func([]lawDocument) bool) {
		for i, d := range documents {
			if len(documents) > 1 && !yield(slices.Delete(slices.Clone(documents), i, i+1)) {
				return
			}
			for j := range d.entries {
				fewer := slices.Clone(documents)
				fewer[i].entries = slices.Delete(slices.Clone(d.entries), j, j+1)
				if len(d.entries) > 1 && !yield(fewer) {
					return
				}
			}
		}
	}
}

// fewerVerbs returns the user without one verb, and without those that no change has asked for.
func fewerVerbs(u lawUser) iter.Seq[lawUser] {
	return func(yield func(lawUser) bool) {
		if u.may != "" && !yield(lawUser{held: maps.Clone(u.held)}) {
			return
		}
		for _, verb := range slices.Sorted(maps.Keys(u.held)) {
			fewer := lawUser{held: maps.Clone(u.held)}
			delete(fewer.held, verb)
			if u.held[verb] && !yield(fewer) {
				return
			}
		}
	}
}

// String writes what the case has.
func (c *lawCase) String() string {
	out := []string{fmt.Sprintf("%s, definition %d", c.kind.gvk, c.definition)}
	out = append(out, texts(c.documents...)...)
	if len(c.added) > 0 {
		out = append(append(out, fmt.Sprintf("further documents, which come first: %t", c.isFirst)), texts(c.added...)...)
	}
	for i := range c.users {
		out = append(out, "user: "+c.users[i].String())
	}
	return strings.Join(append(out, "further verbs: "+c.more.String()), "\n")
}

// requirements returns what a change of an object needs.
func requirements(t *testing.T, s *schema.Schema, k *lawKind, old, new []byte) []fieldperm.Requirement {
	t.Helper()
	kind, err := s.Kind(k.gvk)
	if err != nil {
		t.Fatal(err)
	}
	sets, err := s.Uncovered(t.Context(), schema.ResourceRef{Group: k.gvk.Group, Version: k.gvk.Version, Resource: k.resource}, nil)
	if err != nil {
		t.Fatal(err)
	}
	out, err := fieldperm.Diff(t.Context(), old, new, kind, sets)
	if err != nil {
		t.Fatalf("%v: %s\n%s", err, old, new)
	}
	return out
}

// needsOf writes requirements, sorted.
func needsOf(required []fieldperm.Requirement) string {
	var out []string
	for i := range required {
		out = append(out, fmt.Sprint(required[i].Path.String(), " ", required[i].Operation, " ", required[i].Candidates(), required[i].Barred()))
	}
	slices.Sort(out)
	return strings.Join(slices.Compact(out), "\n")
}
