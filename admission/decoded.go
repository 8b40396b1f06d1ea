package admission

import (
	"context"

	"github.com/go-json-experiment/json"
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/internal/rawjson"
	"github.com/fieldperm/fieldperm/schema"
)

// DecodedReview is an AdmissionReview that is read in place. One pass over its bytes finds the two objects, which are neither copied nor
// decoded. The rest, which is small, is decoded.
type DecodedReview struct {
	// Request refers to the bytes of the body in its Object and OldObject.
	Request *admissionv1.AdmissionRequest

	// body is the memory of the bytes, nil if it belongs to the caller of Read.
	body              *body
	doc               *rawjson.Document
	object, oldObject rawjson.Value
	// known is the memory of a Request that decodeKnown decoded.
	known known
}

// Read reads one AdmissionReview v1. Field names are case-sensitive and may occur only once, so that every reader understands a document
// in the same way. Unknown fields are ignored, because newer API servers may send more. The caller must not change the body while the
// DecodedReview is in use.
func Read(body []byte) (*DecodedReview, error) {
	doc, err := rawjson.Scan(body)
	if err != nil {
		return nil, noReview(err)
	}
	r := &DecodedReview{doc: doc}
	if err := r.decode(body); err != nil {
		r.Release()
		return nil, err
	}
	return r, nil
}

// FromRequest returns the review of a request that did not come as a body. Its objects are scanned when they are compared.
func FromRequest(req *admissionv1.AdmissionRequest) *DecodedReview {
	return &DecodedReview{Request: req}
}

// Release frees the memory of the DecodedReview for reuse. The Request stays valid, unless the DecodedReview owns its body: then its Object,
// OldObject and Options are overwritten, and so is everything else that refers to the bytes of the body, such as requirements. No string does.
func (r *DecodedReview) Release() {
	if r.doc != nil {
		r.doc.Release()
	}
	if r.body != nil {
		r.body.release()
	}
	r.body, r.doc, r.object, r.oldObject = nil, nil, rawjson.Value{}, rawjson.Value{}
}

func noReview(err error) error {
	return badRequest("body is no AdmissionReview: %w: send one JSON document of apiVersion %q, kind %q", err, admissionVersion, "AdmissionReview")
}

// decode decodes everything except the objects.
func (r *DecodedReview) decode(body []byte) error {
	root := r.doc.Root()
	var review admissionv1.AdmissionReview
	if !r.decodeKnown(root, &review) {
		review = admissionv1.AdmissionReview{}
		request := root.Get("request")
		r.object, r.oldObject = orAbsent(request.Get("object")), orAbsent(request.Get("oldObject"))
		if err := json.Unmarshal(r.withoutObjects(body), &review); err != nil {
			return noReview(err)
		}
	}
	if err := isOf(&review.TypeMeta, admissionVersion, "AdmissionReview"); err != nil {
		return err
	}
	if review.Request == nil {
		return badRequest("AdmissionReview has no request: send one with .request")
	}
	r.Request = review.Request
	r.Request.Object.Raw, r.Request.OldObject.Raw = r.object.Raw(), r.oldObject.Raw()
	return nil
}

// orAbsent returns an absent value for null, because API servers write null for a missing object.
func orAbsent(v rawjson.Value) rawjson.Value {
	if v.Kind() == rawjson.Null {
		return rawjson.Value{}
	}
	return v
}

// withoutObjects returns the body with null in place of both objects, because the library would copy them.
func (r *DecodedReview) withoutObjects(body []byte) []byte {
	var out []byte
	from := 0
	for m := r.doc.Root().Get("request").Members(); m.Next(); {
		if v := m.Value(); v == r.object || v == r.oldObject {
			begin, end := v.Extent()
			out = append(append(out, body[from:begin]...), "null"...)
			from = end
		}
	}
	return append(out, body[from:]...)
}

// diff returns the requirements of the request. It scans the objects if they are not scanned yet.
func (r *DecodedReview) diff(ctx context.Context, kind *schema.Kind, uncovered schema.VerbSet) ([]fieldperm.Requirement, error) {
	if r.doc == nil {
		return fieldperm.Diff(ctx, r.stored(), r.Request.Object.Raw, kind, uncovered)
	}
	old := r.oldObject
	if r.Request.Operation == admissionv1.Create {
		old = rawjson.Value{}
	}
	return fieldperm.DiffValues(ctx, old, r.object, kind, uncovered)
}

// parts is diff for conditions on changes.
func (r *DecodedReview) parts(ctx context.Context, kind *schema.Kind, uncovered schema.VerbSet) ([]fieldperm.Requirement, error) {
	return fieldperm.DiffParts(ctx, r.stored(), r.Request.Object.Raw, kind, uncovered)
}

// stored returns the stored object, nil for a creation.
func (r *DecodedReview) stored() []byte {
	if r.Request.Operation == admissionv1.Create {
		return nil
	}
	return r.Request.OldObject.Raw
}
