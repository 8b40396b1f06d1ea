package admission

import (
	"net/http"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/fieldperm/fieldperm/test/previous/internal/rawjson"
)

const (
	authorizationVersion = "authorization.k8s.io/v1"
	accessKind           = "SubjectAccessReview"
)

// readAccess reads a POST of one SubjectAccessReview v1, in JSON of at most limit bytes, and returns its spec.
func readAccess(w http.ResponseWriter, r *http.Request, limit int64) (*authorizationv1.SubjectAccessReviewSpec, error) {
	body, err := read(w, r, limit)
	if err != nil {
		return nil, err
	}
	defer body.release() // Both decoders copy every string.
	if spec := knownAccess(body.bytes); spec != nil {
		return spec, nil
	}
	var review authorizationv1.SubjectAccessReview
	if err := decodeDocument(body.bytes, &review, &review.TypeMeta, authorizationVersion, accessKind); err != nil {
		return nil, err
	}
	return &review.Spec, nil
}

// access is the memory of a review that knownAccess reads.
type access struct {
	spec       authorizationv1.SubjectAccessReviewSpec
	attributes authorizationv1.ResourceAttributes
}

// knownAccess decodes a review in the form in which API servers ask about objects: every field is known, occurs once and has its type. It returns
// nil for any other, which the library must then decode or refuse. Its result is the same as the library's, in a fraction of the time.
func knownAccess(text []byte) *authorizationv1.SubjectAccessReviewSpec {
	doc, err := rawjson.Scan(text)
	if err != nil {
		return nil
	}
	defer doc.Release()
	e, out := envelope{texts: rawjson.NewTexts(usualTexts)}, &access{}
	seen := 0
	if !each(doc.Root(), []string{"kind", "apiVersion", "metadata", "spec", "status"}, func(field int, v rawjson.Value) bool {
		seen |= 1 << field
		switch field {
		case 0:
			return v.Is(accessKind)
		case 1:
			return v.Is(authorizationVersion)
		case 2:
			return v.IsObject() && v.IsEmpty()
		case 3:
			return e.access(v, out)
		default:
			// An API server writes the zero status.
			return each(v, []string{"allowed"}, func(_ int, v rawjson.Value) bool { return v.Kind() == rawjson.Bool })
		}
	}) || seen&0b11 != 0b11 {
		return nil
	}
	return &out.spec
}

func (e *envelope) access(v rawjson.Value, out *access) bool {
	return each(v, []string{"resourceAttributes", "user", "groups", "extra", "uid"}, func(field int, v rawjson.Value) bool {
		switch field {
		case 0:
			out.spec.ResourceAttributes = &out.attributes
			return e.attributes(v, &out.attributes)
		case 1:
			return text(e, v, &out.spec.User)
		case 2:
			return e.list(v, &out.spec.Groups)
		case 3:
			return extra(e, v, &out.spec.Extra)
		default:
			return text(e, v, &out.spec.UID)
		}
	})
}

func (e *envelope) attributes(v rawjson.Value, out *authorizationv1.ResourceAttributes) bool {
	return each(v, []string{"namespace", "verb", "group", "version", "resource", "subresource", "name"}, func(field int, v rawjson.Value) bool {
		return text(e, v, [...]*string{&out.Namespace, &out.Verb, &out.Group, &out.Version, &out.Resource, &out.Subresource, &out.Name}[field])
	})
}
