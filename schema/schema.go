package schema

import (
	"errors"
	"fmt"
	"maps"

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
	// unlike are the fields of match conditions, by path, that another version has otherwise.
	unlike map[string]bool
	// versions are those that compiled, by apiVersion; nil where there is one.
	versions map[string]*Kind
	// alike says which fields of other versions are the same ones, by apiVersion.
	alike map[string]*likeness
	// convertsByName: see ConvertsByName.
	convertsByName bool
}

// In returns the kind as another version has it, nil if that is not known.
func (k *Kind) In(apiVersion string) *Kind {
	if apiVersion == k.GroupVersion().String() {
		return k
	}
	return k.versions[apiVersion]
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

// VerbSet is a set of verbs that are barriers, and how far each is; nil is empty.
type VerbSet map[verbs.Verb]Extent

// Extent is how far a barrier holds. The zero value is everything.
type Extent struct {
	// OwnersOnly says that it holds for changes of owners alone: what becomes of the value is for another request to say then, so
	// that a condition on values says nothing.
	OwnersOnly bool
	// StatusOnly says that it holds for the owners of what is in the status, and for nothing else.
	StatusOnly bool
}

// Add adds a barrier, the further of the two if it is known.
func (s VerbSet) Add(v verbs.Verb, e Extent) {
	if was, known := s[v]; !known || was.StatusOnly || was.OwnersOnly && !e.StatusOnly {
		s[v] = e
	}
}

// ForValues returns the barriers that hold for changes of values.
func (s VerbSet) ForValues() VerbSet {
	return s.without(func(e Extent) bool { return e.OwnersOnly || e.StatusOnly })
}

// ForOwners returns those that hold for changes of owners, but for the owners of what is in the status. For these all hold.
func (s VerbSet) ForOwners() VerbSet {
	return s.without(func(e Extent) bool { return e.StatusOnly })
}

// without returns the set itself where nothing is left out.
func (s VerbSet) without(left func(Extent) bool) VerbSet {
	out := s
	for v, e := range s {
		if left(e) {
			if len(out) == len(s) {
				out = maps.Clone(s)
			}
			delete(out, v)
		}
	}
	return out
}

// Has reports whether v is in the set. The zero verb never is.
func (s VerbSet) Has(v verbs.Verb) bool {
	_, ok := s[v]
	return ok && !v.IsZero()
}

// Walk visits every node of the kind once, each with a pattern that leads to it.
func (k *Kind) Walk(visit func(Pattern, *Node)) {
	walk(k.Root, nil, map[*Node]bool{}, visit)
}
