package load

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/fieldperm"
)

// The laws of this file say what makes no difference to a decision.

// onlyUpdate is a user whose decision is that on barriers.
var onlyUpdate = lawUser{held: map[string]bool{"update": true}}

// TestC2_LawOrderDoesNotMatter: which document comes first does not decide whether update is enough. The order of members of objects does not matter at all, nor
// that of the items of a list with keys where it does not change (D3).
func TestC2_LawOrderDoesNotMatter(t *testing.T) {
	reordered := func(c *lawCase) []string {
		return texts(slices.SortedFunc(slices.Values(c.documents), func(a, b lawDocument) int { return cmp.Compare(a.rank, b.rank) })...)
	}
	l := law{rounds: 60, draw: func(r *rand.Rand) *lawCase {
		k := pickFast(r)
		c := drawCase(r, k, k, true, everyVerb)
		for i := range c.documents {
			c.documents[i].version = "" // Two verbs for a field in two versions are a barrier for all changes (C3).
		}
		return c
	}, prepare: func(t *testing.T, w *lawWorld, c *lawCase) bool {
		return compiles(t, w, c) && w.compile(t, c.scope, reordered(c)...) != nil
	}, broken: func(t *testing.T, w *lawWorld, c *lawCase, p *lawPair) string {
		one, other := w.compile(t, c.scope, texts(c.documents...)...), w.compile(t, c.scope, reordered(c)...)
		old, new := p.old.json(order{}), p.new.json(order{})
		first, second := requirements(t, one, c.kind, old, new), requirements(t, other, c.kind, old, new)
		if mayMake(t, onlyUpdate, first) != mayMake(t, onlyUpdate, second) {
			return fmt.Sprintf("update is enough in one order of documents\n%s\n%s\n%s\nin the other order:\n%s", old, new, needsOf(first), needsOf(second))
		}
		by := p.order
		if c.kind.isFree {
			by.items = 0
		}
		// The old object has another order of members, and the same order of items.
		was, is := p.old.json(order{by.members + 1, by.items}), p.new.json(by)
		if got, want := needsOf(requirements(t, one, c.kind, was, is)), needsOf(first); got != want {
			return fmt.Sprintf("the order of members or items changes what is needed\n%s\n%s\n%s\n%s\ngot:\n%s\nwant:\n%s", old, new, was, is, got, want)
		}
		return ""
	}}
	l.hold(t)
}

// TestA4_LawKindsAreCompiledAlike alone or with others, whose documents are about other kinds, and with the trace of a command or without.
func TestA4_LawKindsAreCompiledAlike(t *testing.T) {
	whole := func(c *lawCase, traced bool) scope {
		return scope{kind: c.kind, definition: c.definition, isWhole: true, traced: traced}
	}
	l := law{rounds: 16, draw: func(r *rand.Rand) *lawCase {
		k := pickKind(r)
		c := drawCase(r, k, k, true, everyVerb)
		other := pickKind(r)
		if other.gvk.Kind == k.gvk.Kind || other == lawPod {
			return nil
		}
		c.added = drawDocuments(r, other, other.places(), true)
		if k.makesPods() {
			c.added = slices.DeleteFunc(c.added, func(d lawDocument) bool { return d.kind == lawPod })
		}
		c.added = append(c.added, asIn(other, c.documents)...)
		return c
	}, prepare: func(t *testing.T, w *lawWorld, c *lawCase) bool {
		return w.compile(t, c.scope, texts(c.documents...)...) != nil && w.compile(t, whole(c, false), texts(c.all()...)...) != nil && w.compile(t, whole(c, true), texts(c.all()...)...) != nil
	}, broken: func(t *testing.T, w *lawWorld, c *lawCase, p *lawPair) string {
		old, new := p.old.json(order{}), p.new.json(order{})
		alone := needsOf(requirements(t, w.compile(t, c.scope, texts(c.documents...)...), c.kind, old, new))
		for _, traced := range []bool{false, true} {
			if got := needsOf(requirements(t, w.compile(t, whole(c, traced), texts(c.all()...)...), c.kind, old, new)); got != alone {
				return fmt.Sprintf("alone and with others (traced: %t) the change needs\n%s\n%s\n%s\nwith others:\n%s", traced, old, new, alone, got)
			}
		}
		return ""
	}}
	l.hold(t)
}

