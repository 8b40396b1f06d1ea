package schema

import (
	"errors"
	"fmt"
	"maps"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/fieldperm/fieldperm/schema/fieldpath"
	"github.com/fieldperm/fieldperm/verbs"
)

// ErrUnknownKind is the error of Kind for a kind that no source has. Nothing is known about such a kind, in particular not its barriers.
var ErrUnknownKind = errors.New("kind is not known")

// Schema is the compiled permission schema of every known kind. The zero Schema knows none.
type Schema struct {
	kinds     map[runtimeschema.GroupVersionKind]*Kind
	failed    map[runtimeschema.GroupVersionKind]error
	uncovered []uncoveredSet
	// applicable are the sets by the endpoints for whose requests they may hold.
	applicable applicable
	// statusStored are the resources of definitions whose objects store their status: see storesStatus.
	statusStored map[runtimeschema.GroupResource]bool
	// bodies are the trees of request bodies that write a part of an object of another kind. failedBodies are those for which the tree of
	// that object is not known.
	bodies       map[through]*Kind
	failedBodies map[through]error
	// concealing are the Scales of resources whose kind has hidden fields.
	concealing map[runtimeschema.GroupVersionResource]*Kind
	// replicasUnknown: see HidesReplicas.
	replicasUnknown map[runtimeschema.GroupResource]bool
	// containing are the kinds that contain each fragment of the catalogue.
	containing map[string][]runtimeschema.GroupKind
}

// KindsOf returns the kinds that a document is about, sorted: its own, or those that contain its fragment.
func (s *Schema) KindsOf(d *PermissionDocument) []runtimeschema.GroupKind {
	if d.Fragment == "" {
		return []runtimeschema.GroupKind{{Group: d.Group, Kind: d.Kind}}
	}
	return s.containing[d.Fragment]
}

// Kind is the compiled tree of one kind.
type Kind struct {
	runtimeschema.GroupVersionKind
	// Root is the node of the object itself; its only verb is granular:*.
	Root   *Node
	mayBar bool
	// folds: see Folds.
	folds bool
	// shown: see ShownInFull.
	shown bool
	// reads: see Read. It is nil if a review shows objects as readers get them.
	reads func(object map[string]any) bool
	// hidden describes the fields that a write through this version may change without showing them; nil means none.
	hidden *hidden
	// versions are the versions that compiled, by apiVersion; nil if there is only one.
	versions map[string]*Kind
	// alike says which fields are the same in other versions, by apiVersion.
	alike map[string]*likeness
	// convertsByName: see ConvertsByName. renames: see Renames.
	convertsByName, renames bool
	// typed: see Type.
	typed func() typed.ParseableType
	// trace is nil if the compile was not traced.
	trace *Trace
}

// In returns the kind in another version, nil if that version is not known.
func (k *Kind) In(apiVersion string) *Kind {
	if apiVersion == k.GroupVersion().String() {
		return k
	}
	return k.versions[apiVersion]
}

// MayBar reports whether the kind's schema has a barrier, conditional ones included.
// UncoveredPermissionSets are not counted.
func (k *Kind) MayBar() bool { return k.mayBar }

// Folds reports whether a node of the kind folds: see Node.Folds.
func (k *Kind) Folds() bool { return k.folds }

// ShownInFull reports whether a review shows all contents of an object, because the API server receives and stores the kind as JSON. This is
// true of custom resources. Objects of other kinds may be sent and stored as protobuf, which holds more than JSON can show: the unused
// half of an IntOrString, and strings that are not UTF-8. They may also hold JSON text byte for byte (RawExtension).
func (k *Kind) ShownInFull() bool { return k.shown }

// ShownAsRead reports whether a review shows every object in the form in which readers get it, so that Read changes nothing.
func (k *Kind) ShownAsRead() bool { return k.reads == nil }

// Read brings a new object into the form in which readers get it. The object is decoded JSON with int64 and float64 for numbers. Read
// returns false if readers get it without some of its fields, or if it is no object. A condition on it then says nothing of the object that
// readers get.
func (k *Kind) Read(object any) bool {
	if k.reads == nil {
		return true
	}
	fields, ok := object.(map[string]any)
	return ok && k.reads(fields)
}

