package compile

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/sets"
	"github.com/fieldperm/fieldperm/verbs"
)

// Compile turns documents into a Schema, and always returns one. If a document has a fault, the kinds that it touches are in Failed, and
// Kind returns an error for them. The errors are *schema.Error, without duplicates, in alphabetical order. An Unmatched error leaves every kind
// intact.
//
// The Schema keeps only strings of the documents. Its kinds share all equal parts of their trees, also across documents.
func Compile(docs Documents) (*schema.Schema, []error) {
	c := newCompiler(docs)
	touched := map[runtimeschema.GroupVersionKind][]string{}
	for i := range c.docs.Topologies {
		c.topology(&c.docs.Topologies[i], touched)
	}
	c.reportLost()
	for i, kinds := range c.matched {
		if d := &c.docs.Permissions[i]; kinds == 0 && d.Rank == RankAdministrator && d.Fragment == "" {
			c.errs = append(c.errs, c.unmatched(d))
		}
	}
	for gvk, sources := range touched {
		for _, source := range sources {
			if err := c.faulty[source]; err != nil && c.failed[gvk] == nil {
				c.failed[gvk] = err
			}
		}
		if c.failed[gvk] != nil {
			delete(c.kinds, gvk)
		}
	}
	c.conceal()
	c.deriveBodies()
	c.deriveScales()
	c.hideReplicas()
	parts := schema.Parts{
		Kinds: c.kinds, Failed: c.failed, Bodies: c.bodies, FailedBodies: c.failedBodies, Scales: c.scales, ReplicasUnknown: c.replicasUnknown,
		Containing: docs.containing(),
	}
	if len(docs.Uncovered) > 0 {
		parts.Containers = c.containers(parts.Containing)
		compiled, errs := sets.Compile(docs.Uncovered, parts.Containers, c.statusStored())
		c.report(errs...)
		parts.Sets = compiled
	}
	slices.SortStableFunc(c.errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return schema.New(parts), c.errs
}

// newCompiler orders the documents.
func newCompiler(docs Documents) *compiler {
	var fragments []PermissionDocument
	var faults []error
	docs.Permissions, fragments, faults = placeFragments(docs.Permissions)
	slices.SortStableFunc(docs.Permissions, func(a, b PermissionDocument) int { return int(a.Rank) - int(b.Rank) })
	c := &compiler{
		docs: docs, fragments: fragments, statements: make([][]statement, len(docs.Permissions)), matched: make([]int, len(docs.Permissions)),
		permissions: newPermissions(), sharing: newSharing(), faulty: map[string]error{}, seen: map[string]bool{},
		trees: map[runtimeschema.GroupVersionKind]*schema.Node{}, lost: map[*guard][]error{},
		kinds: map[runtimeschema.GroupVersionKind]*schema.Kind{}, failed: map[runtimeschema.GroupVersionKind]error{},
		bodies: map[schema.Body]*schema.Kind{}, failedBodies: map[schema.Body]error{},
		scales: map[runtimeschema.GroupVersionResource]*schema.Kind{}, replicasUnknown: map[runtimeschema.GroupResource]bool{},
		versions: map[runtimeschema.GroupKind][]runtimeschema.GroupVersionKind{},
	}
	c.report(faults...)
	c.owner = c.docs.owners()
	for _, gvk := range inOrder(c.owner) {
		c.versions[gvk.GroupKind()] = append(c.versions[gvk.GroupKind()], gvk)
	}
	return c
}

// containers returns the resources of the kinds that contain each fragment.
func (c *compiler) containers(containing map[string][]runtimeschema.GroupKind) map[string][]v1alpha1.ResourceRule {
	out := map[string][]v1alpha1.ResourceRule{}
	for _, fragment := range v1alpha1.Fragments() {
		for _, kind := range containing[fragment] {
			seen := map[string]bool{}
			for _, gvk := range c.versions[kind] {
				if at := c.owner[gvk].resource(gvk); !seen[at.Resource] {
					seen[at.Resource] = true
					out[fragment] = append(out[fragment], v1alpha1.ResourceRule{APIGroups: []string{at.Group}, Resources: []string{at.Resource}})
				}
			}
		}
	}
	return out
}

// statusStored returns the resources of definitions in which a version lacks the subresource status, or is lossy.
func (c *compiler) statusStored() map[runtimeschema.GroupResource]bool {
	out := map[runtimeschema.GroupResource]bool{}
	for gvk, t := range c.owner {
		if k := c.kinds[gvk]; t.StatusInside[gvk] || k != nil && k.Lossy() {
			out[t.resource(gvk)] = true
		}
	}
	return out
}

// unmatched returns the error for a document of an administrator about no kind.
func (c *compiler) unmatched(d *PermissionDocument) *schema.Error {
	if known := c.versions[runtimeschema.GroupKind{Group: d.Group, Kind: d.Kind}]; len(known) > 0 {
		return &schema.Error{Source: d.Source, Pointer: "/spec/versions", Unmatched: true,
			Message: fmt.Sprintf("kind %q of group %q has none of these versions, so that only barriers of the document hold: correct them; it has %q", d.Kind, d.Group, versionsOf(known))}
	}
	return &schema.Error{Source: d.Source, Pointer: "/spec/kind", Unmatched: true,
		Message: fmt.Sprintf("kind %q of group %q is not known: install it first, or correct the name", d.Kind, d.Group)}
}

func versionsOf(kinds []runtimeschema.GroupVersionKind) []string {
	var out []string
	for _, gvk := range kinds {
		out = append(out, gvk.Version)
	}
	return out
}

type compiler struct {
	docs Documents
	// fragments are the documents about fragments. docs has what they say of each kind.
	fragments []PermissionDocument
	// statements are the entries of the permission documents that have been read.
	statements [][]statement
	// matched counts, for each document, the versions of kinds that it applies to.
	matched []int
	// lost are the errors about the path of a guard, one for each kind without that path.
	lost        map[*guard][]error
	permissions permissions
	sharing     *sharing
	faulty      map[string]error
	seen        map[string]bool
	errs        []error
	// owner is the topology that each kind is compiled from. versions are all versions of each kind.
	owner    map[runtimeschema.GroupVersionKind]*Topology
	versions map[runtimeschema.GroupKind][]runtimeschema.GroupVersionKind
	// trees are the shared trees of kinds. Equal trees are the same node.
	trees map[runtimeschema.GroupVersionKind]*schema.Node
	// The rest is what the schema is made of: see schema.Parts.
	kinds           map[runtimeschema.GroupVersionKind]*schema.Kind
	failed          map[runtimeschema.GroupVersionKind]error
	bodies          map[schema.Body]*schema.Kind
	failedBodies    map[schema.Body]error
	scales          map[runtimeschema.GroupVersionResource]*schema.Kind
	replicasUnknown map[runtimeschema.GroupResource]bool
}

func (c *compiler) report(errs ...error) {
	for _, err := range errs {
		if c.seen[err.Error()] {
			continue
		}
		c.seen[err.Error()] = true
		c.errs = append(c.errs, err)
		var e *schema.Error
		if errors.As(err, &e) && !e.Unmatched && c.faulty[e.Source] == nil {
			c.faulty[e.Source] = err
		}
	}
}

// topology compiles the kinds that one topology owns. It shares the nodes at once, so that at most one topology's own nodes are in memory
// at a time.
func (c *compiler) topology(t *Topology, touched map[runtimeschema.GroupVersionKind][]string) {
	var b *builder
	for _, gvk := range inOrder(t.Kinds) {
		if c.owner[gvk] != t {
			continue
		}
		if b == nil {
			b = newBuilder(t, c.permissions, c.docs.Traced)
			b.layFragments(c.fragments, c.docs.Traced)
		}
		o, sources := c.overlay(gvk)
		touched[gvk] = append(append(sources, t.Source), c.fragmentsIn(t)...)
		root, errs := b.kind(t.Kinds[gvk], o)
		errs = append(errs, c.lacking(b.lacking)...)
		if len(errs) > 0 {
			c.failed[gvk] = errs[0]
			c.report(errs...)
			continue
		}
		shared := c.sharing.share(root)
		c.trees[gvk] = shared
		c.kinds[gvk] = schema.NewKind(schema.KindParts{
			GroupVersionKind: gvk, Root: rootOf(shared), ShownInFull: t.JSON, Reads: t.Reads[gvk], Trace: c.traceOf(gvk),
		})
	}
}

// fragmentsIn returns the sources of the documents about fragments that the types of a topology include. A fault of one is one of all its kinds.
func (c *compiler) fragmentsIn(t *Topology) []string {
	var out []string
	for i := range c.fragments {
		for _, contains := range t.TypeContains {
			if slices.ContainsFunc(contains, func(f Contained) bool { return f.Name == c.fragments[i].Fragment }) {
				out = append(out, c.fragments[i].Source)
				break
			}
		}
	}
	return out
}

// inOrder returns kinds sorted by group, version and kind, so that a compile is deterministic.
func inOrder[V any](kinds map[runtimeschema.GroupVersionKind]V) []runtimeschema.GroupVersionKind {
	out := make([]runtimeschema.GroupVersionKind, 0, len(kinds))
	for gvk := range kinds {
		out = append(out, gvk)
	}
	slices.SortFunc(out, func(a, b runtimeschema.GroupVersionKind) int {
		return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.Version, b.Version), strings.Compare(a.Kind, b.Kind))
	})
	return out
}

