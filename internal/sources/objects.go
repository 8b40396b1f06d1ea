package sources

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/internal/schemacheck"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/schema/load"
	"github.com/fieldperm/fieldperm/schema/sets"
)

// ObjectState is a PermissionSchema or an UncoveredPermissionSet of the cluster, in the form from which the schema in force was
// compiled.
type ObjectState struct {
	Kind, Name string
	UID        types.UID
	// Generation is the generation that was last seen, and that the faults are about.
	Generation int64
	// Faults are the reasons why this generation is not in force in full.
	Faults []error
	// Unmatched faults are about kinds that may be installed later. The rest of the object is in force.
	Unmatched []error
	// GuardedFields are the fields that an UncoveredPermissionSet protects, by resource.
	GuardedFields []v1alpha1.GuardedFields
	// Documents are the documents in force for the object: its current ones, or those of its last valid generation.
	Documents compile.Documents
}

// Bars reports whether the documents in force for the object can contain a barrier.
func (s *ObjectState) Bars() bool {
	for i := range s.Documents.Permissions {
		if slices.ContainsFunc(s.Documents.Permissions[i].Entries, compile.Entry.IsBarrier) {
			return true
		}
	}
	return len(s.Documents.Uncovered) > 0
}

// Denies reports whether one of the sets of the object refuses writes.
func (s *ObjectState) Denies() bool {
	return slices.ContainsFunc(s.Documents.Uncovered, func(d sets.Document) bool { return d.Set.Spec.Denies() })
}

// objects are the PermissionSchemas and UncoveredPermissionSets of an API server.
type objects struct {
	list  func(context.Context) ([]*unstructured.Unstructured, error)
	known map[objectKey]*object
}

type objectKey struct{ kind, name string }

func (k objectKey) source() string { return admission.DocumentSource(k.kind, k.name) }

func (k objectKey) compare(other objectKey) int {
	return cmp.Or(cmp.Compare(k.kind, other.kind), cmp.Compare(k.name, other.name))
}

// object is one of them: its current form, and its last valid form.
type object struct {
	uid        types.UID
	generation int64
	// spec is the specification that current was decoded from, which belongs to the informer. It is read only.
	spec    any
	current compile.Documents
	// faults are the errors of decoding. If a PermissionSchema has any, current is empty, because the rest of it might lack its
	// barriers.
	faults []error
	// guards is the kind of the objects that a PermissionSchema is about, or fragment what they contain.
	guards   runtimeschema.GroupKind
	fragment string
	// good is the last form in force without a fault, with its generation.
	good           *compile.Documents
	goodGeneration int64
	// compileFaults and unmatched are the faults of the last compile.
	compileFaults, unmatched []error
}

// read updates the objects and reports whether any changed. After an error the objects are unchanged.
func (o *objects) read(ctx context.Context) (bool, error) {
	if o.list == nil {
		return false, nil
	}
	list, err := o.list(ctx)
	if err != nil {
		return false, err
	}
	changed := false
	seen := map[objectKey]bool{}
	for _, u := range list {
		key := objectKey{u.GetKind(), u.GetName()}
		seen[key] = true
		before := o.known[key]
		// After a restore of etcd, a generation may occur a second time with another content.
		if before != nil && before.uid == u.GetUID() && before.generation == u.GetGeneration() && reflect.DeepEqual(before.spec, u.Object["spec"]) {
			continue
		}
		next := decodeObject(key, u)
		if before != nil && before.uid == next.uid {
			next.good, next.goodGeneration = before.good, before.goodGeneration
		}
		o.known[key] = next
		changed = true
	}
	for key := range o.known {
		if !seen[key] {
			delete(o.known, key)
			changed = true
		}
	}
	return changed, nil
}

func decodeObject(key objectKey, u *unstructured.Unstructured) *object {
	out := &object{uid: u.GetUID(), generation: u.GetGeneration(), spec: u.Object["spec"]}
	out.guards.Group, _, _ = unstructured.NestedString(u.Object, "spec", "group")
	out.guards.Kind, _, _ = unstructured.NestedString(u.Object, "spec", "kind")
	out.fragment, _, _ = unstructured.NestedString(u.Object, "spec", "fragment")
	raw, err := u.MarshalJSON()
	if err != nil {
		out.faults = []error{&schema.Error{Source: key.source(), Message: err.Error()}}
		return out
	}
	if out.current, out.faults = load.Decode(key.source(), raw); len(out.faults) == 0 {
		return out
	}
	out.current = compile.Documents{}
	// Unknown fields of a set can only narrow it. Without them the set protects more.
	var set v1alpha1.UncoveredPermissionSet
	if key.kind == v1alpha1.UncoveredPermissionSetKind && runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &set) == nil {
		out.current.Uncovered = []sets.Document{{Source: key.source(), Set: set}}
	}
	return out
}

