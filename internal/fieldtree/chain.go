package fieldtree

import (
	"slices"

	"github.com/fieldperm/fieldperm/schema/fieldpath"
	"github.com/fieldperm/fieldperm/verbs"
)

// Link is a verb of the chain of a place.
type Link struct {
	// Verb is the verb, or the verb with the parameter that the path has, or else with the name of its parameter. The verb with its parameter
	// is more specific. It is "" for the generic permission.
	Verb string
	// Of is the verb of the node at Path that the link comes from, nil for the generic permission.
	Of   *Verb
	Path fieldpath.Pattern
	// OfOne means that the link is the verb with a parameter. It covers one value of the parameter.
	OfOne bool
	// Unbound means that the path has no value for the parameter of such a verb: Verb has the name of the parameter in its place.
	Unbound bool
	// Lost are the reasons why the verb does not cover the place. If one of them holds always, it never does.
	Lost []Loss
}

// Counts reports whether the verb covers the place: always, or under a condition.
func (l *Link) Counts() bool { return !slices.ContainsFunc(l.Lost, Loss.always) }

// Loss is a reason why a more general verb does not cover a place: a barrier.
type Loss struct {
	// By is the verb of the barrier.
	By   string
	Path fieldpath.Pattern
	// When are the conditions under which the barrier holds, in CEL. Of the conditions on values each alone is enough; of those of a set
	// all must be true. There are none if it always holds.
	When []string
	// Set is the UncoveredPermissionSet that makes the barrier, "" if the source of the verb does.
	Set string
	// One is the value of the parameter that the barrier is for, "" for all, and for the one that the path has.
	One string
}

func (l Loss) always() bool { return len(l.When) == 0 && l.One == "" }

// Chains returns the verbs of the place from general to specific, the generic permission first. If the place becomes a part of several
// objects (schema.Node.Trees), a verb of any of them covers it, so that there is one chain. With barriers there is a chain for each object
// that may have one, and a change needs a verb of each chain whose barrier holds; if none holds, a verb of any is enough. Each
// barrier beside the verbs of the place, or of one above it, has a chain of its own, always.
func (p *Place) Chains() [][]Link {
	trees := 1
	for _, n := range p.way {
		trees = max(trees, len(n.Trees))
	}
	var each [][]Link
	for tree := range trees {
		each = append(each, p.chain(tree))
	}
	all, barred := slices.Clone(each[0]), [][]Link{}
	for _, one := range each {
		if slices.ContainsFunc(one, func(l Link) bool { return len(l.Lost) > 0 }) {
			barred = append(barred, one)
		}
		for _, l := range one {
			if !slices.ContainsFunc(all, func(have Link) bool { return have.Verb == l.Verb }) {
				all = append(all, l)
			}
		}
	}
	if len(barred) == 0 {
		barred = [][]Link{all}
	}
	return append(barred, p.beside()...)
}

// Existence returns the verbs of the existence of a new object, the generic permission first (C5).
func (k *Kind) Existence() []Link {
	v := verbs.Creation()
	return append(k.Place().chain(0), Link{Verb: v.String(), Of: &Verb{Text: v.String(), Base: v}})
}

// Charges returns the chains that a change of the place needs: its own, or inside of an atomic value those of the whole, and besides them its own
// where a barrier takes it out of a verb above (D4).
func (p *Place) Charges() [][]Link {
	whole := p.Whole()
	if whole == nil {
		return p.Chains()
	}
	isLimited := func(l Link) bool { return len(l.Lost) > 0 }
	return append(whole.Chains(), slices.DeleteFunc(p.Chains(), func(chain []Link) bool { return !slices.ContainsFunc(chain, isLimited) })...)
}

// chain returns the verbs of the place in one tree. The trees of other objects begin with the verb of the root and go on where a field
// becomes a part of these objects.
func (p *Place) chain(tree int) []Link {
	links, begun := []Link{{}}, false
	for i, n := range p.way {
		begun = begun || tree < len(n.Trees)
		if tree > 0 && i > 0 && !begun {
			continue
		}
		own := n.Verbs
		if n.Trees != nil {
			own = n.Trees[min(tree, len(n.Trees)-1)]
		}
		for _, v := range own {
			links = p.extend(links, v, p.Path[:i:i])
		}
	}
	return links
}

