package exact

import (
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/verbs"
)

// charge is a requirement in the terms of the oracle.
type charge struct {
	operation, path string
	chain           []verbs.Verb
	barrier         int
	// top is the name of the top-level field, "" for the object. The path does not tell it, if the name contains a dot.
	top string
}

func (c charge) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s:", c.operation, c.path)
	for i, v := range c.chain {
		if i == c.barrier {
			b.WriteString(" |")
		}
		b.WriteString(" " + v.String())
	}
	if c.barrier == len(c.chain) {
		b.WriteString(" | no verb")
	}
	return b.String()
}

// oracle computes the charges of one pair, or that the pair must be refused.
type oracle struct {
	*subject
	create   bool
	old, new *value
	canon    map[*value]string
	// tokens replace the values that Compare cannot hold.
	tokens  tokens
	charges []charge
	// refused are the paths at which an object does not fit the schema.
	refused []string
	// lists are the lists that were charged because of ambiguous keys (D5), with their keys.
	lists map[string]bool
	// owned is the place where managedFields differ.
	owned *place
	// owning says that the oracle compares owners, so that later changes of the values are unknown.
	owning bool
	// written are the paths that are free because the server wrote them (D13).
	written []string
}

// charges computes the charges of a pair.
func (s *subject) charges(old, new *value) (asked *oracle, refused []string, err error) {
	o := &oracle{subject: s, create: old == nil, old: old, new: new, canon: map[*value]string{}, lists: map[string]bool{}}
	o.tokens = newTokens(old, new)
	root := o.enter(place{barrier: -1}, s.root, s.kind.Root, "", nil, old, new)
	defer o.exists(root)
	if (s.irregular(old) || s.irregular(new)) && !o.same(old, new) {
		o.whole(root)
		return o, nil, nil
	}
	err = o.judge(root)
	if len(o.refused) > 0 || err != nil {
		return nil, o.refused, err
	}
	// In a stored object, a part that consists of defaults only may come from the API server. But if nothing else changed, the part did
	// appear.
	if s.stored == nil || len(o.charges) == 0 {
		o.appeared(root)
	}
	if s.kind.IsScale() && s.stored == nil && old != nil {
		o.scaled(root)
	}
	o.ownership(root)
	// Changes that a version makes to fields that it does not show are visible in the stored object.
	if s.stored == nil && (s.kind.Lossy() || o.create || len(o.charges) > 0) {
		if s.kind.Lossy() {
			o.charge(root, modified)
		}
		for _, v := range s.kind.HiddenBarriers(s.uncovered) {
			o.charges = append(o.charges, charge{operation: modified, path: root.shown(), chain: []verbs.Verb{v}})
		}
	}
	return o, nil, nil
}

// exists charges the existence of a new object, whatever else it has (C5).
func (o *oracle) exists(root place) {
	if o.create {
		root.chain = append(slices.Clone(root.chain), verbs.Creation())
		o.charge(root, created)
	}
}

// ask returns the charges, sorted; or the paths of which one must be in the error. The third result is an error of the oracle itself: it
// gives no result.
func (s *subject) ask(old, new *value) (charges, refused []string, err error) {
	o, refused, err := s.charges(old, new)
	if err != nil || len(refused) > 0 {
		return nil, refused, err
	}
	for _, c := range o.charges {
		charges = append(charges, c.String())
	}
	slices.Sort(charges)
	return charges, nil, nil
}

// judge calls Compare for one place, and interprets its result.
func (o *oracle) judge(top place) error {
	before, after := o.views(top)
	if before == nil {
		before = map[string]any{} // The object is new.
	}
	if len(o.refused) > 0 {
		return nil
	}
	loose := typed.ParseableType{Schema: o.loose, TypeRef: loosenRef(top.ref)}
	lhs, err := loose.FromUnstructured(before, typed.AllowDuplicates)
	if err != nil {
		return fmt.Errorf("old: %w", err)
	}
	rhs, err := loose.FromUnstructured(after, typed.AllowDuplicates)
	if err != nil {
		return fmt.Errorf("new: %w", err)
	}
	comparison, err := lhs.Compare(rhs)
	if err != nil {
		return err
	}
	return o.interpret(top, comparison)
}

