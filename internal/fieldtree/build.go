package fieldtree

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/endpoint"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

// New returns the trees of all kinds of a schema that clients may send, without the Scale, which is written through the resources of
// others. The schema must be of a traced compile; kinds without a Trace are left out.
func New(s *schema.Schema) *Forest {
	b := newBuilder()
	out := &Forest{}
	for _, k := range s.Kinds() {
		t := k.Trace()
		if t == nil || !t.Served || k.IsScale() {
			continue
		}
		ref := schema.ResourceRef{Group: k.Group, Version: k.Version, Resource: t.Resource.Resource}
		if through, err := s.KindFor(k.GroupVersionKind, ref); err == nil {
			out.Kinds = append(out.Kinds, b.kind(s, through, ref))
		}
	}
	slices.SortFunc(out.Kinds, func(a, b *Kind) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind), version.CompareKubeAwareVersionStrings(b.Version, a.Version))
	})
	return out
}

// Of returns the tree of a kind that is written through a resource or subresource. For a subresource that takes the object's own kind it
// has only the fields that the subresource writes.
func Of(s *schema.Schema, body runtimeschema.GroupVersionKind, ref schema.ResourceRef) (*Kind, error) {
	k, err := s.KindFor(body, ref)
	if err != nil {
		return nil, err
	}
	out := newBuilder().kind(s, k, ref)
	own, known := endpoint.Lookup(ref.Group, ref.Resource, "")
	e, isKnown := endpoint.Lookup(ref.Group, ref.Resource, ref.Subresource)
	takesObject := known && isKnown && (e.GroupKind() == own.GroupKind())
	if ref.Subresource != "" && takesObject && !e.Whole {
		out.Root = prune(out.Root, nil, written(&e))
	}
	return out, nil
}

// builder makes nodes. It makes one node of all equal ones, except for those in cycles.
type builder struct {
	verbs map[verbKey]*Verb
	nodes map[source]*Node
	known map[string]*Node
	ids   map[any]int
	open  map[*Node]bool
	// isOne means that the other trees of the kind have no verbs, so that its own tree is all that counts.
	isOne bool
}

// source is what a node is made from.
type source struct {
	node *schema.Node
	of   schema.TypeID
}

type verbKey struct {
	permission *schema.Permission
	powers     string
}

func newBuilder() *builder {
	return &builder{verbs: map[verbKey]*Verb{}, nodes: map[source]*Node{}, known: map[string]*Node{}, ids: map[any]int{}, open: map[*Node]bool{}}
}

func (b *builder) kind(s *schema.Schema, k *schema.Kind, ref schema.ResourceRef) *Kind {
	out := &Kind{
		GroupVersionKind: k.GroupVersionKind,
		Resource:         runtimeschema.GroupResource{Group: ref.Group, Resource: ref.Resource}, Subresource: ref.Subresource,
		Instead: k.Instead(), Lossy: k.Lossy(),
	}
	var of schema.Type
	if t := k.Trace(); t != nil {
		of = t.Type
	}
	b.isOne = true
	k.Walk(func(_ fieldpath.Pattern, n *schema.Node) {
		for _, tree := range n.Trees()[min(1, len(n.Trees())):] {
			b.isOne = b.isOne && len(tree) == 0
		}
	})
	out.Root = b.node(k.Root, of)
	// A kind has its own root, whose type is the kind.
	root := *out.Root
	root.Type = k.Kind
	out.Root = &root
	for _, v := range s.SetVerbs(ref) {
		out.Sets = append(out.Sets, &SetBarrier{SetVerb: v})
	}
	if ref.Subresource == "" {
		ref.Subresource = "status"
		for _, v := range s.SetVerbs(ref) {
			covers := func(have *SetBarrier) bool { return have.Source == v.Source && have.Verb == v.Verb }
			if !slices.ContainsFunc(out.Sets, covers) {
				out.Sets = append(out.Sets, &SetBarrier{SetVerb: v, StatusOnly: true})
			}
		}
	}
	return out
}

// trees returns the verbs of permissions of a node, by tree.
func (b *builder) trees(n *schema.Node, trees [][]*schema.Permission) [][]*Verb {
	var out [][]*Verb
	for _, tree := range trees {
		var verbs []*Verb
		for _, p := range tree {
			if !p.BarsOnly() {
				verbs = append(verbs, b.verb(n, p))
			}
		}
		out = append(out, verbs)
	}
	return out
}