// overlay combines all documents about a kind in one tree. It also returns their sources.
func (c *compiler) overlay(gvk runtimeschema.GroupVersionKind) (*overlay, []string) {
	o := &overlay{}
	var sources []string
	for i := range c.docs.Permissions {
		d := &c.docs.Permissions[i]
		switch {
		case d.matches(gvk):
			c.matched[i]++
			o.lay(c.read(i))
		case d.matchesKind(gvk):
			o.lay(c.inherited(gvk, d, c.read(i)))
		default:
			continue
		}
		sources = append(sources, d.Source)
	}
	return o, sources
}

// read returns the statements of a document.
func (c *compiler) read(i int) []statement {
	if d := &c.docs.Permissions[i]; c.statements[i] == nil {
		var errs []error
		var from []schema.Origin
		if c.docs.Traced {
			from = []schema.Origin{d.origin()}
		}
		c.statements[i], errs = statements(d.Source, d.includer, d.Rank, d.Entries, from)
		for _, s := range c.statements[i] {
			s.guard.everyKind = d.Kind == "*" && d.Fragment == ""
		}
		c.report(errs...)
	}
	return c.statements[i]
}

// lacking takes the guards whose path a kind does not have, and returns those that are faults. An entry need not hold for every version
// of a kind: it is a fault only if no version has the path.
func (c *compiler) lacking(guards map[*guard]error) []error {
	var errs []error
	for g, err := range guards {
		if g.entry.Fragment != (Fragment{}) && g.rank == RankExtension {
			continue
		}
		if g.everyKind || g.rank == RankExtension {
			errs = append(errs, err)
			continue
		}
		c.lost[g] = append(c.lost[g], err)
	}
	return errs
}