// beside returns the chains with a barrier beside the verbs of the place, or of one above it. The verbs below the barrier pass it.
func (p *Place) beside() [][]Link {
	var out [][]Link
	for i, n := range p.way {
		for _, v := range append(slices.Clip(n.Barring), n.Beside...) {
			links := p.Above(i).chain(0)
			before := len(links[0].Lost)
			if links = p.extend(links, v, p.Path[:i:i]); len(links[0].Lost) == before {
				continue // No set makes a barrier of the verb of all keys.
			}
			for j := i + 1; j < len(p.way) && len(p.way[j].Trees) == 0; j++ {
				for _, below := range p.way[j].Verbs {
					links = p.extend(links, below, p.Path[:j:j])
				}
			}
			out = append(out, links)
		}
	}
	return out
}

// extend adds a verb to a chain, as the walk through two objects does.
func (p *Place) extend(links []Link, v *Verb, at fieldpath.Pattern) []Link {
	ofOne := p.bar(links, v, at)
	links = append(links, Link{Verb: v.Base.String(), Of: v, Path: at})
	one, isKnown := p.parameterized(v)
	if v.Parameter == "" || isKnown && one.IsZero() {
		return links
	}
	lose(links[len(links)-1:], ofOne...)
	text := v.Text
	if isKnown {
		text = one.String()
	}
	return append(links, Link{Verb: text, Of: v, Path: at, OfOne: true, Unbound: !isKnown})
}

// bar takes the place out of the verbs of a chain where a verb is a barrier. It returns the losses by barriers for one value of the parameter, which
// take it out of the verb without a parameter too.
func (p *Place) bar(links []Link, v *Verb, at fieldpath.Pattern) (ofOne []Loss) {
	if v.Bars() {
		lose(links, Loss{By: v.Text, Path: at, When: v.ExcludedWhen})
	}
	one, isKnown := p.parameterized(v)
	for _, b := range p.setsOn(v, p.statusPath(at)) {
		if !b.Denies() {
			continue
		}
		loss := Loss{By: b.Verb.String(), Path: at, When: b.When(), Set: b.Source}
		if parameter, isOne := b.Verb.Parameter(); isOne && v.Parameter != "" && !(isKnown && one.IsZero()) {
			if !isKnown {
				loss.One = parameter
			}
			ofOne = append(ofOne, loss)
		} else if isOne {
			continue
		}
		lose(links, loss)
	}
	return ofOne
}

func lose(links []Link, losses ...Loss) {
	for i := range links {
		links[i].Lost = append(links[i].Lost, losses...)
	}
}

// statusPath returns the path of a node on the way. A barrier on the status alone that is at the root holds in the status.
func (p *Place) statusPath(at fieldpath.Pattern) fieldpath.Pattern {
	if len(at) == 0 {
		return p.Path
	}
	return at
}

// maxPlaces bounds the places of a verb that are looked for, because a schema may unfold without bound.
const maxPlaces = 20_000

// Verbs returns the paths of each verb of the kind, by its text, in the order of the tree.
func (k *Kind) Verbs() map[string][]string {
	out := map[string][]string{}
	left := maxPlaces
	leads := leading(k.Root)
	var visit func(*Place)
	visit = func(p *Place) {
		if left--; left < 0 || !leads[p.Node()] || p.Repeats() != nil {
			return
		}
		for _, v := range p.Node().Verbs {
			if path := p.Path.String(); !slices.Contains(out[v.Text], path) {
				out[v.Text] = append(out[v.Text], path)
			}
		}
		for _, c := range p.Node().Children {
			visit(p.Child(c))
		}
	}
	visit(k.Place())
	return out
}

// Leading returns the nodes of the kind at which, or below which, a verb is.
func (k *Kind) Leading() map[*Node]bool { return leading(k.Root) }

// leading returns the nodes at and below which a verb is.
func leading(root *Node) map[*Node]bool {
	above, out := map[*Node][]*Node{}, map[*Node]bool{}
	var next []*Node
	seen := map[*Node]bool{}
	var visit func(*Node)
	visit = func(n *Node) {
		if seen[n] {
			return
		}
		seen[n] = true
		if len(n.Verbs) > 0 {
			out[n] = true
			next = append(next, n)
		}
		for _, c := range n.Children {
			above[c.Node] = append(above[c.Node], n)
			visit(c.Node)
		}
	}
	visit(root)
	for len(next) > 0 {
		n := next[len(next)-1]
		next = next[:len(next)-1]
		for _, parent := range above[n] {
			if !out[parent] {
				out[parent] = true
				next = append(next, parent)
			}
		}
	}
	return out
}
