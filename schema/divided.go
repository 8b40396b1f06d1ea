package schema

import (
	"slices"
	"strings"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
)

// A condition reads one value. The program that reads the object later may put the value together from several parts: two names of one
// field in different cases, or, in the data of a ControllerRevision, the StatefulSet to which it applies the data as a patch.

// revisionKind is the kind whose data is a strategic merge patch.
var revisionKind = runtimeschema.GroupKind{Group: "apps", Kind: "ControllerRevision"}

// The names of strategic merge patches begin with a dollar sign. replaces says that the patch is the whole value.
const (
	directive = "$"
	patch     = "$patch"
	replaces  = "replace"
)

// MayBeDivided reports whether programs may put a value of the node together from parts: it may be an object or a list.
func (n *Node) MayBeDivided() bool { return n.mapping != nil || n.list != nil }

// Divided reports whether programs may read the fields that have barriers or become parts of Pods, or what they are in, in another way than a condition
// on one of them. object is a decoded object of the kind, nil for none.
func (k *Kind) Divided(object any) bool {
	if !k.mayDivide {
		return false
	}
	if k.Root.repeats(object, false) {
		return true
	}
	if k.GroupKind() != revisionKind {
		return false
	}
	data := member(object, "data")
	template := member(member(data, "spec"), "template")
	return template != nil && (template[patch] != replaces || directives(data) > 1)
}

// mayDivide reports whether names that lead to barriers or to parts of Pods count in every case at or below the node. seen says of each node that has been
// visited whether it was in a part of a Pod.
func (n *Node) mayDivide(inPod bool, seen map[*Node]bool) bool {
	inPod = inPod || n.pod != NoPod
	leads := inPod || n.makesPods || n.MayBarWithin()
	if was, is := seen[n]; is && (was || !inPod) || !leads {
		return false
	}
	seen[n] = inPod
	if n.mapping != nil && n.mapping.folds {
		return true
	}
	return hasChild(n, func(child *Node) bool { return child.mayDivide(inPod, seen) })
}

// repeats reports whether a decoded value has one name in two cases, in a part of a Pod, or on the way to one or to a barrier.
func (n *Node) repeats(value any, inPod bool) bool {
	inPod = inPod || n.pod != NoPod
	switch value := value.(type) {
	case map[string]any:
		m := n.mapping
		if m == nil {
			m = unknown.mapping
		}
		var known map[string]bool // Whether a spelling of the name leads there.
		if m.folds {
			known = map[string]bool{}
		}
		for key, below := range value {
			child := m.Child(key)
			leads := inPod || child.leads()
			if m.folds {
				name := FoldName(key)
				led, is := known[name]
				if is && (leads || led) {
					return true
				}
				known[name] = leads
			}
			if leads && child.repeats(below, inPod) {
				return true
			}
		}
	case []any:
		item := unknown
		if n.list != nil {
			item = n.list.item
		}
		return (inPod || item.leads()) && slices.ContainsFunc(value, func(below any) bool { return item.repeats(below, inPod) })
	}
	return false
}

// leads reports whether the node, or one below it, may have a barrier or becomes a part of a Pod.
func (n *Node) leads() bool { return n.makesPods || n.mayBar() }

// member returns a member of a decoded object that is an object, nil for none. Names count in every case.
func member(value any, name string) map[string]any {
	object, _ := value.(map[string]any)
	for key, below := range object {
		if strings.EqualFold(key, name) {
			out, _ := below.(map[string]any)
			return out
		}
	}
	return nil
}

// directives returns the number of names in a decoded value that are directives of a patch.
func directives(value any) int {
	n := 0
	switch value := value.(type) {
	case map[string]any:
		for key, below := range value {
			if strings.HasPrefix(key, directive) {
				n++
			}
			n += directives(below)
		}
	case []any:
		for _, below := range value {
			n += directives(below)
		}
	}
	return n
}
