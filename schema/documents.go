package schema

import (
	"fmt"
	"slices"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	smd "sigs.k8s.io/structured-merge-diff/v6/schema"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/schema/endpoint"
)

// Documents are the decoded sources of one compile. Later ones win, per kind in Topologies and per
// node among entries of the same rank.
type Documents struct {
	Topologies  []Topology
	Permissions []PermissionDocument
	Uncovered   []UncoveredDocument
}

// Append returns d followed by more, in slices of its own. Many are better appended in one call.
func (d Documents) Append(more ...Documents) Documents {
	out := Documents{Topologies: slices.Clone(d.Topologies), Permissions: slices.Clone(d.Permissions), Uncovered: slices.Clone(d.Uncovered)}
	for _, next := range more {
		out.Topologies = append(out.Topologies, next.Topologies...)
		out.Permissions = append(out.Permissions, next.Permissions...)
		out.Uncovered = append(out.Uncovered, next.Uncovered...)
	}
	return out
}

// Topology is the types of one source, in structured-merge-diff's terms, and the kinds they stand for.
type Topology struct {
	// Source names the document in errors.
	Source string
	Types  *smd.Schema
	// Kinds maps each kind to the name of its type.
	Kinds map[runtimeschema.GroupVersionKind]string
	// Plurals names the resources of kinds whose names do not follow Kubernetes' way to pluralize.
	Plurals map[runtimeschema.GroupVersionKind]string
	// Replicas is where a kind's scale subresource writes, for kinds where it is not .spec.replicas.
	Replicas map[runtimeschema.GroupVersionKind]string
	// Lossy are the kinds whose version may change more than it shows. Where it is nil nothing is known of
	// conversion, and Compile compares the versions.
	Lossy map[runtimeschema.GroupVersionKind]Loss
	// Unserved are versions that a server can convert to and shows nobody. Owners of fields may be named in them.
	Unserved []runtimeschema.GroupVersionKind
	// KeepsNames says that a field has the same path in every version: conversion changes nothing but the apiVersion.
	KeepsNames bool
	// RoundTrips says that the newest version of each kind has everything that the others have: Kubernetes' own
	// tests hold that for its kinds.
	RoundTrips bool
	// TypePermissions are the permission keys that the source carries on a named type, with paths
	// relative to it (vendor extensions of an OpenAPI document).
	TypePermissions map[string][]Entry
}

// Rank orders permission documents: per node the entry of the highest rank wins.
type Rank int

// The ranks, in the order in which sources are compiled together.
const (
	RankEveryKind Rank = iota
	RankCatalogue
	RankCustomResource
	RankExtension
	RankAdministrator
)

// PermissionDocument guards the fields of one kind, or of every kind.
type PermissionDocument struct {
	Source string
	Rank   Rank
	// Group and Kind are "*" for every kind.
	Group, Kind string
	// Versions that the document holds for; empty means every version.
	Versions []string
	Entries  []Entry
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

// matchesKind is matches for any version.
func (d *PermissionDocument) matchesKind(gvk runtimeschema.GroupVersionKind) bool {
	return d.Kind == "*" || d.Group == gvk.Group && d.Kind == gvk.Kind
}

// Entry is one guarded node with its place in the source.
type Entry struct {
	v1alpha1.FieldPermission
	// Role is for the built-in catalogue only.
	Role Role
	// Apart is that no verb above the node's counts for it but granular:*. For the built-in catalogue only.
	Apart bool
	// Why says what the holder of a verb that stands apart gets done by it. For readers only.
	Why string
	// Powers are what the verb is worth beyond its field. For the built-in catalogue only.
	Powers []Power
	// Writes say when the API server writes the node by itself (D13). An entry with writes says nothing else, and is made
	// of what was recorded only.
	Writes []endpoint.Write
	// Optional entries are left out where the kind has no such path or the path emits no such
	// parameter.
	Optional bool
	// Pointer is the JSON pointer of the entry in its document.
	Pointer string
}

// IsBarrier reports whether the entry can be a barrier.
func (e Entry) IsBarrier() bool { return e.Excluded || e.ExcludedWhen != "" }

// UncoveredDocument is one UncoveredPermissionSet.
type UncoveredDocument struct {
	Source string
	Set    v1alpha1.UncoveredPermissionSet
}

// Error is a fault in a document.
type Error struct {
	Source  string
	Pointer string
	Message string
	// Unmatched faults are those of a document about a kind that nobody has, which may come later.
	Unmatched bool
}

// Error renders "source:pointer: message".
func (e *Error) Error() string {
	return fmt.Sprintf("%s:%s: %s", e.Source, e.Pointer, e.Message)
}
