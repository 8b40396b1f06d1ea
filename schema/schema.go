package schema

import (
	"errors"
	"fmt"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/verbs"
)

// ErrUnknownKind is what Kind's error is when no source has the kind. Nothing is known of such a
// kind, its barriers least of all.
var ErrUnknownKind = errors.New("kind is not known")

// Schema is the compiled permission schema of every known kind. The zero Schema knows none.
type Schema struct {
	kinds     map[runtimeschema.GroupVersionKind]*Kind
	failed    map[runtimeschema.GroupVersionKind]error
	uncovered []uncoveredSet
	// landscape is nil where there are no sets.
	landscape *landscape
	// bodies are the trees of bodies that write a part of an object of another kind; failedBodies says of which
	// that object's is not known.
	bodies       map[through]*Kind
	failedBodies map[through]error
	// concealing are the Scales of resources whose kind hides something.
	concealing map[runtimeschema.GroupVersionResource]*Kind
}

// Kind is the compiled tree of one kind.
type Kind struct {
	runtimeschema.GroupVersionKind
	// Root is the node of the object itself; its only verb is granular:*.
	Root   *Node
	mayBar bool
	// hidden is what a write through this version may change without showing it, nil for nothing.
	hidden *hidden
}

// MayBar reports whether the kind's schema has a barrier, conditional ones included.
// UncoveredPermissionSets are not counted.
func (k *Kind) MayBar() bool { return k.mayBar }

// Kind returns the tree of a kind. The error is ErrUnknownKind, or why the kind did not compile.
func (s *Schema) Kind(gvk runtimeschema.GroupVersionKind) (*Kind, error) {
	if k, ok := s.kinds[gvk]; ok {
		return k, nil
	}
	if err, ok := s.failed[gvk]; ok {
		return nil, fmt.Errorf("permission schema of %s: %w", gvk, err)
	}
	return nil, fmt.Errorf("permission schema of %s: %w: give a CustomResourceDefinition or an OpenAPI document that has it", gvk, ErrUnknownKind)
}

// Kinds returns every kind that compiled, in no order.
func (s *Schema) Kinds() []*Kind {
	out := make([]*Kind, 0, len(s.kinds))
	for _, k := range s.kinds {
		out = append(out, k)
	}
	return out
}

// Failed returns the kinds that did not compile, and why.
func (s *Schema) Failed() map[runtimeschema.GroupVersionKind]error {
	out := make(map[runtimeschema.GroupVersionKind]error, len(s.failed))
	for gvk, err := range s.failed {
		out[gvk] = err
	}
	return out
}

// VerbSet is a set of verbs; nil is empty.
type VerbSet map[verbs.Verb]struct{}

// Has reports whether v is in the set. The zero verb never is.
func (s VerbSet) Has(v verbs.Verb) bool {
	_, ok := s[v]
	return ok && !v.IsZero()
}

// Walk visits every node of the kind once, each with a pattern that leads to it.
func (k *Kind) Walk(visit func(Pattern, *Node)) {
	walk(k.Root, nil, map[*Node]bool{}, visit)
}
