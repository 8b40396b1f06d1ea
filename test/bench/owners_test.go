package bench

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// owner is a manager and its paths in an object.
type owner struct {
	metav1.ManagedFieldsEntry
	owns func(path string) bool
}

// updates is a manager that writes with PUT or PATCH.
func updates(name, subresource string, owns func(string) bool) owner {
	return owner{metav1.ManagedFieldsEntry{Manager: name, Operation: metav1.ManagedFieldsOperationUpdate, Subresource: subresource}, owns}
}

// below is every path at or below one of those given.
func below(prefixes ...string) func(string) bool {
	return func(path string) bool {
		for _, prefix := range prefixes {
			if strings.HasPrefix(path, prefix) {
				return true
			}
		}
		return false
	}
}

// but is the set of paths that one manager owns and the other one does not.
func but(owns, not func(string) bool) func(string) bool {
	return func(path string) bool { return owns(path) && !not(path) }
}

// managed returns managedFields as an API server writes them for an object with these owners.
func managed(tb testing.TB, kind runtimeschema.GroupVersionKind, object []byte, owners ...owner) []metav1.ManagedFieldsEntry {
	tb.Helper()
	v, err := value.FromJSON(object)
	if err != nil {
		tb.Fatal(err)
	}
	known, err := typeOf(tb, kind).FromUnstructured(v.Unstructured())
	if err != nil {
		tb.Fatal(err)
	}
	all, err := known.ToFieldSet()
	if err != nil {
		tb.Fatal(err)
	}
	sets := make([]*fieldpath.Set, len(owners))
	all.Iterate(func(p fieldpath.Path) {
		path := p.String()
		for i := range owners {
			if sets[i] == nil {
				sets[i] = fieldpath.NewSet()
			}
			if owned(path) && owners[i].owns(path) {
				sets[i].Insert(p.Copy())
			}
		}
	})
	var out []metav1.ManagedFieldsEntry
	for i := range owners {
		raw, err := sets[i].ToJSON()
		if err != nil {
			tb.Fatal(err)
		}
		entry := owners[i].ManagedFieldsEntry
		entry.APIVersion, entry.FieldsType, entry.Time = kind.GroupVersion().String(), "FieldsV1", new(madeAt())
		entry.FieldsV1 = metav1.NewFieldsV1(string(raw))
		out = append(out, entry)
	}
	return out
}

// owned reports whether a path can have an owner: an API server gives no owner to the fields that it writes itself.
func owned(path string) bool {
	return !strings.HasPrefix(path, ".metadata") && path != ".apiVersion" && path != ".kind" ||
		strings.HasPrefix(path, ".metadata.labels") || strings.HasPrefix(path, ".metadata.annotations")
}
