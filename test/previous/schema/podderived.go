package schema

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/fieldperm/fieldperm/test/previous/schema/endpoint"
	"github.com/fieldperm/fieldperm/test/previous/schema/fieldpath"
)

// derivation is a field of Pods that the API server writes from another field when a Pod is created. In a Pod the first field changes too,
// and its barrier holds. In a template only the second one is there, so the barrier has to hold at the second.
type derivation struct {
	field, from fieldpath.Pattern
	// isAlias means that both have the same values.
	isAlias bool
	// isItem means that the item of the innermost list that field is in may be new.
	isItem bool
	// with is another field that field is derived from, without which a Pod does not get it; nil for none.
	with fieldpath.Pattern
}

// shared returns the number of steps that both paths begin with.
func (d derivation) shared() int {
	n := 0
	for n < min(len(d.field), len(d.from)) && d.field[n] == d.from[n] {
		n++
	}
	return n
}

// unbarred are fields of Pods, without keys, at which no barrier holds because of a derived field, with the reason.
var unbarred = map[string]string{
	".metadata.labels":                      "its values are in a selector where matchLabelKeys names the label: a barrier on the spreading of Pods would bar all labels of templates",
	".spec.initContainers[*].restartPolicy": "it decides whether a container counts for the resources of the Pod: the verb is that of the whole container",
}

// derivations are what kube-apiserver was seen to do, without unbarred. What it writes in templates of its own kinds too is seen there. But
// an alias may stand alone in the template of a custom resource.
var derivations = sync.OnceValue(func() []derivation {
	var out []derivation
	for _, d := range endpoint.DerivedOfPods() {
		from, _, _ := strings.Cut(d.From, `["`)
		if unbarred[from] == "" && (!d.Shown || d.Same) {
			next := derivation{field: pattern(d.Field), from: pattern(d.From), isAlias: d.Same, isItem: d.Item}
			if d.With != "" {
				next.with = pattern(d.With)
			}
			out = append(out, next)
		}
	}
	return out
})

// pattern parses a path of this package.
func pattern(text string) fieldpath.Pattern {
	p, err := fieldpath.ParsePattern(text)
	if err != nil {
		panic(err)
	}
	return p
}

// onDerived returns the barriers of an overlay of Pods at the fields from which the API server derives the barred ones, with the verbs that pass
// them in Pods. The error says that there are too many.
func (o *overlay) onDerived() (*overlay, *Error) {
	out, r := &overlay{}, newRoom()
	read := map[*guard][]barrierCondition{} // A guard may be above many fields, and conditions are slow to compile.
	known := map[string]bool{}
	for _, d := range derivations() {
		ways, hasRoom := o.barring(d.field, &r)
		if !hasRoom {
			return nil, r.fault("", d.field)
		}
		lent := map[*guard]*guard{}
		for _, way := range ways {
			var chain []*guard
			// last is the index of the last barrier, ofItem that of the last guard that a new item needs.
			last, ofItem := -1, -1
			for _, on := range way {
				if _, known := read[on.guard]; !known {
					read[on.guard] = on.conditions()
				}
				switch {
				case !on.bars() && len(chain) > 0:
					chain = append(chain, on.onPods(PodPart(d.field[0].Name)))
				case on.bars() && d.mayBeSeen(on.depth, on.entry.Excluded, read[on.guard]):
					if lent[on.guard] == nil {
						lent[on.guard] = on.lendTo(d)
					}
					chain, last = append(chain, lent[on.guard]), len(chain)
				}
				if on.depth <= d.item() {
					ofItem = len(chain) - 1
				}
			}
			if d.isItem {
				// A verb for a part of the item passes no barrier of the item, as on Pods (D2).
				out.derives(d.from, chain[:ofItem+1], known)
			}
			if !d.isItem || last > ofItem {
				out.derives(d.from, chain, known)
			}
		}
	}
	return out, nil
}

// derives adds a chain of guards that has a barrier, unless the field has an equal one. known are the chains of all fields.
func (o *overlay) derives(from fieldpath.Pattern, chain []*guard, known map[string]bool) {
	var b strings.Builder
	b.WriteString(from.String())
	for _, g := range chain {
		fmt.Fprintf(&b, "\x00%s %s %s", g.source, g.entry.Pointer, g.says)
	}
	if at := o.at(from); len(chain) > 0 && !known[b.String()] {
		known[b.String()] = true
		at.derived = append(at.derived, chain)
	}
}