// node returns the node for a place with its type.
func (b *builder) node(n *schema.Node, of schema.Type) *Node {
	from := source{n, of.ID()}
	if made := b.nodes[from]; made != nil {
		return made
	}
	out := &Node{
		Type: of.String(), Role: n.Role(), Emits: n.Emits(),
		AtomicList: n.List() != nil && n.List().Atomic(), AtomicMap: n.Map() != nil && n.Map().Atomic(),
	}
	if n.List() != nil {
		for _, k := range n.List().Keys() {
			if k.Emits != "" {
				if out.KeyEmits == nil {
					out.KeyEmits = map[string]string{}
				}
				out.KeyEmits[k.Name] = k.Emits
			}
		}
	}
	b.nodes[from], b.open[out] = out, true
	for _, p := range n.Permissions() {
		to := &out.Verbs
		switch {
		case p.BarsOnly() && p.MayBar():
			to = &out.Beside
		case p.BarsOnly():
			to = &out.Barring
		}
		*to = append(*to, b.verb(n, p))
	}
	if !b.isOne {
		out.Trees = b.trees(n, n.Trees())
	}
	inCycle := false
	for e, child := range n.Children() {
		if of.IsAny() && !guards(n, map[*schema.Node]bool{}) {
			break // Unknown fields have no end.
		}
		below := b.node(child, of.At(e))
		inCycle = inCycle || b.open[below]
		out.Children = append(out.Children, Child{e, below})
	}
	delete(b.open, out)
	if inCycle {
		return out
	}
	content := b.content(out)
	if same := b.known[content]; same != nil {
		b.nodes[from] = same
		return same
	}
	b.known[content] = out
	return out
}

// guards reports whether there is a verb below a node.
func guards(n *schema.Node, seen map[*schema.Node]bool) bool {
	if seen[n] {
		return false
	}
	seen[n] = true
	for _, child := range n.Children() {
		if len(child.Permissions()) > 0 || guards(child, seen) {
			return true
		}
	}
	return false
}

// content returns a text that is equal for nodes with equal content.
func (b *builder) content(n *Node) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%q%q%q%v%t%t", n.Type, n.Role, n.Emits, n.KeyEmits, n.AtomicList, n.AtomicMap)
	for _, v := range n.Verbs {
		fmt.Fprintf(&text, " %d", b.id(v))
	}
	fmt.Fprintf(&text, "%d", len(n.Trees))
	for _, tree := range append([][]*Verb{n.Barring, n.Beside}, n.Trees...) {
		text.WriteByte('|')
		for _, v := range tree {
			fmt.Fprintf(&text, " %d", b.id(v))
		}
	}
	for _, c := range n.Children {
		fmt.Fprintf(&text, "%s=%d", c.Element, b.id(c.Node))
	}
	return text.String()
}

// id returns a number for a pointer.
func (b *builder) id(of any) int {
	if _, known := b.ids[of]; !known {
		b.ids[of] = len(b.ids)
	}
	return b.ids[of]
}

// verb returns a permission as a verb of a node. The powers of a permission depend on the fields below the node.
func (b *builder) verb(n *schema.Node, p *schema.Permission) *Verb {
	powers := n.Worth(p)
	key := verbKey{p, fmt.Sprint(powers)}
	if made := b.verbs[key]; made != nil {
		return made
	}
	out := &Verb{
		Text: p.Describe(), Base: p.Base(), Parameter: p.ParameterName(), Expression: p.Expression(), TakesPrefix: p.TakesPrefix(),
		Excluded: p.Excluded(), ExcludedWhen: p.ExcludedWhen(), Powers: powers, Origins: p.Origins(), permission: p,
	}
	b.verbs[key] = out
	return out
}

// written returns the fields that an endpoint writes.
func written(e *endpoint.Endpoint) []fieldpath.Pattern {
	var out []fieldpath.Pattern
	for _, f := range e.Fields {
		if p, err := fieldpath.ParsePattern(f.Stored()); err == nil {
			out = append(out, p)
		}
	}
	for _, refused := range e.Refused {
		if p, err := fieldpath.ParsePattern(refused); err == nil {
			out = append(out, p)
		}
	}
	return out
}

// prune returns a copy of a tree with only the given fields, and what leads to them.
func prune(n *Node, at fieldpath.Pattern, fields []fieldpath.Pattern) *Node {
	if slices.ContainsFunc(fields, func(f fieldpath.Pattern) bool { return len(f) <= len(at) && f.Meets(at) }) {
		return n
	}
	out := *n
	out.Children = nil
	for _, c := range n.Children {
		path := at.Child(c.Element)
		if slices.ContainsFunc(fields, path.Meets) {
			out.Children = append(out.Children, Child{c.Element, prune(c.Node, path, fields)})
		}
	}
	return &out
}
