package admission

import (
	"net/http"
	"strconv"
	"unicode/utf8"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	kjson "sigs.k8s.io/json"
)

// ReadRequest reads a POST of one AdmissionReview v1, in JSON of at most limit bytes, and returns its request. On an error, Code returns
// the HTTP code. It writes nothing to w.
func ReadRequest(w http.ResponseWriter, r *http.Request, limit int64) (*admissionv1.AdmissionRequest, error) {
	body, err := read(w, r, limit)
	if err != nil {
		return nil, err
	}
	reading, err := Read(body.bytes) // The request refers to the body, which is therefore not released.
	if err != nil {
		return nil, err
	}
	defer reading.Release()
	return reading.Request, nil
}

// Refuse answers a request that held no review with the error of ReadRequest.
func Refuse(w http.ResponseWriter, err error) {
	code := int(Code(err))
	if code == http.StatusMethodNotAllowed {
		w.Header().Set("Allow", http.MethodPost)
	}
	if code == http.StatusTooManyRequests {
		// An API server sends the request again after that time, within its own timeout.
		w.Header().Set("Retry-After", strconv.Itoa(RetryAfterSeconds))
	}
	http.Error(w, err.Error(), code)
}

// readReview returns a review that owns its body: Release releases both.
func readReview(w http.ResponseWriter, r *http.Request, limit int64) (*DecodedReview, error) {
	body, err := read(w, r, limit)
	if err != nil {
		return nil, err
	}
	out, err := Read(body.bytes)
	if err != nil {
		body.release()
		return nil, err
	}
	out.body = body
	return out, nil
}

// decodeDocument reads a body that is one document of the given version and kind.
func decodeDocument(body []byte, into any, meta *metav1.TypeMeta, apiVersion, kind string) error {
	if !utf8.Valid(body) {
		// The decoder would replace invalid bytes, and two different names could then look the same.
		return badRequest("body is not UTF-8: send JSON in UTF-8")
	}
	return decode(body, into, meta, apiVersion, kind)
}

// decode reads exactly one document of the given version and kind. Field names are case-sensitive and may occur only once, so that every
// reader understands a document in the same way. Unknown fields are ignored, because newer API servers may send more.
func decode(body []byte, into any, meta *metav1.TypeMeta, apiVersion, kind string) error {
	duplicates, err := kjson.UnmarshalStrict(body, into, kjson.DisallowDuplicateFields)
	if err == nil {
		err = utilerrors.NewAggregate(duplicates)
	}
	if err != nil {
		return badRequest("body is no %s: %w: send one JSON document of apiVersion %q, kind %q", kind, err, apiVersion, kind)
	}
	return isOf(meta, apiVersion, kind)
}

func isOf(meta *metav1.TypeMeta, apiVersion, kind string) error {
	if meta.APIVersion != apiVersion || meta.Kind != kind {
		return badRequest("body is of apiVersion %q, kind %q: send apiVersion %q, kind %q", meta.APIVersion, meta.Kind, apiVersion, kind)
	}
	return nil
}
