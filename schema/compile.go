package schema

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/verbs"
)

// Compile turns documents into a Schema. It always returns one: a kind that a faulty document
// touches is among its Failed kinds, and Kind refuses it. The errors are *Error, each once, in the
// order of the documents; one that is Unmatched leaves every kind intact.
//
// The Schema keeps nothing of the documents but strings. Its kinds share every part of their trees that
// is the same, whichever documents it comes from.
func Compile(docs Documents) (*Schema, []error) {
	docs.Permissions = slices.Clone(docs.Permissions)
	slices.SortStableFunc(docs.Permissions, func(a, b PermissionDocument) int { return int(a.Rank) - int(b.Rank) })
	c := &compiler{
		docs: docs, statements: make([][]statement, len(docs.Permissions)), matched: make([]int, len(docs.Permissions)),
		permissions: permissions{}, sharing: newSharing(), faulty: map[string]error{}, seen: map[string]bool{},
		trees: map[runtimeschema.GroupVersionKind]*Node{}, lost: map[*guard][]error{},
		overlays: map[runtimeschema.GroupVersionKind]*overlay{},
	}
	s := &Schema{
		kinds: map[runtimeschema.GroupVersionKind]*Kind{}, failed: map[runtimeschema.GroupVersionKind]error{},
		bodies: map[through]*Kind{}, failedBodies: map[through]error{},
		concealing: map[runtimeschema.GroupVersionResource]*Kind{},
	}
	owners := c.owners()
	c.owner, c.versions = owners, map[runtimeschema.GroupKind][]runtimeschema.GroupVersionKind{}
	for _, gvk := range inOrder(owners) {
		c.versions[gvk.GroupKind()] = append(c.versions[gvk.GroupKind()], gvk)
	}
	touched := map[runtimeschema.GroupVersionKind][]string{}
	for i := range c.docs.Topologies {
		c.topology(s, &c.docs.Topologies[i], owners, touched)
	}
	c.reportLost()
	for i, kinds := range c.matched {
		if d := &c.docs.Permissions[i]; kinds == 0 && d.Rank == RankAdministrator {
			c.errs = append(c.errs, &Error{Source: d.Source, Pointer: "/spec/kind", Unmatched: true,
				Message: fmt.Sprintf("kind %q of group %q is not known: install it first, or correct the name", d.Kind, d.Group)})
		}
	}
	for gvk, sources := range touched {
		for _, source := range sources {
			if err := c.faulty[source]; err != nil && s.failed[gvk] == nil {
				s.failed[gvk] = err
			}
		}
		if s.failed[gvk] != nil {
			delete(s.kinds, gvk)
		}
	}
	c.conceal(s, owners)
	c.deriveBodies(s, owners)
	c.deriveScales(s, owners)
	if len(c.docs.Uncovered) > 0 {
		s.landscape = newLandscape(s, owners)
	}
	s.uncovered = c.uncovered(s)
	c.compareFields(s)
	slices.SortStableFunc(c.errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return s, c.errs
}

type compiler struct {
	docs Documents
	// statements are those of the permission documents that have been read.
	statements [][]statement
	// matched counts the kinds that a document is about, each version as one.
	matched []int
	// lost are the errors about the path of a guard, one for each kind that lacks it.
	lost        map[*guard][]error
	permissions permissions
	sharing     *sharing
	faulty      map[string]error
	seen        map[string]bool
	errs        []error
	// owner is the topology that a kind is compiled from, and versions are all of those.
	owner    map[runtimeschema.GroupVersionKind]*Topology
	versions map[runtimeschema.GroupKind][]runtimeschema.GroupVersionKind
	// overlays are what documents say of versions that others borrow from.
	overlays map[runtimeschema.GroupVersionKind]*overlay
	// trees are the shared trees of kinds: what is the same has one.
	trees map[runtimeschema.GroupVersionKind]*Node
}

func (c *compiler) report(errs ...error) {
	for _, err := range errs {
		if c.seen[err.Error()] {
			continue
		}
		c.seen[err.Error()] = true
		c.errs = append(c.errs, err)
		var e *Error
		if errors.As(err, &e) && !e.Unmatched && c.faulty[e.Source] == nil {
			c.faulty[e.Source] = err
		}
	}
}

// owners returns the topology that each kind is compiled from: the last that has it.
func (c *compiler) owners() map[runtimeschema.GroupVersionKind]*Topology {
	out := map[runtimeschema.GroupVersionKind]*Topology{}
	for i := range c.docs.Topologies {
		for gvk := range c.docs.Topologies[i].Kinds {
			out[gvk] = &c.docs.Topologies[i]
		}
	}
	return out
}

// topology compiles the kinds that one topology owns. What it builds is shared at once, so that no more
// than one topology's own nodes are held at a time.
func (c *compiler) topology(s *Schema, t *Topology, owners map[runtimeschema.GroupVersionKind]*Topology, touched map[runtimeschema.GroupVersionKind][]string) {
	var b *builder
	for _, gvk := range inOrder(t.Kinds) {
		if owners[gvk] != t {
			continue
		}
		if b == nil {
			b = newBuilder(t, c.permissions)
		}
		o, sources := c.overlay(gvk)
		touched[gvk] = append(sources, t.Source)
		root, errs := b.kind(t.Kinds[gvk], o)
		errs = append(errs, c.lacking(b.lacking)...)
		if len(errs) > 0 {
			// Their documents touch the kind, which fails by that.
			c.report(errs...)
			continue
		}
		shared := c.sharing.share(root)
		c.trees[gvk] = shared
		s.kinds[gvk] = newKind(gvk, shared)
	}
}

// inOrder returns kinds in the order of their names, so that a compile takes the same way each time.
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

// overlay lays the documents about a kind over each other, and returns their sources.
func (c *compiler) overlay(gvk runtimeschema.GroupVersionKind) (*overlay, []string) {
	o := c.lay(gvk)
	var sources []string
	for i := range c.docs.Permissions {
		d := &c.docs.Permissions[i]
		switch {
		case d.matches(gvk):
			c.matched[i]++
		case d.matchesKind(gvk):
			o.borrow(c.loans(gvk, d, c.read(i)))
		default:
			continue
		}
		sources = append(sources, d.Source)
	}
	return o, sources
}

// lay lays the documents about one version over each other.
func (c *compiler) lay(gvk runtimeschema.GroupVersionKind) *overlay {
	o := &overlay{}
	for i := range c.docs.Permissions {
		if c.docs.Permissions[i].matches(gvk) {
			o.lay(c.read(i))
		}
	}
	return o
}

// read returns the statements of a document.
func (c *compiler) read(i int) []statement {
	if d := &c.docs.Permissions[i]; c.statements[i] == nil {
		var errs []error
		c.statements[i], errs = statements(d.Source, d.Rank, d.Entries)
		for _, s := range c.statements[i] {
			s.guard.everyKind = d.Kind == "*"
		}
		c.report(errs...)
	}
	return c.statements[i]
}

// lacking takes the guards whose path a kind lacks, and returns the faults among them. What a document says of
// one kind need not hold for every version: it is a fault if no version has the path.
func (c *compiler) lacking(guards map[*guard]error) []error {
	var errs []error
	for g, err := range guards {
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
	for i, said := range c.statements {
		for _, s := range said {
			if lost := c.lost[s.guard]; len(lost) > 0 && len(lost) == c.matched[i] {
				c.report(lost[0])
			}
		}
	}
}

// newKind gives a kind a root of its own, because the same type may also be a field.
func newKind(gvk runtimeschema.GroupVersionKind, inner *Node) *Kind {
	root := *inner
	root.permissions = []*Permission{{verb: verbs.All()}}
	return &Kind{GroupVersionKind: gvk, Root: &root, mayBar: root.MayBarWithin()}
}
