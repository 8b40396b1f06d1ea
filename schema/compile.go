package schema

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	smd "sigs.k8s.io/structured-merge-diff/v6/schema"

	"github.com/fieldperm/fieldperm/verbs"
)

// Compile turns documents into a Schema. It always returns one: a kind that a faulty document
// touches is among its Failed kinds, and Kind refuses it. The errors are *Error, each once, in the
// order of the documents; one that is Unmatched leaves every kind intact.
func Compile(docs Documents) (*Schema, []error) {
	c := &compiler{docs: docs, faulty: map[string]error{}, seen: map[string]bool{}}
	slices.SortStableFunc(c.docs.Permissions, func(a, b PermissionDocument) int { return int(a.Rank) - int(b.Rank) })
	s := &Schema{
		kinds: map[runtimeschema.GroupVersionKind]*Kind{}, failed: map[runtimeschema.GroupVersionKind]error{},
		scales: map[runtimeschema.GroupResource]*Kind{}, failedScales: map[runtimeschema.GroupResource]error{},
		lossy: map[runtimeschema.GroupVersionResource]bool{},
	}
	owners := c.owners()
	touched := map[runtimeschema.GroupVersionKind][]string{}
	matched := make([]bool, len(c.docs.Permissions))
	for gvk, topology := range owners {
		touched[gvk] = []string{topology.Source}
		k := c.kind(gvk, topology, func(i int) {
			matched[i] = true
			touched[gvk] = append(touched[gvk], c.docs.Permissions[i].Source)
		})
		s.kinds[gvk] = k
		if topology.Lossy[gvk] || gvk == shadowedKind {
			k.lossy = true
			s.lossy[topology.resource(gvk).WithVersion(gvk.Version)] = true
		}
		k.Walk(func(_ Pattern, n *Node) {
			if n.fault != nil && s.failed[gvk] == nil {
				s.failed[gvk] = n.fault
			}
		})
	}
	for _, b := range c.builders {
		c.report(b.errs...)
	}
	for i, ok := range matched {
		if d := &c.docs.Permissions[i]; !ok && d.Rank == RankAdministrator {
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
	c.deriveScales(s, owners)
	s.uncovered = c.uncovered(s)
	slices.SortStableFunc(c.errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return s, c.errs
}

type compiler struct {
	docs     Documents
	builders map[*Topology]*builder
	faulty   map[string]error
	seen     map[string]bool
	errs     []error
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

func (c *compiler) kind(gvk runtimeschema.GroupVersionKind, topology *Topology, uses func(int)) *Kind {
	if c.builders == nil {
		c.builders = map[*Topology]*builder{}
	}
	b := c.builders[topology]
	if b == nil {
		b = newBuilder(topology)
		c.builders[topology] = b
	}
	o := &overlay{}
	for i := range c.docs.Permissions {
		d := &c.docs.Permissions[i]
		if !d.matches(gvk) {
			continue
		}
		uses(i)
		c.report(o.add(d.Source, d.Rank, d.Entries)...)
	}
	name := topology.Kinds[gvk]
	inner := b.build(smd.TypeRef{NamedType: &name}, o, nil, place{})
	// The root of a kind is a node of its own, because the same type may also be a field.
	root := *inner
	root.permissions = []*Permission{{verb: verbs.All(), source: "built in"}}
	k := &Kind{GroupVersionKind: gvk, Root: &root}
	k.Walk(func(_ Pattern, n *Node) {
		for _, p := range n.permissions {
			k.mayBar = k.mayBar || p.MayBar()
		}
	})
	return k
}