// kinds returns the kinds that a PermissionSchema is about. Only for one about a fragment it asks for all documents.
func (o *object) kinds(all func() compile.Documents) []runtimeschema.GroupKind {
	if o.fragment == "" {
		return []runtimeschema.GroupKind{o.guards}
	}
	documents := all()
	return documents.KindsWith(o.fragment)
}

// keys returns the keys in the order in which the objects are compiled.
func (o *objects) keys() []objectKey {
	return slices.SortedFunc(maps.Keys(o.known), objectKey.compare)
}

// documents returns the documents in force of every object. For an object that did not decode, and for the objects in back, these
// are the last valid ones.
func (o *objects) documents(back retreats) compile.Documents {
	parts := make([]compile.Documents, 0, len(o.known))
	for _, key := range o.keys() {
		parts = append(parts, o.inForce(key, back))
	}
	return compile.Documents{}.Append(parts...)
}

func (o *objects) inForce(key objectKey, back retreats) compile.Documents {
	one := o.known[key]
	out := one.current
	if one.good != nil && (back.objects[key] || len(one.faults) > 0) {
		out = *one.good
	}
	switch back.standing[key] {
	case whole:
		return out
	case barriersAlone:
		return barriersOf(out)
	case nothing:
	}
	return compile.Documents{}
}

// unknown returns the kinds of PermissionSchemas that did not decode and never were valid: their barriers are unknown.
func (o *objects) unknown(all func() compile.Documents) map[runtimeschema.GroupKind]bool {
	out := map[runtimeschema.GroupKind]bool{}
	for key, one := range o.known {
		if key.kind == v1alpha1.PermissionSchemaKind && len(one.faults) > 0 && one.good == nil {
			for _, kind := range one.kinds(all) {
				out[kind] = true
			}
		}
	}
	return out
}

// faults returns the errors of decoding, in the order of kinds and names.
func (o *objects) faults() []error {
	var out []error
	for _, key := range o.keys() {
		out = append(out, o.known[key].faults...)
	}
	return out
}

// failing returns the objects of a kind that a compile found faulty and that were valid in another generation.
func (o *objects) failing(kind string, errs []error) map[objectKey]bool {
	out := map[objectKey]bool{}
	faulty, _ := bySource(errs)
	for key, one := range o.known {
		if key.kind == kind && len(faulty[key.source()]) > 0 && one.good != nil && one.goodGeneration != one.generation {
			out[key] = true
		}
	}
	return out
}

// settle stores the faults that a compile found in the objects of a kind, and stores the objects without a fault as their last
// valid form.
func (o *objects) settle(kind string, errs []error) {
	faulty, unmatched := bySource(errs)
	for key, one := range o.known {
		if key.kind != kind {
			continue
		}
		one.compileFaults, one.unmatched = faulty[key.source()], unmatched[key.source()]
		if len(one.faults) == 0 && len(one.compileFaults) == 0 {
			good := one.current
			one.good, one.goodGeneration = &good, one.generation
		}
	}
}

func bySource(errs []error) (faulty, unmatched map[string][]error) {
	faulty, unmatched = map[string][]error{}, map[string][]error{}
	for _, err := range errs {
		var e *schema.Error
		switch {
		case !errors.As(err, &e):
		case e.Unmatched:
			unmatched[e.Source] = append(unmatched[e.Source], err)
		default:
			faulty[e.Source] = append(faulty[e.Source], err)
		}
	}
	return faulty, unmatched
}

func (o *objects) states(sets *schemacheck.Sets, back retreats) []ObjectState {
	out := make([]ObjectState, 0, len(o.known))
	for _, key := range o.keys() {
		one := o.known[key]
		state := ObjectState{Kind: key.kind, Name: key.name, UID: one.uid, Generation: one.generation, Unmatched: one.unmatched, Documents: o.inForce(key, back)}
		if key.kind == v1alpha1.UncoveredPermissionSetKind {
			state.GuardedFields = sets.GuardedFields(key.source())
		}
		// If the object did not decode, the compile used an earlier form, so only the errors of decoding are about this generation.
		if state.Faults = one.faults; len(state.Faults) == 0 {
			state.Faults = one.compileFaults
		} else {
			state.Unmatched = nil
		}
		out = append(out, state)
	}
	return out
}
