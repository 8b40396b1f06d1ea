package admission

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/endpoint"
)

// variablesOf returns a function that decodes the parts of a request that match conditions read. It decodes them once, on the first call.
// The fields have the names of the API, and the object is as readers get it. It returns an error for an object that cannot be decoded, and
// for one of the kind that readers get without some of its fields.
func variablesOf(kind *schema.Kind, req *admissionv1.AdmissionRequest) func() (schema.Variables, error) {
	return sync.OnceValues(func() (schema.Variables, error) {
		out, err := decodeVariables(req)
		if err != nil {
			return schema.Variables{}, fmt.Errorf("match conditions: %w", err)
		}
		if !kind.Read(out.Object) {
			return schema.Variables{}, errors.New("match conditions: the API server drops fields of the object that its version does not have: leave them out")
		}
		if schema.IsScale(runtimeschema.GroupKind{Group: req.Kind.Group, Kind: req.Kind.Kind}) {
			showZero(out.Object)
			if endpoint.BuiltIn(req.Resource.Group, req.Resource.Resource) {
				showZero(out.OldObject)
			}
		}
		return out, nil
	})
}

func decodeVariables(req *admissionv1.AdmissionRequest) (out schema.Variables, err error) {
	if out.Object, err = decodeObject(req.Object.Raw); err != nil {
		return out, err
	}
	if out.OldObject, err = decodeObject(req.OldObject.Raw); err != nil {
		return out, err
	}
	around := *req
	around.Object, around.OldObject = runtime.RawExtension{}, runtime.RawExtension{}
	raw, err := json.Marshal(&around)
	if err != nil {
		return out, err
	}
	if err := utiljson.Unmarshal(raw, &out.Request); err != nil {
		return out, err
	}
	delete(out.Request, "object")
	delete(out.Request, "oldObject")
	return out, nil
}

func decodeObject(raw []byte) (any, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	var object any
	err := utiljson.Unmarshal(raw, &object)
	return object, err
}

// showZero adds replicas: 0 to a Scale without replicas, because API servers leave out a 0.
func showZero(scale any) {
	fields, ok := scale.(map[string]any)
	if !ok {
		return
	}
	spec, ok := fields["spec"].(map[string]any)
	if !ok {
		spec = map[string]any{}
		fields["spec"] = spec
	}
	if spec["replicas"] == nil {
		spec["replicas"] = int64(0)
	}
}
