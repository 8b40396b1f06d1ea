package access

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/fieldperm/fieldperm/internal/fieldtree"
	"github.com/fieldperm/fieldperm/verbs"
)

// How is the kind of a grant.
type How string

// These are the kinds, the strongest first.
const (
	// Wildcard: a rule with the verb "*" grants every verb of the way. No barrier stops it.
	Wildcard How = "wildcard"
	// Generic: the verb of the request. At a barrier, with a verb that passes it.
	Generic How = "generic"
	// Granular: the marker with a verb of each chain.
	Granular How = "granular"
	// Conditional: any of these, under a condition.
	Conditional How = "conditional"
)

// strength orders the kinds.
var strength = []How{Wildcard, Generic, Granular}

// Way is one way in which a subject may change a field: verbs that are enough together.
type Way struct {
	// By is Wildcard, Generic or Granular.
	By         How
	Verbs      []Held
	Conditions []Condition
}

// Held is a verb with what grants it. Any of the grants is enough.
type Held struct {
	Verb   string
	Grants []Grant
}

// How returns By, or Conditional if there is a condition.
func (w *Way) How() How {
	if len(w.Conditions) > 0 {
		return Conditional
	}
	return w.By
}

// Texts returns the verbs.
func (w *Way) Texts() []string {
	out := make([]string, len(w.Verbs))
	for i, v := range w.Verbs {
		out[i] = v.Verb
	}
	return out
}

// key is equal for two ways by the same verbs under the same conditions.
func (w *Way) key() string {
	parts := append([]string{string(w.By)}, w.Texts()...)
	for _, c := range w.Conditions {
		parts = append(parts, c.key())
	}
	return strings.Join(parts, "\x02")
}

// maxThrough bounds the grants of a verb in the text of a way.
const maxThrough = 3

// through says for readers which verbs by which bindings, and under which conditions.
func (w *Way) through() string {
	var texts []string
	for _, v := range w.Verbs {
		var grants []string
		for i, g := range v.Grants {
			if i == maxThrough {
				grants = append(grants, fmt.Sprintf("%d more", len(v.Grants)-i))
				break
			}
			grants = append(grants, g.String())
		}
		texts = append(texts, v.Verb+" by "+strings.Join(grants, ", "))
	}
	for _, c := range w.Conditions {
		texts = append(texts, c.String())
	}
	return strings.Join(texts, "; ")
}

// grants is equal for two ways with the same grants.
func (w *Way) grants() string {
	var out strings.Builder
	for _, v := range w.Verbs {
		for _, g := range v.Grants {
			out.WriteString(g.Policy + "\x01" + g.Binding.String() + "\x01" + g.Role.String() + "\x02")
		}
		out.WriteByte('\x03')
	}
	return out.String()
}

// compareWays puts ways without a condition first, then the strongest.
func compareWays(a, b *Way) int {
	if x, y := len(a.Conditions) > 0, len(b.Conditions) > 0; x != y {
		if y {
			return -1
		}
		return 1
	}
	return cmp.Compare(slices.Index(strength, a.By), slices.Index(strength, b.By))
}

// way makes a way of options. Equal verbs and equal conditions stand once.
func way(by How, options []option, more []Condition) Way {
	out := Way{By: by}
	for _, o := range options {
		if !slices.ContainsFunc(out.Verbs, func(h Held) bool { return h.Verb == o.verb }) {
			out.Verbs = append(out.Verbs, Held{o.verb, o.grants})
		}
		more = append(more[:len(more):len(more)], o.conditions...)
	}
	for _, c := range more {
		if !slices.ContainsFunc(out.Conditions, func(have Condition) bool { return have.key() == c.key() }) {
			out.Conditions = append(out.Conditions, c)
		}
	}
	return out
}

// cover is a way through one chain.
type cover struct {
	options    []option
	conditions []Condition
	// skipped means that no verb of the chain is needed, because none of its barriers holds.
	skipped bool
}

// maxWays bounds the combinations for a field that becomes a part of several objects.
const maxWays = 64

