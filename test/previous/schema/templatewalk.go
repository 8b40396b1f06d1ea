package schema

import (
	"slices"
	"strings"

	"github.com/fieldperm/fieldperm/test/previous/verbs"
)

// templateWalk finds the verbs of a template for one verb of Pods.
type templateWalk struct {
	verb verbs.Verb
	// named means that the set names the resource too, so that its verb is a barrier already at and below a field of the template that
	// has the verb.
	named bool
	// places are the fields of Pods at and below which the verb may be. The walk leaves out all others.
	places *places
	seen   map[pairing]bool
	found  map[verbs.Verb]bool
}

// places finds the nodes at or below which a permission has a verb, whatever its parameter is.
type places struct {
	verb  verbs.Verb
	known map[*Node]bool
}

// placesOf returns the places of each verb, without its parameter.
func placesOf(all []verbs.Verb) map[verbs.Verb]*places {
	out := map[verbs.Verb]*places{}
	for _, v := range all {
		if base := v.WithoutParameter(); out[base] == nil {
			out[base] = &places{verb: base, known: map[*Node]bool{}}
		}
	}
	return out
}

// has reports whether a node is one of the places. Of nodes that contain themselves it may say so although they are not.
func (p *places) has(n *Node) bool {
	if has, known := p.known[n]; known {
		return has
	}
	p.known[n] = true
	has := slices.ContainsFunc(n.permissions, func(is *Permission) bool { return is.verb == p.verb })
	for _, child := range n.Children() {
		has = has || p.has(child)
	}
	p.known[n] = has
	return has
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
			found, key := w.around(pod, d)
			w.compare(found, at, within, key)
		}
	}
}

// around returns the permissions at, above and below a derived field that may have the verb, without those that are above both fields: these
// are above both in a template too. It also returns the key of the map that the field is in, if any.
func (w *templateWalk) around(n *Node, d derivation) ([]*Permission, mapKey) {
	var out []*Permission
	var key mapKey
	add := func(n *Node) {
		for _, p := range n.permissions {
			if p.MayBe(w.verb) {
				out = append(out, p)
			}
		}
	}
	for i, step := range d.field {
		if n.mapping != nil && !step.Any && !n.mapping.IsField(step.Name) {
			key = mapKey{name: step.Name, pod: n.emits}
		}
		if n = n.below(step); n == nil || !w.places.has(n) {
			return out, key
		}
		if i >= d.shared() {
			add(n)
		}
	}
	for _, child := range n.Children() {
		each(child, map[*Node]bool{}, add)
	}
	return out, key
}

// pair compares a field of Pods, and everything below it, with the field that becomes it. key is the key of the map that the pair stands
// for.
func (w *templateWalk) pair(pod, template *Node, a above, key mapKey) {
	at := pairing{pod, template, a, key}
	if pod == unknown || !w.places.has(pod) || w.seen[at] {
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
