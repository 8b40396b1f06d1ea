package review

import (
	"encoding/json"

	admissionv1 "k8s.io/api/admission/v1"
	kjson "sigs.k8s.io/json"
)

// notes returns a note if an update has no managedFields, so that changes of owners cannot be seen (D8): kubectl omits
// managedFields by default. A new object has no owners to lose, and a Scale never has any.
func notes(request *admissionv1.AdmissionRequest) []string {
	if request.Operation != admissionv1.Update || request.Kind.Kind == "Scale" {
		return nil
	}
	const cure = "get both objects with kubectl get --show-managed-fields"
	before, after := owned(request.OldObject.Raw), owned(request.Object.Raw)
	switch {
	case !before && !after:
		return []string{"ownership was not judged: the objects have no metadata.managedFields: " + cure}
	case !before:
		return []string{"ownership was not judged as it is: the old object has no metadata.managedFields: " + cure}
	case !after:
		return []string{"ownership was not judged as it is: the new object has no metadata.managedFields, as if every owner were removed: " + cure}
	}
	return nil
}

// owned reports whether an object has the field managedFields, even if it is empty.
func owned(raw []byte) bool {
	var object struct {
		Metadata struct {
			ManagedFields json.RawMessage `json:"managedFields"`
		} `json:"metadata"`
	}
	err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &object)
	return err == nil && len(object.Metadata.ManagedFields) > 0 && string(object.Metadata.ManagedFields) != "null"
}