// entry is how a request passes authorization.
type entry struct {
	by      How
	options []option
}

// ways returns the ways of a user to change a field of an object. A Deny of the verb of the request denies it, whatever else the user holds (K7),
// except on the floor.
func (h *holder) ways(f *field) []Way {
	denied := h.denial(h.write.Verb)
	var out []Way
	if w, ok := h.wildcard(f); ok {
		out = append(out, w)
	}
	for _, e := range h.entries() {
		denied := denied
		if e.beyondDeny(h.write) {
			denied = denial{}
		}
		if denied.always {
			continue
		}
		for _, c := range h.through(f, &e) {
			conditions := slices.Concat(denied.conditions, f.always, c.conditions)
			w := way(e.by, slices.Concat(e.options, c.options), conditions)
			if !slices.ContainsFunc(out, func(have Way) bool { return have.key() == w.key() }) {
				out = append(out, w)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Way) int { return compareWays(&a, &b) })
	return out
}

// wildcard returns the way of rules that grant "*": the most specific verb of each chain passes every barrier. A policy may deny it.
func (h *holder) wildcard(f *field) (Way, bool) {
	first, ok := h.star(h.write.Verb)
	if !ok {
		return Way{}, false
	}
	options := []option{first}
	if h.write.posts() && len(h.posted(h.write.Verb, rbacv1.VerbAll)) == 0 {
		// The rules are for some names. Another verb has to let the request in.
		before := h.letIn(h.write.Verb)
		if len(before) == 0 {
			return Way{}, false
		}
		options = []option{before[0], first}
	}
	for _, chain := range f.all() {
		var best *option
		for i := range chain {
			l := &chain[len(chain)-1-i]
			if i > 0 && len(l.Lost) > 0 {
				continue
			}
			o := first
			if l.Verb != "" {
				if o, ok = h.star(l.Verb); !ok {
					continue
				}
			}
			if best == nil || len(o.conditions) <= len(best.conditions) {
				best = &o
			}
		}
		if best == nil {
			return Way{}, false
		}
		options = append(options, *best)
	}
	return way(Wildcard, options, h.reaching(h.write.Verb).conditions), true
}

// all returns all chains of a write that changes the field.
func (f *field) all() [][]fieldtree.Link {
	if len(f.existence) == 0 {
		return f.chains
	}
	return append(f.chains[:len(f.chains):len(f.chains)], f.existence)
}

// generics are the verbs of the generic permission of a write (C6).
func (w *Write) generics() []string {
	switch w.Verb {
	case "update":
		return []string{"update", "patch"}
	case "patch":
		return []string{"patch", "update"}
	}
	return []string{w.Verb}
}

// readVerb is the verb without which neither the marker nor the condition of a policy lets a user in to update or patch (A7).
const readVerb = "get"

// reading returns options with each way to hold get, and the options alone if the write does not need it.
func (h *holder) reading(options ...option) [][]option {
	if h.write.Verb == "create" {
		return [][]option{options}
	}
	var out [][]option
	for _, o := range h.hold(readVerb) {
		out = append(out, append(slices.Clone(options), o))
	}
	return out
}

// entries returns the ways in which the request passes authorization: by its verb, or by the marker. In admission update and patch are one (C6), so
// that the marker with the other of the two is as good as the verb of the request.
func (h *holder) entries() []entry {
	var out []entry
	var markers []option
	if h.write.TakesMarker {
		markers = h.hold(verbs.Marker)
	}
	generics := h.write.generics()
	for _, o := range h.hold(generics[0]) {
		if o.grants[0].Policy == "" || len(o.conditions) == 0 {
			out = append(out, entry{Generic, []option{o}})
			continue
		}
		for _, options := range h.reading(o) {
			out = append(out, entry{Generic, options})
		}
	}
	if len(out) == 0 {
		for _, verb := range generics[1:] {
			for _, o := range h.hold(verb) {
				for _, m := range markers {
					for _, options := range h.reading(m, o) {
						out = append(out, entry{Generic, options})
					}
				}
			}
		}
	}
	for _, m := range markers {
		for _, options := range h.reading(m) {
			out = append(out, entry{Granular, options})
		}
	}
	if h.write.posts() {
		return h.posts(out)
	}
	return out
}

// posts returns the entries of a new object: in admission as out has them, and before by a verb without the name of the object, of which the
// same verb is enough.
func (h *holder) posts(out []entry) []entry {
	var both []entry
	for _, e := range out {
		for _, o := range h.letIn(e.options[0].verb) {
			both = append(both, entry{e.by, append([]option{o}, e.options...)})
		}
	}
	return both
}

// letIn returns the ways in which a POST passes authorization: by a verb that the user holds in admission too, or else by the other one.
func (h *holder) letIn(first string) []option {
	out := h.posted(first, first)
	if len(out) > 0 {
		return out
	}
	if first == h.write.Verb && h.write.TakesMarker {
		return h.posted(verbs.Marker, verbs.Marker)
	}
	if first == verbs.Marker {
		return h.posted(h.write.Verb, h.write.Verb)
	}
	return nil
}

// through returns the ways through all chains of a field, and through that of the existence of a new object.
func (h *holder) through(f *field, e *entry) []cover {
	fields := h.throughField(f, e)
	if len(f.existence) == 0 {
		return fields
	}
	var out []cover
	for _, exists := range h.covers(f.existence, e) {
		for _, of := range fields {
			out = append(out, cover{options: slices.Concat(exists.options, of.options), conditions: slices.Concat(exists.conditions, of.conditions)})
		}
	}
	return out
}

// throughField returns the ways through the chains of a field. A chain whose barriers do not hold needs no verb, if another has one.
func (h *holder) throughField(f *field, e *entry) []cover {
	if e.by == Generic && f.onFloor || e.by == Granular && f.free {
		return []cover{{}}
	}
	all := []cover{{skipped: true}}
	for _, chain := range f.chains {
		options := h.covers(chain, e)
		if conditions, ok := unlost(chain[0].Lost); ok && len(f.chains) > 1 && len(conditions) > 0 {
			options = append(options, cover{conditions: conditions, skipped: true})
		}
		var next []cover
		for _, before := range all {
			for _, o := range options {
				if len(next) < maxWays {
					next = append(next, cover{slices.Concat(before.options, o.options), slices.Concat(before.conditions, o.conditions), before.skipped && o.skipped})
				}
			}
		}
		all = next
	}
	return slices.DeleteFunc(all, func(c cover) bool { return c.skipped })
}

// covers returns the ways through one chain. For the generic permission these are itself, and verbs below a barrier.
func (h *holder) covers(chain []fieldtree.Link, e *entry) []cover {
	var out []cover
	for i := range chain {
		l := &chain[i]
		conditions, counts := unlost(l.Lost)
		switch {
		case !counts:
		case e.by == Generic && i == 0:
			out = append(out, cover{conditions: conditions})
		case i == 0 || e.by == Generic && len(l.Lost) >= len(chain[0].Lost):
			// Only the generic permission is above the verbs, and it is as good as a verb that passes no barrier more.
		default:
			for _, o := range h.link(l) {
				out = append(out, cover{options: []option{o}, conditions: conditions})
			}
		}
	}
	return out
}

// link returns the ways to hold a verb of a chain. If the path does not have the value of its parameter, each value that is granted is one.
func (h *holder) link(l *fieldtree.Link) []option {
	if !l.OfOne || l.Verb != l.Of.Text {
		return h.hold(l.Verb)
	}
	var out []option
	for _, v := range h.verbsOf(l.Of.Base.String()) {
		value, _ := v.Parameter()
		only := Condition{Form: OnlyValue, Parameter: l.Of.Parameter, Values: []string{value}}
		for _, o := range h.hold(v.String()) {
			o.conditions = append([]Condition{only}, o.conditions...)
			out = append(out, o)
		}
	}
	return out
}