// Kind returns the tree of a kind. The error is ErrUnknownKind, or the reason why the kind did not compile.
func (s *Schema) Kind(gvk runtimeschema.GroupVersionKind) (*Kind, error) {
	if k, ok := s.kinds[gvk]; ok {
		return k, nil
	}
	if err, ok := s.failed[gvk]; ok {
		return nil, fmt.Errorf("permission schema of %s: %w", gvk, err)
	}
	return nil, fmt.Errorf("permission schema of %s: %w: give a CustomResourceDefinition or an OpenAPI document that has it", gvk, ErrUnknownKind)
}

// Kinds returns every kind that compiled, in random order.
func (s *Schema) Kinds() []*Kind {
	out := make([]*Kind, 0, len(s.kinds))
	for _, k := range s.kinds {
		out = append(out, k)
	}
	return out
}

// Failed returns the kinds that did not compile, each with the reason.
func (s *Schema) Failed() map[runtimeschema.GroupVersionKind]error {
	out := make(map[runtimeschema.GroupVersionKind]error, len(s.failed))
	for gvk, err := range s.failed {
		out[gvk] = err
	}
	return out
}

// VerbSet is a set of verbs that are barriers, each with its extent; nil is empty.
type VerbSet map[verbs.Verb]Extent

// Extent says for which changes a barrier holds. The zero value means all changes.
type Extent struct {
	// OwnersOnly means that the barrier holds only for changes of owners.
	OwnersOnly bool
	// StatusOnly means that the barrier holds only for changes of owners in the status.
	StatusOnly bool
	// StatusValues means that the barrier holds for changes of values in the status too, in spite of OwnersOnly and StatusOnly.
	StatusValues bool
}

// Add adds a barrier. If the verb is already in the set, the barrier holds for the changes of both extents.
func (s VerbSet) Add(v verbs.Verb, e Extent) {
	was, known := s[v]
	if !known {
		s[v] = e
		return
	}
	out := was
	if was.StatusOnly || was.OwnersOnly && !e.StatusOnly {
		out = e
	}
	out.StatusValues = out.limited() && (was.StatusValues || e.StatusValues)
	s[v] = out
}

// Plus returns the barriers of both sets. A verb of both holds for the changes of both extents. Neither set changes.
func (s VerbSet) Plus(others VerbSet) VerbSet {
	switch {
	case len(others) == 0:
		return s
	case len(s) == 0:
		return others
	}
	out := maps.Clone(s)
	for v, e := range others {
		out.Add(v, e)
	}
	return out
}

// limited reports whether the barrier does not hold for changes of values outside the status.
func (e Extent) limited() bool { return e.OwnersOnly || e.StatusOnly }

// ForValues returns the barriers that hold for changes of values outside the status.
func (s VerbSet) ForValues() VerbSet { return s.without(Extent.limited) }

// ForStatusValues returns the barriers that hold for changes of values in the status.
func (s VerbSet) ForStatusValues() VerbSet {
	return s.without(func(e Extent) bool { return e.limited() && !e.StatusValues })
}

// ForOwners returns the barriers that hold for changes of owners outside the status. For owners in the status all barriers hold.
func (s VerbSet) ForOwners() VerbSet {
	return s.without(func(e Extent) bool { return e.StatusOnly })
}

// With returns the barriers of both sets, each with its extent in s if it is in s.
func (s VerbSet) With(others VerbSet) VerbSet {
	out := VerbSet{}
	maps.Copy(out, others)
	maps.Copy(out, s)
	return out
}

// without returns the set without the verbs for which left is true. If there are none, it returns s itself.
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

// Has reports whether v is in the set. The zero verb is never in a set.
func (s VerbSet) Has(v verbs.Verb) bool {
	_, ok := s[v]
	return ok && !v.IsZero()
}

// HasWith reports whether a verb is in the set with any parameter.
func (s VerbSet) HasWith(base verbs.Verb) bool {
	for v := range s {
		if v != base && v.WithoutParameter() == base {
			return true
		}
	}
	return false
}

// Walk visits every node of the kind once, each with a pattern that leads to it.
func (k *Kind) Walk(visit func(fieldpath.Pattern, *Node)) {
	walk(k.Root, nil, map[*Node]bool{}, visit)
}
