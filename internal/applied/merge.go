package applied

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
)

// Merger computes stored objects of one kind in one version.
type Merger struct {
	// Types are the types of the version, from its OpenAPI document. nil: types are deduced from the objects, as for a kind without a schema, so that
	// lists are compared as a whole.
	Types managedfields.TypeConverter
	Kind  runtimeschema.GroupVersionKind
	// Status means that the kind has the subresource status, so that a write of the object leaves .status as it is.
	Status bool
}

// Result is an object with its owners. Notes say what the result does not have.
type Result struct {
	Object *unstructured.Unstructured
	Notes  []string
}

// Update returns what is stored for a request with the object wanted by an update or a patch. live is nil if the object does not exist.
func (m *Merger) Update(live, wanted *unstructured.Unstructured, manager string) (*Result, error) {
	return m.merge(live, wanted, func(f *managedfields.FieldManager, live, wanted *unstructured.Unstructured) (runtime.Object, error) {
		if m.Status {
			keepStatus(live, wanted)
		}
		return f.Update(live, wanted, manager)
	})
}

// Apply returns what is stored for a server-side apply of a configuration. The error is a conflict (apierrors.IsConflict) if another manager owns a
// field of it, unless force is true.
func (m *Merger) Apply(live, configuration *unstructured.Unstructured, manager string, force bool) (*Result, error) {
	configuration = configuration.DeepCopy()
	if m.Status {
		unstructured.RemoveNestedField(configuration.Object, "status")
	}
	return m.merge(live, configuration, func(f *managedfields.FieldManager, live, configuration *unstructured.Unstructured) (runtime.Object, error) {
		return f.Apply(live, configuration, manager, force)
	})
}

func (m *Merger) merge(live, wanted *unstructured.Unstructured, merge func(f *managedfields.FieldManager, live, wanted *unstructured.Unstructured) (runtime.Object, error)) (*Result, error) {
	types := m.Types
	out := &Result{}
	if types == nil {
		types = managedfields.NewDeducedTypeConverter()
		out.Notes = append(out.Notes, "the API server publishes no types of the kind, so that each list counts as one field")
	}
	f, err := managedfields.NewDefaultFieldManager(types, one{m.Kind}, one{m.Kind}, one{m.Kind}, m.Kind, m.Kind.GroupVersion(), "", nil)
	if err != nil {
		return nil, fmt.Errorf("field managers of %s: %w: correct the schema of the kind", m.Kind, err)
	}
	before := &unstructured.Unstructured{Object: map[string]any{}}
	before.SetGroupVersionKind(m.Kind)
	if live != nil {
		before = live.DeepCopy()
	}
	others := m.setApart(before)
	wanted = wanted.DeepCopy()
	m.setApart(wanted)
	stored, err := merge(f, before, wanted)
	if err != nil {
		return nil, err
	}
	object, ok := stored.(*unstructured.Unstructured)
	if !ok {
		// A field manager returns nil if an apply changes nothing.
		object = before
	}
	if len(others) > 0 {
		object.SetManagedFields(append(object.GetManagedFields(), others...))
		out.Notes = append(out.Notes, "field managers that wrote other versions of the object are taken as they are")
	}
	if m.Status {
		keepStatus(before, object)
	}
	out.Object = object
	return out, nil
}

// setApart takes the owners of fields of other versions out of an object: only an API server can convert these fields.
func (m *Merger) setApart(object *unstructured.Unstructured) (others []metav1.ManagedFieldsEntry) {
	var own []metav1.ManagedFieldsEntry
	for _, entry := range object.GetManagedFields() {
		if entry.APIVersion == m.Kind.GroupVersion().String() {
			own = append(own, entry)
		} else {
			others = append(others, entry)
		}
	}
	if len(others) > 0 {
		object.SetManagedFields(own)
	}
	return others
}

// keepStatus copies the status of an object to another.
func keepStatus(from, to *unstructured.Unstructured) {
	if status, ok := from.Object["status"]; ok {
		to.Object["status"] = runtime.DeepCopyJSONValue(status)
	} else {
		delete(to.Object, "status")
	}
}

// one converts, defaults and makes objects of one kind in one version.
type one struct {
	kind runtimeschema.GroupVersionKind
}

// Convert is not used by field managers.
func (o one) Convert(_, _, _ any) error { return fmt.Errorf("%s: is converted by no client", o.kind) }

// ConvertToVersion returns an object of the version unchanged.
func (o one) ConvertToVersion(in runtime.Object, to runtime.GroupVersioner) (runtime.Object, error) {
	if gvk, ok := to.KindForGroupVersionKinds([]runtimeschema.GroupVersionKind{o.kind}); !ok || gvk != o.kind {
		return nil, runtime.NewNotRegisteredErrForTarget("fieldperm", nil, to)
	}
	return in, nil
}

// ConvertFieldLabel is not used by field managers.
func (o one) ConvertFieldLabel(_ runtimeschema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

// Default sets no defaults: only the API server knows them.
func (o one) Default(runtime.Object) {}

// New returns an empty object.
func (o one) New(kind runtimeschema.GroupVersionKind) (runtime.Object, error) {
	out := &unstructured.Unstructured{Object: map[string]any{}}
	out.SetGroupVersionKind(kind)
	return out, nil
}
