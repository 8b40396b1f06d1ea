package compile

import (
	"iter"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	smd "sigs.k8s.io/structured-merge-diff/v6/schema"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/endpoint"
	"github.com/fieldperm/fieldperm/schema/sets"
)

// Documents are the decoded sources of one compile. Later documents take precedence: per kind in Topologies, and per node among entries
// of the same rank.
type Documents struct {
	Topologies  []Topology
	Permissions []PermissionDocument
	Uncovered   []sets.Document
	// Traced means that Compile keeps the Origins of each permission and the Trace of each kind. Equal fields of different sources are
	// then different nodes, and the Schema keeps the types of the documents. It is for commands; it does not change any decision.
	Traced bool
}

// Append returns d followed by more, in new slices. To append many documents, use one call.
func (d Documents) Append(more ...Documents) Documents {
	out := Documents{Topologies: slices.Clone(d.Topologies), Permissions: slices.Clone(d.Permissions), Uncovered: slices.Clone(d.Uncovered), Traced: d.Traced}
	for _, next := range more {
		out.Topologies = append(out.Topologies, next.Topologies...)
		out.Permissions = append(out.Permissions, next.Permissions...)
		out.Uncovered = append(out.Uncovered, next.Uncovered...)
		out.Traced = out.Traced || next.Traced
	}
	return out
}

// Topology is the types of one source, in the terms of structured-merge-diff, and the kinds that use them.
type Topology struct {
	// Source names the document in errors.
	Source string
	Types  *smd.Schema
	// Kinds maps each kind to the name of its type.
	Kinds map[runtimeschema.GroupVersionKind]string
	// Plurals holds the resource names of kinds whose plural does not follow the Kubernetes rule.
	Plurals map[runtimeschema.GroupVersionKind]string
	// OtherNames are the singular name and the short names that definitions give to their resources, for command lines.
	OtherNames map[runtimeschema.GroupVersionKind][]string
	// Replicas is the path that a kind's scale subresource writes, for kinds where it is not .spec.replicas.
	Replicas map[runtimeschema.GroupVersionKind]string
	// ReplicasUnknown are the kinds with a subresource scale for which the source does not say which field it writes.
	ReplicasUnknown map[runtimeschema.GroupVersionKind]bool
	// StatusInside are the kinds of definitions without the subresource status: a write of the object writes its status too.
	StatusInside map[runtimeschema.GroupVersionKind]bool
	// Reads has, for the kinds of definitions, a function that brings an object, decoded JSON with int64 and float64 for numbers, into the form
	// in which readers get it. A review shows it in another form if it was applied by server-side apply. The function returns false if readers
	// get the object without some of its fields.
	Reads map[runtimeschema.GroupVersionKind]func(object map[string]any) bool
	// Lossy are the kinds whose version may change more than it shows, with advice for messages (Kind.Instead). If it is nil, nothing is known
	// about conversion, and Compile compares the versions.
	Lossy map[runtimeschema.GroupVersionKind]string
	// Unserved are versions that a server can convert to but does not serve, with their types. managedFields may name them.
	Unserved map[runtimeschema.GroupVersionKind]string
	// KeepsNames means that a field has the same path in every version: conversion changes only the apiVersion.
	KeepsNames bool
	// JSON means that objects of the kinds are received and stored as JSON, so that a review shows all of their contents.
	JSON bool
	// RoundTrips means that no write through the newest version of each kind loses a field of the others. Kubernetes' own tests ensure for
	// its kinds that the newest version has every field. Tests of schema/load and test/fields are about the exceptions.
	RoundTrips bool
	// TypePermissions are the permission keys of named types in the source (vendor extensions of an OpenAPI document). Their paths are
	// relative to the type.
	TypePermissions map[string][]Entry
	// TypeContains are the fragments that these include, also those that others include, with paths relative to the type.
	TypeContains map[string][]Contained
}

// owners returns the topology that each kind is compiled from: the last that has it.
func (d *Documents) owners() map[runtimeschema.GroupVersionKind]*Topology {
	out := map[runtimeschema.GroupVersionKind]*Topology{}
	for i := range d.Topologies {
		for gvk := range d.Topologies[i].Kinds {
			out[gvk] = &d.Topologies[i]
		}
	}
	return out
}

