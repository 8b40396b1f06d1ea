package schema

import (
	"fmt"
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
	// isItem means that the item of the innermost list that field is in may be new.
	isItem bool
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
			out = append(out, derivation{field: pattern(d.Field), from: pattern(d.From), isAlias: d.Same, isItem: d.Item})
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
				switch {
				case !on.bars() && len(chain) > 0:
					chain = append(chain, on.onPods(PodPart(d.field[0].Name)))
				case on.bars():
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
	return lent.always()
}

// item returns the length of the path of the innermost item that the field is in, 0 if it is in none.
func (d derivation) item() int {
	n := len(d.field)
	for n > 0 && !d.field[n-1].Any {
		n--
	}
	return n
}

// meets reports whether one of two paths may lead to the other.
func meets(a, b fieldpath.Pattern) bool {
	for i := range min(len(a), len(b)) {
		if !a[i].Any && !b[i].Any && !isSameKey(a[i].Name, b[i].Name) {
			return false
		}
	}
	return true
}

// isDerived reports whether the API server derives a field at a path of Pods from another one, of which it does not have the values.
func isDerived(at fieldpath.Pattern) bool {
	return slices.ContainsFunc(derivations(), func(d derivation) bool {
		return !d.isAlias && meets(at, d.field)
	})
}

// always returns the barrier for all values.
func (g *guard) always() *guard {
	return g.change(func(out *guard) { out.entry.Excluded, out.entry.ExcludedWhen, out.also = true, "", nil })
}
