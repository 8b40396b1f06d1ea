package exact

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/verbs"
)

// charge is what a requirement says, in the oracle's own terms.
type charge struct {
	operation, path string
	chain           []verbs.Verb
	barrier         int
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
		b.WriteString(" | nobody")
	}
	return b.String()
}

// oracle says what one pair must be charged with, or that it must be refused.
type oracle struct {
	*subject
	create   bool
	old, new *value
	canon    map[*value]string
	// tokens stand for what Compare cannot hold.
	tokens  tokens
	charges []charge
	// refused are the paths at which an object does not fit the schema.
	refused []string
	// lists are those that were charged because of ambiguous keys (D5), and their keys.
	lists map[string]bool
	// owned is where managedFields differ.
	owned *place
	// owning: owners are compared, and what becomes of values is not known.
	owning bool
	// apart are the places that Compare is still to be asked about.
	apart []place
}

// charges finds what a pair is charged with.
func (s *subject) charges(old, new *value) (asked *oracle, refused []string, err error) {
	o := &oracle{subject: s, create: old == nil, old: old, new: new, canon: map[*value]string{}, lists: map[string]bool{}}
	o.tokens = newTokens(old, new)
	root := o.enter(place{barrier: -1}, s.root, s.kind.Root, "", nil, old, new)
	// An item with a name twice is asked about by itself: Compare would not find it by its keys.
	o.apart = []place{root}
	for len(o.apart) > 0 && err == nil {
		top := o.apart[0]
		o.apart = o.apart[1:]
		err = o.judge(top)
	}
	if len(o.refused) > 0 || err != nil {
		return nil, o.refused, err
	}
	// In what is stored, a part of nothing but defaults may be the API server's; but if there is nothing else, it did appear.
	if s.stored == nil || len(o.charges) == 0 {
		o.appeared(root)
	}
	if s.kind.IsScale() && s.stored == nil && old != nil {
		o.scaled(root)
	}
	o.ownership(root)
	if o.create && len(o.charges) == 0 {
		o.charge(root, added)
	}
	// What a version changes without showing it can be seen in what is stored.
	hides := s.kind.Lossy() || slices.ContainsFunc(o.charges, func(c charge) bool { return s.kind.MayHide(topOf(c.path)) })
	if hides && s.stored == nil {
		if s.kind.Lossy() {
			o.charge(root, modified)
		}
		for _, v := range s.kind.HiddenBarriers(s.uncovered) {
			o.charges = append(o.charges, charge{modified, root.shown(), []verbs.Verb{v}, 0})
		}
	}
	return o, nil, nil
}

// topOf returns the name of the top-level field of a path, "" for the root.
func topOf(path string) string {
	if quoted, err := strconv.QuotedPrefix(strings.TrimPrefix(path, "[")); err == nil {
		name, _ := strconv.Unquote(quoted) // It is quoted.
		return name
	}
	name := strings.TrimPrefix(path, ".")
	if end := strings.IndexAny(name, ".["); end >= 0 {
		name = name[:end]
	}
	return name
}

// ask returns the charges, sorted; or the paths of which one must be in the error. The error here is the
// oracle's own: it cannot say.
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

// judge asks Compare about one place, and interprets what it says.
func (o *oracle) judge(top place) error {
	before, after := o.topViews(top)
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
	o.charges = append(o.charges, o.chargeOf(p, operation))
}

func (o *oracle) chargeOf(p place, operation string) charge {
	return charge{operation, p.shown(), p.chain, p.barrier}
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

// caused reports whether the server wrote the place because of another one that changed (D13).
func (o *oracle) caused(w *schema.Written, p place) bool {
	cases := w.Cases()
	for i := range cases {
		c := &cases[i]
		original, once := o.new.follow(c.Original())
		before, onceBefore := o.old.follow(c.Cause())
		after, onceAfter := o.new.follow(c.Cause())
		if p.barrier >= 0 && !c.Constant() || c.OnCreate() != o.create || !once || !onceBefore || !onceAfter {
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

// follow goes from name to name, and reports whether no other reader could have gone another way.
func (v *value) follow(names []string) (*value, bool) {
	for _, name := range names {
		if v.is(object) && v.count(name) > 1 {
			return nil, false
		}
		v = v.get(name)
	}
	return v, true
}

// free reports whether a place is passed over: what the server writes (D7, D13), owners (D8), and on CREATE
// the identity and declared defaults (C5).
func (o *oracle) free(p place) bool {
	if o.stored != nil {
		return o.passes(p)
	}
	switch p.node.Role() {
	case schema.RoleServerWritten, schema.RoleOwnership:
		return true
	case schema.RoleIdentity:
		if o.create {
			return true
		}
	case schema.RoleNone:
	}
	if w := p.node.Written(); w != nil && o.caused(w, p) {
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

// unasked reports whether a new object has in a place what the server gives to a client that says nothing of it: a declared
// default (C5) or a constant (D13), which are all that is free behind a barrier.
func (o *oracle) unasked(p place) bool {
	p.barrier = max(p.barrier, 0)
	if o.stored != nil {
		return o.passes(p)
	}
	w := p.node.Written()
	return o.isDefault(p) || w != nil && o.caused(w, p)
}