const (
	created   = "created"
	added     = "added"
	removed   = "removed"
	modified  = "modified"
	reordered = "reordered"
	owned     = "ownership"
)

func operationOf(old, new *value) string {
	switch {
	case old == nil:
		return added
	case new == nil:
		return removed
	}
	return modified
}

func (o *oracle) charge(p place, operation string) {
	o.charges = append(o.charges, o.chargesOf(p, operation)...)
}

// chargesOf returns the charges of a place: its chain, and the barriers beside it.
func (o *oracle) chargesOf(p place, operation string) []charge {
	out := []charge{{operation, p.shown(), p.chain, p.barrier, p.top}}
	for _, b := range p.beside {
		out = append(out, charge{operation, p.shown(), slices.Concat(b.verbs, p.chain[b.from:]), 0, p.top})
	}
	return out
}

func (o *oracle) text(v *value) string {
	if v == nil {
		return ""
	}
	c, ok := o.canon[v]
	if !ok {
		c = v.canonical()
		o.canon[v] = c
	}
	return c
}

func (o *oracle) same(a, b *value) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a == b || o.text(a) == o.text(b)
}

// caused reports whether the server wrote the place because of a change of another one (D13).
func (o *oracle) caused(w *schema.Written, p place) bool {
	cases := w.Cases()
	for i := range cases {
		c := &cases[i]
		original, once := o.new.follow(c.Original())
		before, onceBefore := o.old.follow(c.Cause())
		after, onceAfter := o.new.follow(c.Cause())
		if p.barred() && !c.Constant() || c.OnCreate() != o.create || !once || !onceBefore || !onceAfter {
			continue
		}
		if lacks, once := o.new.follow(c.Without()); len(c.Without()) > 0 && (!once || lacks != nil) {
			continue
		}
		if len(c.Cause()) == 0 {
			after = nil
		} else if o.same(before, after) {
			continue
		}
		if (o.create || len(c.Cause()) > 0) && c.ByServer(p.old.native(), p.new.native(), after.native(), original.native()) {
			return true
		}
	}
	return false
}

// follow goes from name to name, and reports whether every other reader would go the same way.
func (v *value) follow(names []string) (*value, bool) {
	for _, name := range names {
		if v.is(object) && v.count(name) > 1 {
			return nil, false
		}
		v = v.get(name)
	}
	return v, true
}

// free reports whether a place needs no verb: a field that the server writes (D7, D13), owners (D8), and on CREATE the identity and
// declared defaults (C5).
func (o *oracle) free(p place) bool {
	if o.stored != nil {
		return o.passes(p)
	}
	switch p.node.Role() {
	case schema.RoleServerWritten:
		// The API server keeps the generation of a new object, where it does not count.
		if !o.create || p.path != ".metadata.generation" || p.new == nil || p.new.kind == null ||
			o.same(p.new, numberValue("0")) || o.same(p.new, numberValue("1")) {
			return true
		}
	case schema.RoleOwnership:
		return true
	case schema.RoleIdentity:
		if o.create {
			return true
		}
	case schema.RoleNone:
	}
	if w := p.node.Written(); w != nil && o.caused(w, p) {
		o.written = append(o.written, p.path)
		return true
	}
	return o.create && o.isDefault(p)
}

func (o *oracle) isDefault(p place) bool {
	if p.node.Default() == nil {
		return false
	}
	fallback, err := parse(p.node.Default())
	return err == nil && fallback.canonical() == o.text(p.new)
}

// unasked reports whether a new object has the value that the server gives if the client sends none: a declared default (C5) or a constant
// (D13). Behind a barrier only these values are free.
func (o *oracle) unasked(p place) bool {
	p.barrier = max(p.barrier, 0)
	if o.stored != nil {
		return o.passes(p)
	}
	w := p.node.Written()
	return o.isDefault(p) || w != nil && o.caused(w, p)
}