// lendTo returns the barrier for the field from which the other one is derived. A condition is about values of the other field, unless both have
// the same.
func (on passage) lendTo(d derivation) *guard {
	lent := on.onPods(PodPart(d.field[0].Name))
	if d.isAlias && on.depth >= len(d.field) {
		return lent
	}
	return lent.always().change(func(g *guard) { g.with = d.with })
}

// item returns the length of the path of the innermost item that the field is in, 0 if it is in none.
func (d derivation) item() int {
	n := len(d.field)
	for n > 0 && !d.field[n-1].Any {
		n--
	}
	return n
}

// mayBeSeen reports whether a barrier on the way to the field, or below it, may hold because of the field.
func (d derivation) mayBeSeen(depth int, excluded bool, conditions []barrierCondition) bool {
	return excluded || depth >= len(d.field) || slices.ContainsFunc(conditions, func(c barrierCondition) bool { return len(d.seenBy(depth, c)) > 0 })
}

// seenBy returns the uses of a condition at a place on the way to the field that may notice the field. A condition that uses no value holds always,
// or never.
func (d derivation) seenBy(depth int, c barrierCondition) []use {
	isNewItem := d.isItem && depth == d.item()
	switch {
	case len(c.uses) == 0:
		return []use{{}}
	case (isNewItem || !d.isAnywhere()) && !d.isThere(depth, nil) && c.mayHold(d.around(depth)):
		return c.uses // The value comes into being with the field, and the condition holds because of what it lacks.
	}
	var out []use
	for _, u := range c.uses {
		if !(u.exists && (d.isThere(depth, u.path) || isNewItem && len(u.path) == 0)) && u.sees(d.field[depth:], d.isItem) {
			out = append(out, u)
		}
	}
	return out
}

// around returns a value at a place on the way to the field that has nothing but what the field is in.
func (d derivation) around(depth int) any {
	var value any = map[string]any{}
	for i := len(d.field) - 2; i >= depth; i-- {
		if d.field[i].Any {
			value = []any{value}
		} else {
			value = map[string]any{d.field[i].Name: value}
		}
	}
	return value
}

// isThere reports whether what is at a path below a place on the way to the field is there whether the field is or not: it is a part of a Pod, an
// item that is not new, or the field is derived from something in it.
func (d derivation) isThere(depth int, path fieldpath.Pattern) bool {
	at := slices.Concat(d.field[:depth], path)
	if len(at) <= 1 {
		return true
	}
	isPrefix := len(at) <= len(d.from) && meets(at, d.from)
	isItem := len(at) <= len(d.field) && meets(at, d.field) && at[len(at)-1].Any && (!d.isItem || len(at) != d.item())
	return isPrefix || isItem
}

// isAnywhere reports whether admission gives the field to every Pod, whether a template has the other field or not: the volume of a token. Templates
// cannot tell, so that a condition is evaluated as if there were none.
func (d derivation) isAnywhere() bool {
	return d.isItem && slices.ContainsFunc(d.field, func(e fieldpath.Element) bool { return e.Name == "volumes" || e.Name == "volumeMounts" })
}

// readsOnly reports whether the conditions of a barrier read nothing but some fields of its value.
func (g *guard) readsOnly(names []string) bool {
	return !slices.ContainsFunc(g.conditions(), func(c barrierCondition) bool {
		return slices.ContainsFunc(c.uses, func(u use) bool { return len(u.path) == 0 || !slices.Contains(names, u.path[0].Name) })
	})
}

// conditions compiles the conditions of a barrier. A condition that uses the whole stands for a faulty one.
func (g *guard) conditions() []barrierCondition {
	var out []barrierCondition
	for _, expression := range append([]string{g.entry.ExcludedWhen}, g.also...) {
		if expression == "" {
			continue
		}
		c, err := newBarrierCondition(expression)
		if err != nil {
			c = barrierCondition{uses: []use{{}}}
		}
		out = append(out, c)
	}
	return out
}

// always returns the barrier for all values.
func (g *guard) always() *guard {
	return g.change(func(out *guard) { out.entry.Excluded, out.entry.ExcludedWhen, out.also = true, "", nil })
}