// Resources yields each kind with its resource, sorted by group, version and kind.
func (d *Documents) Resources() iter.Seq2[runtimeschema.GroupVersionKind, runtimeschema.GroupResource] {
	return func(yield func(runtimeschema.GroupVersionKind, runtimeschema.GroupResource) bool) {
		owners := d.owners()
		for _, gvk := range inOrder(owners) {
			if !yield(gvk, owners[gvk].resource(gvk)) {
				return
			}
		}
	}
}

// Rank orders permission documents. Per node the entry of the highest rank counts.
type Rank int

// These are the ranks, from low to high.
const (
	RankEveryKind Rank = iota
	RankCatalogue
	RankCustomResource
	RankExtension
	RankAdministrator
)

// PermissionDocument guards the fields of one kind, of every kind, or of a fragment of the catalogue in every kind that contains it.
type PermissionDocument struct {
	Source string
	Rank   Rank
	// Form is the form of the entries, for a traced compile.
	Form schema.Form
	// Group and Kind are "*" for every kind. Both are "" if Fragment is given.
	Group, Kind string
	// Fragment is the name of the fragment that the document is about, "" for a kind. Paths of its entries are relative to it.
	Fragment string
	// Contains are the fragments of the catalogue that the document includes, also those that others include.
	Contains []Contained
	// Versions are the versions that the document applies to; empty means every version.
	Versions []string
	Entries  []Entry
	// includer is the document whose fragment the entries are about: see statements. The catalogue is none, so that what fails there is a fault of the
	// document itself.
	includer string
}

func (d *PermissionDocument) matches(gvk runtimeschema.GroupVersionKind) bool {
	if !d.matchesKind(gvk) {
		return false
	}
	for _, v := range d.Versions {
		if v == gvk.Version {
			return true
		}
	}
	return len(d.Versions) == 0
}

// matchesKind reports whether the document is about the kind in any version.
func (d *PermissionDocument) matchesKind(gvk runtimeschema.GroupVersionKind) bool {
	return d.Kind == "*" || d.Group == gvk.Group && d.Kind == gvk.Kind
}

// Entry is one guarded node and its position in the source.
type Entry struct {
	v1alpha1.FieldPermission
	// Role is the role of the node. Only the built-in catalogue may use it.
	Role schema.Role
	// Why explains the powers of the verb of a key. It is documentation only.
	Why string
	// Powers are the effects that the verb permits beyond its field. Only the built-in catalogue may use it.
	Powers []schema.Power
	// Writes are the cases in which the API server writes the node by itself (D13). An entry with writes has no other content, and comes
	// only from recorded observations.
	Writes []endpoint.Write
	// Optional entries are ignored if the kind has no such path or the path emits no such parameter.
	Optional bool
	// Bare entries have their verb without the parameter if the path emits no such parameter.
	Bare bool
	// Fragment is the fragment of the catalogue that a document includes and that has the entry. The kind need not have the path.
	Fragment Fragment
	// Pointer is the JSON pointer of the entry in its document.
	Pointer string
}

// IsBarrier reports whether the entry can be a barrier.
func (e Entry) IsBarrier() bool { return e.Excluded || e.ExcludedWhen != "" }

// replicasPath is the path of a kind's replicas, unless its topology has another one.
const replicasPath = ".spec.replicas"

// resource returns the kind's resource, with the plural from the source or the one that Kubernetes derives.
func (t *Topology) resource(gvk runtimeschema.GroupVersionKind) runtimeschema.GroupResource {
	if plural, ok := t.Plurals[gvk]; ok {
		return runtimeschema.GroupResource{Group: gvk.Group, Resource: plural}
	}
	plural, _ := meta.UnsafeGuessKindToResource(gvk)
	return plural.GroupResource()
}

func (t *Topology) replicas(gvk runtimeschema.GroupVersionKind) string {
	if path, ok := t.Replicas[gvk]; ok {
		return path
	}
	return replicasPath
}

// origin returns the origin of the entries of a document.
func (d *PermissionDocument) origin() schema.Origin {
	if d.Rank <= RankCatalogue {
		return schema.Origin{Form: schema.FormCatalogue}
	}
	return schema.Origin{Form: d.Form, Source: d.Source}
}

// KindsIn returns the kinds that the document is about, sorted: its own, or those of a schema that contain its fragment.
func (d *PermissionDocument) KindsIn(s *schema.Schema) []runtimeschema.GroupKind {
	if d.Fragment == "" {
		return []runtimeschema.GroupKind{{Group: d.Group, Kind: d.Kind}}
	}
	return s.Containing(d.Fragment)
}
