package admission

import (
	"bytes"
	"errors"
	"mime"
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
	reading, err := readReview(w, r, limit)
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

func readReview(w http.ResponseWriter, r *http.Request, limit int64) (*DecodedReview, error) {
	body, err := read(w, r, limit)
	if err != nil {
		return nil, err
	}
	return Read(body)
}

// readDocument reads a body that is one document of the given version and kind.
func readDocument(w http.ResponseWriter, r *http.Request, limit int64, into any, meta *metav1.TypeMeta, apiVersion, kind string) error {
	body, err := read(w, r, limit)
	if err != nil {
		return err
	}
	if !utf8.Valid(body) {
		// The decoder would replace invalid bytes, and two different names could then look the same.
		return badRequest("body is not UTF-8: send JSON in UTF-8")
	}
	return decode(body, into, meta, apiVersion, kind)
}

// mostAnnounced is the maximum number of bytes that are allocated from the announced Content-Length, before the bytes arrive.
const mostAnnounced = 1 << 20

// read returns the body of a POST of JSON of at most limit bytes.
func read(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if r.Method != http.MethodPost {
		return nil, refused(http.StatusMethodNotAllowed, "method %q is not allowed: use POST", r.Method)
	}
	contentType := r.Header.Get("Content-Type")
	if media, _, err := mime.ParseMediaType(contentType); err != nil || media != "application/json" {
		return nil, refused(http.StatusUnsupportedMediaType, "content type %q is not supported: use application/json", contentType)
	}
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return nil, refused(http.StatusUnsupportedMediaType, "content encoding %q is not supported: send the body as it is", encoding)
	}
	tooLarge := refused(http.StatusRequestEntityTooLarge, "body has more than %d bytes: review smaller objects; fieldperm-webhook takes larger admission reviews with a larger --max-request-bytes", limit)
	if r.ContentLength > limit {
		return nil, tooLarge
	}
	// Allocate the announced length, but not more than mostAnnounced: a client can announce more than it sends.
	body := bytes.NewBuffer(make([]byte, 0, min(max(r.ContentLength, 0), mostAnnounced)+bytes.MinRead))
	_, err := body.ReadFrom(http.MaxBytesReader(w, r.Body, limit))
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		return nil, tooLarge
	case err != nil:
		return nil, badRequest("body cannot be read: %w: send it again", err)
	case body.Len() == 0:
		return nil, badRequest("body is empty: send one JSON document")
	}
	return body.Bytes(), nil
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
