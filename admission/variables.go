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

// objects are the decoded objects of a request, nil for an absent one.
type objects struct{ object, old any }

// objectReader decodes the objects of a request once, on the first call, as readers get them. It is safe for concurrent use.
type objectReader struct {
	kind *schema.Kind
	req  *admissionv1.AdmissionRequest
	once sync.Once
	// decoded is nil until the first call, because most reviews read no objects this way.
	decoded    *decodedObjects
	fieldsOnce sync.Once
	// around is nil until the first call of fields, for the same reason.
	around *decodedFields
}

// objectsOf returns the reader of the objects of a request. kind is nil for a deletion, whose object is stored.
func objectsOf(kind *schema.Kind, req *admissionv1.AdmissionRequest) *objectReader {
	return &objectReader{kind: kind, req: req}
}

// read returns an error for an object that cannot be decoded, and for one of the kind that readers get without some of its fields.
func (o *objectReader) read() (objects, error) {
	o.once.Do(func() {
		out, err := readObjects(o.kind, o.req)
		o.decoded = &decodedObjects{out, err}
	})
	return o.decoded.objects, o.decoded.err
}

// decodedObjects is the result of read.
type decodedObjects struct {
	objects
	err error
}

// fields decodes the request without its objects, for match conditions, once, on the first call. The fields have the names of the API.
func (o *objectReader) fields() (map[string]any, error) {
	o.fieldsOnce.Do(func() {
		fields, err := decodeRequest(o.req)
		if err != nil {
			err = fmt.Errorf("match conditions: %w", err)
		}
		o.around = &decodedFields{fields, err}
	})
	return o.around.fields, o.around.err
}

// decodedFields is the result of fields.
type decodedFields struct {
	fields map[string]any
	err    error
}

func readObjects(kind *schema.Kind, req *admissionv1.AdmissionRequest) (out objects, err error) {
	if out.object, err = decodeObject(req.Object.Raw); err != nil {
		return objects{}, err
	}
	if out.old, err = decodeObject(req.OldObject.Raw); err != nil {
		return objects{}, err
	}
	if kind != nil && !kind.Read(out.object) {
		return objects{}, errors.New("the API server drops fields of the object that its version does not have: leave them out")
	}
	if schema.IsScale(runtimeschema.GroupKind{Group: req.Kind.Group, Kind: req.Kind.Kind}) {
		showZero(out.object)
		if endpoint.BuiltIn(req.Resource.Group, req.Resource.Resource) {
			showZero(out.old)
		}
	}
	return out, nil
}

func decodeRequest(req *admissionv1.AdmissionRequest) (out map[string]any, err error) {
	around := *req
	around.Object, around.OldObject = runtime.RawExtension{}, runtime.RawExtension{}
	raw, err := json.Marshal(&around)
	if err != nil {
		return nil, err
	}
	if err := utiljson.Unmarshal(raw, &out); err != nil {
		return nil, err
	}
	delete(out, "object")
	delete(out, "oldObject")
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