// reportLost reports the paths that no version has.
func (c *compiler) reportLost() {
	c.reportLostInFragments()
	for i, said := range c.statements {
		if c.docs.Permissions[i].Fragment != "" {
			continue
		}
		if c.matched[i] > 0 {
			c.reportMisfits(said, func(s statement) bool { return len(c.lost[s.guard]) == c.matched[i] })
		}
		for _, s := range said {
			if s.guard.entry.Fragment != (Fragment{}) {
				continue
			}
			if lost := c.lost[s.guard]; len(lost) > 0 && len(lost) == c.matched[i] {
				c.report(lost[0])
			}
		}
	}
}

// rootOf gives a kind its own root node, because the same type may also be the type of a field.
func rootOf(inner *schema.Node) *schema.Node {
	return withPermissions(inner, []*schema.Permission{schema.NewPermission(schema.PermissionParts{Verb: verbs.All()})})
}

// traceOf returns what a traced compile keeps of a kind, nil for another.
func (c *compiler) traceOf(gvk runtimeschema.GroupVersionKind) *schema.Trace {
	if !c.docs.Traced {
		return nil
	}
	t := c.owner[gvk]
	return &schema.Trace{Resource: t.resource(gvk), Names: t.OtherNames[gvk], Served: c.isServed(gvk), Type: c.typeOf(gvk)}
}
