package fieldtree

import (
	"slices"
	"strings"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
	"github.com/fieldperm/fieldperm/verbs"
)

// Forest is the trees of kinds. Equal parts of the trees are the same Nodes and Verbs. Nothing in a Forest changes after New.
type Forest struct {
	// Kinds are in the order of groups and names, new versions before old ones.
	Kinds []*Kind
}

// Kind is the tree of one version of a kind, as it is written through one resource or subresource.
type Kind struct {
	runtimeschema.GroupVersionKind
	Resource runtimeschema.GroupResource
	// Subresource is "" for the object itself.
	Subresource string
	Root        *Node
	// Sets are the barriers of UncoveredPermissionSets for requests to the resource, and to its status where they hold for it alone.
	Sets []*SetBarrier
	// Instead is advice for writes through a version that may hide fields behind barriers, "" if it hides none.
	Instead string
	// Lossy means that a write through the version may change fields that the version does not show. It needs granular:* or the generic
	// permission.
	Lossy bool
}

// Node is one place. The graph of nodes has cycles if a type contains itself.
type Node struct {
	// Type is the type in the words of kubectl explain.
	Type string
	Role schema.Role
	// Verbs are the verbs of the place itself, from general to specific; none if only verbs above cover it.
	Verbs []*Verb
	// Barring are the verbs of all keys and of a prefix, at a key with a verb of its own. They do not cover it. If a set makes a barrier of one, it holds beside the verbs.
	Barring []*Verb
	// Trees are the verbs by tree, if a field of the kind becomes a part of other objects; see schema.Node.Trees.
	Trees [][]*Verb
	// Beside are the verbs of barriers that no other verb of the place passes; see schema.Permission.BarsOnly.
	Beside   []*Verb
	Children []Child
	// Emits is the parameter that the keys of this map, or the value of this scalar, give to verbs below; "" for none. KeyEmits are the
	// parameters of the keys of the items of a list, by the name of the key.
	Emits    string
	KeyEmits map[string]string
	// AtomicList and AtomicMap mean that a list or an object here compares as a whole: a change of a part of it changes all of it (D4).
	AtomicList, AtomicMap bool
}

// Child is a place one step below another.
type Child struct {
	fieldpath.Element
	*Node
}

// Verb is a verb of a place.
type Verb struct {
	// Text has the name of the parameter in place of a value: granular:image(containerName).
	Text string
	Base verbs.Verb
	// Parameter is the name of the parameter, "" for none. Expression makes the parameter from its value, "" if the value is the parameter
	// or, with a treatment, its prefix.
	Parameter, Expression string
	// TakesPrefix means that the parameter is the part of the value before its first slash.
	TakesPrefix bool
	// Excluded means that the verb is a barrier for all values. Otherwise it is one if any of ExcludedWhen is true.
	Excluded     bool
	ExcludedWhen []string
	// Powers are the effects that the verb has here beyond the field, including those of all fields below that it covers.
	Powers []schema.Power
	// Origins are the sources of the verb; none for the root's.
	Origins []schema.Origin

	permission *schema.Permission
}

// Bars reports whether the verb itself may be a barrier. Barriers of sets are not counted.
func (v *Verb) Bars() bool { return v.Excluded || len(v.ExcludedWhen) > 0 }

// SetBarrier is a verb that an UncoveredPermissionSet makes a barrier.
type SetBarrier struct {
	schema.SetVerb
	// StatusOnly means that the set holds for the status only.
	StatusOnly bool
}

// Denies reports whether the set refuses writes, in contrast to one that only warns or audits.
func (b *SetBarrier) Denies() bool { return len(b.Actions) == 0 }

// On reports whether the set names the verb, with or without a parameter.
func (b *SetBarrier) On(v *Verb) bool { return v.permission.MayBe(b.Verb) }

// reaches reports whether the barrier holds at a path.
func (b *SetBarrier) reaches(path fieldpath.Pattern) bool {
	return !b.StatusOnly || len(path) > 0 && path[0].Name == "status"
}

// setsOn returns the barriers of sets on a verb at a path of the kind.
func (k *Kind) setsOn(v *Verb, path fieldpath.Pattern) []*SetBarrier {
	var out []*SetBarrier
	for _, b := range k.Sets {
		if b.On(v) && b.reaches(path) {
			out = append(out, b)
		}
	}
	return out
}

// SetsOn returns the barriers of sets on a verb at the place. If the values of its parameters are known, those for other values are left
// out.
func (p *Place) SetsOn(v *Verb) []*SetBarrier { return p.setsOn(v, p.Path) }

func (p *Place) setsOn(v *Verb, path fieldpath.Pattern) []*SetBarrier {
	return slices.DeleteFunc(p.Kind.setsOn(v, path), func(b *SetBarrier) bool {
		_, isOfOne := b.Verb.Parameter()
		one, isKnown := p.parameterized(v)
		return isOfOne && isKnown && b.Verb != one
	})
}

// parameterized returns the verb with the parameter that the path has, and whether the path has it. The verb is the zero verb if the value
// cannot be a parameter.
func (p *Place) parameterized(v *Verb) (one verbs.Verb, isKnown bool) {
	value, isKnown := p.values[v.Parameter]
	isKnown = isKnown && (v.TakesPrefix || !strings.HasSuffix(value, "/")) // All keys with a prefix have no more than the prefix in common.
	if isKnown {
		one, _ = v.permission.Parameterized(func(string) (string, bool) { return value, true })
	}
	return one, isKnown
}

// ResourceName returns the resource with its subresource, as in RBAC.
func (k *Kind) ResourceName() string {
	if k.Subresource == "" {
		return k.Resource.Resource
	}
	return k.Resource.Resource + "/" + k.Subresource
}

// When returns the match conditions of the set in CEL. The barrier holds if all are true.
func (b *SetBarrier) When() []string {
	var out []string
	for _, c := range b.Conditions {
		out = append(out, c.Expression)
	}
	return out
}
