package schema

import (
	"slices"
	"strings"

	"github.com/fieldperm/fieldperm/schema/fieldpath"
	"github.com/fieldperm/fieldperm/verbs"
)

// templateWalk finds the verbs of a template for one verb of Pods.
type templateWalk struct {
	verb verbs.Verb
	// named means that the set names the resource too, so that its verb is a barrier already at and below a field of the template that
	// has the verb.
	named bool
	seen  map[pairing]bool
	found map[verbs.Verb]bool
}

// pairing is everything that the verbs found at and below a field of Pods and the field that becomes it depend on.
type pairing struct {
	pod, template *Node
	above
	key mapKey
}

// above is what counts of the permissions above a field of a template.
type above struct {
	// nearest is the nearest permission. same is the nearest one with the name of the verb that is looked for.
	nearest, same *Permission
}

// mapKey is the key of a map, with the parameters that the maps of the Pod and of the template emit. The zero mapKey is none.
type mapKey struct{ name, pod, template string }

// gives returns the verb that a permission has at the key, and whether it is known. A key that ends in a slash stands for many keys.
func (k mapKey) gives(p *Permission, emitted string) (verbs.Verb, bool) {
	if k.name == "" || p.parameter != emitted || !p.TakesPrefix() && strings.HasSuffix(k.name, "/") {
		return verbs.Verb{}, false
	}
	return p.Parameterized(func(string) (string, bool) { return k.name, true })
}

func (w *templateWalk) below(n *Node, a above) above {
	for _, p := range n.permissions {
		if a.nearest = p; p.verb == w.verb.WithoutParameter() {
			a.same = p
		}
	}
	return a
}

// mayAsk reports whether a change at or below a node may need a verb.
func (n *Node) mayAsk(v verbs.Verb) bool {
	found := v == verbs.All()
	walk(n, nil, map[*Node]bool{}, func(_ fieldpath.Pattern, n *Node) {
		found = found || slices.ContainsFunc(n.permissions, func(p *Permission) bool { return p.MayBe(v) })
	})
	return found
}

// enter finds the fields that become parts of Pods at and below a node.
func (w *templateWalk) enter(pod, n *Node, a above) {
	at := pairing{nil, n, a, mapKey{}}
	if !n.makesPods || w.seen[at] {
		return
	}
	w.seen[at] = true
	if n.pod != NoPod {
		// A barrier at the root of Pods is a barrier on all parts of them.
		w.compare(pod.permissions, n, a, mapKey{})
		part := pod.named(string(n.pod))
		if n.pod == PodMetadata {
			w.compare(part.permissions, n, a, mapKey{})
			for _, name := range handedOn {
				if n.mayHave(name) {
					w.pair(part.named(name), n.named(name), w.below(n, a), mapKey{})
				}
			}
		} else {
			w.pair(part, n, a, mapKey{})
		}
		w.derive(pod, n, a)
	}
	for _, child := range n.Children() {
		w.enter(pod, child, w.below(n, a))
	}
}

// derive finds the verbs of the fields of a template from which the API server derives fields of Pods, if the verb of the walk guards those.
func (w *templateWalk) derive(pod, n *Node, a above) {
	for _, d := range derivations() {
		if PodPart(d.from[0].Name) != n.pod {
			continue
		}
		at, has := n, true
		within := a
		for _, step := range d.from[1:] {
			if has = step.Any && at.list != nil || !step.Any && at.mayHave(step.Name); !has {
				break
			}
			within, at = w.below(at, within), at.below(step)
		}
		if has {
			found, key := around(pod, d, w.verb)
			w.compare(found, at, within, key)
		}
	}
}

