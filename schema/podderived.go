package schema

import (
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/fieldperm/fieldperm/schema/endpoint"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

// derivation is a field of Pods that the API server writes from another field when a Pod is created. In a Pod the first field changes too,
// and its barrier holds. In a template only the second one is there, so the barrier has to hold at the second.
type derivation struct {
	field, from fieldpath.Pattern
	// isAlias means that both have the same values.
	isAlias bool
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
			out = append(out, derivation{pattern(d.Field), pattern(d.From), d.Same})
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

// onDerived returns the barriers of Pods at the fields from which the API server derives the barred ones.
func (o *overlay) onDerived() *overlay {
	out := &overlay{}
	read := map[*guard][]barrierCondition{} // A guard may be above many fields, and conditions are slow to compile.
	for _, d := range derivations() {
		o.barring(d.field, func(g *guard, below fieldpath.Pattern) {
			if _, known := read[g]; !known {
				read[g] = g.conditions()
			}
			// A barrier above both fields is above both in a template too.
			isAbove := len(d.field)-len(below) <= d.shared()
			lent := g.onPods(PodPart(d.from[0].Name))
			switch {
			case d.isAlias && len(below) == 0:
			case isAbove && g.entry.Excluded || !g.maySee(below, read[g]):
				return
			default:
				// A condition is about values of the other field.
				lent = lent.always()
			}
			at := out.at(d.from)
			lent = lent.with(func(out *guard) { out.derived = true })
			if !slices.ContainsFunc(at.pods, func(other *guard) bool { return reflect.DeepEqual(other.entry, lent.entry) }) {
				at.pods = append(at.pods, lent)
			}
		})
	}
	return out
}

// barring visits the barriers at, above and below a field, with the path from the barrier to the field, which is empty unless the barrier is
// above.
func (o *overlay) barring(field fieldpath.Pattern, visit func(g *guard, below fieldpath.Pattern)) {
	if o == nil {
		return
	}
	if o.guard != nil && o.guard.bars() {
		visit(o.guard, field)
	}
	if len(field) > 0 {
		o.any.barring(field[1:], visit)
		for _, name := range sortedKeys(o.fields) {
			if !field[0].Any && isSameKey(name, field[0].Name) {
				o.fields[name].barring(field[1:], visit)
			}
		}
		return
	}
	o.any.barring(nil, visit)
	for _, name := range sortedKeys(o.fields) {
		o.fields[name].barring(nil, visit)
	}
}

// isSameKey reports whether two names may stand for one key. A name that ends in a slash stands for all keys that begin with it.
func isSameKey(a, b string) bool {
	stands := func(prefix, key string) bool { return strings.HasSuffix(prefix, "/") && strings.HasPrefix(key, prefix) }
	return a == b || stands(a, b) || stands(b, a)
}

// maySee reports whether a barrier may hold because of a field below it. A condition that uses no value holds always, or never.
func (g *guard) maySee(below fieldpath.Pattern, conditions []barrierCondition) bool {
	if len(below) == 0 {
		return true
	}
	return g.entry.Excluded || slices.ContainsFunc(conditions, func(c barrierCondition) bool {
		return len(c.uses) == 0 || slices.ContainsFunc(c.uses, func(u use) bool { return u.sees(below) })
	})
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
	return g.with(func(out *guard) { out.entry.Excluded, out.entry.ExcludedWhen, out.also = true, "", nil })
}
