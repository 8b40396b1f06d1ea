package load

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// The laws of this file say that a decision is monotone: more barriers allow less, more verbs allow more, and a document lifts no barrier of
// another place. lawkinds_test.go and lawworld_test.go draw what they are about, and lawcase_test.go runs them.

// everyVerb and ownVerbs begin the verbs that a drawn user may hold: all, and those of documents.
const everyVerb, ownVerbs = "granular:", "granular:example.com/"

func pickKind(r *rand.Rand) *lawKind { return lawKinds[r.IntN(len(lawKinds))] }

// pickFast picks a vault more often than all other kinds together. It compiles fast, and most of its entries meet.
func pickFast(r *rand.Rand) *lawKind {
	if r.IntN(6) > 0 {
		return lawVaults[r.IntN(len(lawVaults))]
	}
	return pickKind(r)
}

// compiles prepares a case with all its documents.
func compiles(t *testing.T, w *lawWorld, c *lawCase) bool {
	t.Helper()
	return w.compile(t, c.scope, texts(c.all()...)...) != nil
}

// compilesBoth prepares a case without the further documents as well.
func compilesBoth(t *testing.T, w *lawWorld, c *lawCase) bool {
	t.Helper()
	return compiles(t, w, c) && w.compile(t, c.scope, texts(c.documents...)...) != nil
}

// allowsMore returns whether the further documents of a case allow a change.
func allowsMore(t *testing.T, w *lawWorld, c *lawCase, p *lawPair) string {
	t.Helper()
	old, new := p.old.json(order{}), p.new.json(order{})
	if p.isNew {
		old = nil
	}
	before := requirements(t, w.compile(t, c.scope, texts(c.documents...)...), c.kind, old, new)
	after := requirements(t, w.compile(t, c.scope, texts(c.all()...)...), c.kind, old, new)
	for _, user := range c.users {
		if mayMake(t, user, after) && !mayMake(t, user, before) {
			return fmt.Sprintf("the further documents allow the change\n%s\n%s\nbefore:\n%s\nafter:\n%s", old, new, needsOf(before), needsOf(after))
		}
	}
	return ""
}

// TestC2_LawASetNeverAllowsMore: a barrier only takes verbs from what covers a change, for a user with update as well as without.
func TestC2_LawASetNeverAllowsMore(t *testing.T) {
	l := law{rounds: 16, prepare: compilesBoth, broken: allowsMore, draw: func(r *rand.Rand) *lawCase {
		k := pickKind(r)
		c := drawCase(r, k, k, true, everyVerb)
		c.added = []lawDocument{drawSet(r, []*lawKind{k, lawPod}[r.IntN(2)])}
		return c
	}}
	l.hold(t)
}

// TestC1_LawAVerbMoreNeverRefuses: a user with more verbs may do more.
func TestC1_LawAVerbMoreNeverRefuses(t *testing.T) {
	l := law{rounds: 24, prepare: compiles, draw: func(r *rand.Rand) *lawCase {
		k := pickKind(r)
		c := drawCase(r, k, k, true, everyVerb)
		c.added = []lawDocument{drawSet(r, []*lawKind{k, lawPod}[r.IntN(2)])}
		return c
	}, broken: func(t *testing.T, w *lawWorld, c *lawCase, p *lawPair) string {
		old, new := p.old.json(order{}), p.new.json(order{})
		required := requirements(t, w.compile(t, c.scope, texts(c.all()...)...), c.kind, old, new)
		for _, user := range c.users {
			if mayMake(t, user, required) && !mayMake(t, either{user, c.more}, required) {
				return fmt.Sprintf("the further verbs refuse the change\n%s\n%s\n%s", old, new, needsOf(required))
			}
		}
		return ""
	}}
	l.hold(t)
}

// TestC2_LawDocumentsOfOtherPlacesLiftNothing: a document has effect at the paths that it names. A barrier of another document stays.
func TestC2_LawDocumentsOfOtherPlacesLiftNothing(t *testing.T) {
	l := law{rounds: 90, prepare: compilesBoth, broken: allowsMore, draw: func(r *rand.Rand) *lawCase {
		k := pickFast(r)
		c := drawCase(r, k, k, true, ownVerbs+"v")
		more := drawDocuments(r, k, c.places, false)[0]
		for i := range more.entries {
			more.entries[i].verb = strings.Replace(more.entries[i].verb, "/v", "/n", 1)
		}
		if d := c.documents[r.IntN(len(c.documents))]; d.kind == more.kind && r.IntN(2) == 0 {
			// Documents meet most where one speaks of a key and the other of its prefix or of all keys.
			more.entries = more.entries[:1]
			more.entries[0].path = oneKey.Replace(d.entries[0].path)
		}
		c.added = []lawDocument{more}
		for i := range c.users {
			c.users[i].held["update"] = true
		}
		if more.namesPlacesOf(c.documents) {
			return nil
		}
		return c
	}}
	l.hold(t)
}

var oneKey = strings.NewReplacer(`["a/"]`, `["a/x"]`, `["example.com/"]`, `["example.com/x"]`, "plain[*]", `plain["x"]`, "items[*]", `items["x"]`)

// namesPlacesOf reports whether a document has a path of other documents, in another version too. It also reports entries for keys of which the verb of the
// catalogue stands apart.
func (d lawDocument) namesPlacesOf(documents []lawDocument) bool {
	return d.any(func(e lawEntry) bool {
		return strings.Contains(e.path, "kubernetes.io/") || slices.ContainsFunc(documents, func(other lawDocument) bool {
			return d.kind.gvk.Kind == other.kind.gvk.Kind && other.any(func(o lawEntry) bool { return o.path == e.path })
		})
	})
}

func (d lawDocument) any(test func(lawEntry) bool) bool { return slices.ContainsFunc(d.entries, test) }