// around returns the permissions at, above and below a derived field that may have a verb, without those that are above both fields: these
// are above both in a template too. It also returns the key of the map that the field is in, if any.
func around(n *Node, d derivation, v verbs.Verb) ([]*Permission, mapKey) {
	var out []*Permission
	var key mapKey
	add := func(n *Node) {
		for _, p := range n.permissions {
			if p.MayBe(v) {
				out = append(out, p)
			}
		}
	}
	for i, step := range d.field {
		if n.mapping != nil && !step.Any && !n.mapping.IsField(step.Name) {
			key = mapKey{name: step.Name, pod: n.emits}
		}
		if n = n.below(step); n == nil {
			return out, key
		}
		if i >= d.shared() {
			add(n)
		}
	}
	for _, child := range n.Children() {
		walk(child, nil, map[*Node]bool{}, func(_ fieldpath.Pattern, n *Node) { add(n) })
	}
	return out, key
}

// pair compares a field of Pods, and everything below it, with the field that becomes it. key is the key of the map that the pair stands
// for.
func (w *templateWalk) pair(pod, template *Node, a above, key mapKey) {
	at := pairing{pod, template, a, key}
	if pod == unknown || w.seen[at] {
		return
	}
	w.seen[at] = true
	w.compare(pod.permissions, template, a, key)
	a = w.below(template, a)
	if pod.list != nil {
		w.pair(pod.items(), template.items(), a, mapKey{})
	}
	if pod.mapping == nil {
		return
	}
	for _, name := range singled([]*Node{pod, template}) {
		key := mapKey{}
		if !pod.mapping.IsField(name) {
			key = mapKey{name, pod.emits, template.emits}
		}
		if template.mayHave(name) {
			w.pair(pod.named(name), template.named(name), a, key)
		}
	}
	if pod.mapping.value != nil {
		w.pair(pod.values(), template.values(), a, mapKey{})
	}
}

// mayHave reports whether an object at the node can have a field or a key. A template need not have all fields of a Pod.
func (n *Node) mayHave(name string) bool {
	return n.mapping != nil && (n.mapping.value != nil || n.mapping.IsField(name))
}

// compare adds the verb of a field of a template if the verb of the walk is a barrier among the permissions of the same field of Pods.
func (w *templateWalk) compare(pod []*Permission, template *Node, a above, key mapKey) {
	for _, p := range pod {
		if v, known := key.gives(p, key.pod); !p.MayBe(w.verb) || known && w.verb != w.verb.WithoutParameter() && v != w.verb {
			continue
		}
		same := w.below(template, a).same
		if w.named && same != nil && w.carried(p, same, key) == w.verb {
			continue
		}
		w.found[w.counterpart(p, template, a, key)] = true
	}
}

// counterpart returns the verb of a field of a template for a barrier on the same field of Pods, which has the permission p: the same
// verb, or the most specific verb of the field, or the nearest verb above.
func (w *templateWalk) counterpart(p *Permission, template *Node, a above, key mapKey) verbs.Verb {
	own := w.below(template, above{})
	switch {
	case own.same != nil:
		return w.carried(p, own.same, key)
	case own.nearest != nil:
		return w.carried(p, own.nearest, key)
	case a.nearest != nil:
		return a.nearest.verb
	}
	return verbs.All()
}

// carried returns the verb of a permission of a template for a barrier at the permission p of Pods. It has a parameter only if the value
// is certain to be the one that the template's permission takes. Without it the verb is a barrier for all parameters.
func (w *templateWalk) carried(p, template *Permission, key mapKey) verbs.Verb {
	value, parameterized := w.verb.Parameter()
	switch {
	case template.parameter == "" || template.verb == w.verb:
	case !parameterized:
		if v, known := key.gives(template, key.template); known {
			return v
		}
	case p.parameter != template.parameter:
	case p.expression == nil && p.treatment == "":
		// The value is what the path emits.
		if v, ok := template.Parameterized(func(string) (string, bool) { return value, true }); ok {
			return v
		}
	case p.treatment == template.treatment && p.expressionText == template.expressionText:
		if v, ok := template.verb.WithParameter(value); ok {
			return v
		}
	}
	return template.verb
}