// asIn returns documents about the templates of another kind that say almost the same: a barrier is none, and what is none is one.
func asIn(other *lawKind, documents []lawDocument) []lawDocument {
	var out []lawDocument
	for _, d := range documents {
		about := lawDocument{kind: other}
		for _, e := range d.entries {
			ofPods := e.ofPods
			if d.kind == lawPod {
				ofPods = e.path
			}
			if ofPods == "" || other.template == "" || other.gvk.Kind == "ControllerRevision" || other.gvk.Kind == "Fleet" {
				continue
			}
			e.path = "." + strings.ReplaceAll(other.template, "|", ".") + ofPods
			if e.more = map[bool]string{true: ", excluded: true"}[e.more == ""]; !about.any(func(a lawEntry) bool { return a.path == e.path }) {
				about.entries = append(about.entries, e)
			}
		}
		if len(about.entries) > 0 {
			out = append(out, about)
		}
	}
	return out
}

// TestC3_LawEqualVersionsAreGuardedAlike: a field with the same path and type in two versions is one field, whichever version a document names.
func TestC3_LawEqualVersionsAreGuardedAlike(t *testing.T) {
	l := law{rounds: 120, prepare: compiles, draw: func(r *rand.Rand) *lawCase {
		c := drawCase(r, lawVaults[0], lawVaults[0], true, everyVerb)
		if aKeyIsTakenOutInOneVersion(c.documents) {
			return nil
		}
		return c
	}, broken: func(t *testing.T, w *lawWorld, c *lawCase, p *lawPair) string {
		old, new := p.old.json(order{}), p.new.json(order{})
		s := w.compile(t, c.scope, texts(c.documents...)...)
		first, second := requirements(t, s, lawVaults[0], old, new), requirements(t, s, lawVaults[1], old, new)
		if mayMake(t, onlyUpdate, first) != mayMake(t, onlyUpdate, second) {
			return fmt.Sprintf("update is enough in one version\n%s\n%s\nv1:\n%s\nv2:\n%s", old, new, needsOf(first), needsOf(second))
		}
		return ""
	}}
	l.hold(t)
}

// aKeyIsTakenOutInOneVersion is an exclusion. It reports whether two documents, of which one names a version, have an entry for one key.
func aKeyIsTakenOutInOneVersion(documents []lawDocument) bool {
	for i, d := range documents {
		for j, other := range documents {
			if i != j && d.version != "" && d.any(func(e lawEntry) bool {
				return strings.Contains(e.path, `["`) && other.any(func(o lawEntry) bool { return o.path == e.path })
			}) {
				return true
			}
		}
	}
	return false
}

// TestD1_LawPartsOfAnAllowedChangeAreAllowed: what is charged is each leaf that changes, so that no verb is needed for a part only. Conditions of barriers
// are about whole values, which may have another value half-way.
func TestD1_LawPartsOfAnAllowedChangeAreAllowed(t *testing.T) {
	l := law{rounds: 24, prepare: compiles, draw: func(r *rand.Rand) *lawCase {
		k := pickKind(r)
		c := drawCase(r, k, k, false, everyVerb)
		c.added = []lawDocument{drawSet(r, []*lawKind{k, lawPod}[r.IntN(2)])}
		return c
	}, broken: func(t *testing.T, w *lawWorld, c *lawCase, p *lawPair) string {
		was, is := maps.Clone(p.old), maps.Clone(p.new)
		keepItems(was, is)
		part := maps.Clone(was)
		for place, taken := range p.part {
			if value, has := is[place]; has && taken {
				part[place] = value
			} else if !has && taken {
				delete(part, place)
			}
		}
		old, new, half := was.json(order{}), is.json(order{}), part.json(order{})
		s := w.compile(t, c.scope, texts(c.all()...)...)
		whole, some := requirements(t, s, c.kind, old, new), requirements(t, s, c.kind, old, half)
		for _, user := range c.users {
			if mayMake(t, user, whole) && !mayMake(t, user, some) {
				return fmt.Sprintf("the whole is allowed, and a part is not\n%s\n%s\n%s\nthe part:\n%s\nthe whole:\n%s", old, half, new, needsOf(some), needsOf(whole))
			}
		}
		return ""
	}}
	l.hold(t)
}

// either is a user with the verbs of both.
type either struct{ one, other lawUser }

// Authorize implements fieldperm.Authorizer.
func (u either) Authorize(ctx context.Context, verb string, more bool) (fieldperm.AuthorizerDecision, error) {
	if u.one.holds(verb) {
		return u.one.Authorize(ctx, verb, more)
	}
	return u.other.Authorize(ctx, verb, more)
}
