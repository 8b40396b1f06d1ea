package admission

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	kjson "sigs.k8s.io/json"
)

// refusal is an answer to a request that holds no review at all.
type refusal struct {
	code    int
	message string
}

func (r *refusal) write(w http.ResponseWriter) {
	if r.code == http.StatusMethodNotAllowed {
		w.Header().Set("Allow", http.MethodPost)
	}
	http.Error(w, r.message, r.code)
}

// read returns the body of a POST of JSON of at most limit bytes.
func read(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, *refusal) {
	if r.Method != http.MethodPost {
		return nil, &refusal{http.StatusMethodNotAllowed, fmt.Sprintf("method %q is not allowed: use POST", r.Method)}
	}
	contentType := r.Header.Get("Content-Type")
	if media, _, err := mime.ParseMediaType(contentType); err != nil || media != "application/json" {
		return nil, &refusal{http.StatusUnsupportedMediaType, fmt.Sprintf("content type %q is not supported: use application/json", contentType)}
	}
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return nil, &refusal{http.StatusUnsupportedMediaType, fmt.Sprintf("content encoding %q is not supported: send the body as it is", encoding)}
	}
	tooLarge := &refusal{http.StatusRequestEntityTooLarge, fmt.Sprintf("body has more than %d bytes: raise --max-request-bytes, or review smaller objects", limit)}
	if r.ContentLength > limit {
		return nil, tooLarge
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		return nil, tooLarge
	case err != nil:
		return nil, &refusal{http.StatusBadRequest, fmt.Sprintf("body cannot be read: %v: send it again", err)}
	case len(body) == 0:
		return nil, &refusal{http.StatusBadRequest, "body is empty: send one JSON document"}
	case !utf8.Valid(body):
		// A decoder would replace the bytes, and then two names that differ could look the same.
		return nil, &refusal{http.StatusBadRequest, "body is not UTF-8: send JSON in UTF-8"}
	}
	return body, nil
}

// decode reads exactly one document of the given version and kind. Names of fields are case-sensitive
// and may occur once only, so that a document means the same to whoever reads it. Fields that are not
// known are passed over, because newer API servers may send more.
func decode(body []byte, into any, meta *metav1.TypeMeta, apiVersion, kind string) *refusal {
	duplicates, err := kjson.UnmarshalStrict(body, into, kjson.DisallowDuplicateFields)
	if err == nil {
		err = utilerrors.NewAggregate(duplicates)
	}
	switch {
	case err != nil:
		return &refusal{http.StatusBadRequest, fmt.Sprintf("body is no %s: %v: send one JSON document of apiVersion %q, kind %q", kind, err, apiVersion, kind)}
	case meta.APIVersion != apiVersion || meta.Kind != kind:
		return &refusal{http.StatusBadRequest, fmt.Sprintf("body is of apiVersion %q, kind %q: send apiVersion %q, kind %q", meta.APIVersion, meta.Kind, apiVersion, kind)}
	}
	return nil
}
