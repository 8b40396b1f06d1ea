package admission

import (
	"bytes"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fieldperm/fieldperm/test/previous/internal/rawjson"
)

// decodeKnown decodes a review in the form that API servers write: every field is known, occurs once and has its type. It reports false
// for any other review, which the library must then decode or refuse. Its result is the same as the library's, in less time than the rest
// of the review takes.
func (r *DecodedReview) decodeKnown(v rawjson.Value, review *admissionv1.AdmissionReview) bool {
	e := envelope{review: r, texts: rawjson.NewTexts(usualTexts)}
	return each(v, []string{"kind", "apiVersion", "request"}, func(field int, v rawjson.Value) bool {
		switch field {
		case 0:
			return text(&e, v, &review.Kind)
		case 1:
			return text(&e, v, &review.APIVersion)
		default:
			review.Request = &r.known.request
			return e.request(v, review.Request)
		}
	})
}

// usualTexts is how many bytes the strings around the objects of most reviews have.
const usualTexts = 256

// known is the memory for a request in the form that API servers write. It is one piece, because most requests have all parts.
type known struct {
	request  admissionv1.AdmissionRequest
	kind     metav1.GroupVersionKind
	resource metav1.GroupVersionResource
	dryRun   bool
}

// envelope decodes what is around the objects of a review, and reviews without objects. Its strings share memory.
type envelope struct {
	review *DecodedReview
	texts  rawjson.Texts
	// kind and resource are the raw texts: requestKind and requestResource are usually equal to them.
	kind, resource []byte
}

// requestFields are the fields of a request in the order in which API servers write them.
var requestFields = []string{
	"uid", "kind", "resource", "subResource", "requestKind", "requestResource", "requestSubResource", "name", "namespace",
	"operation", "userInfo", "object", "oldObject", "dryRun", "options",
}

func (e *envelope) request(v rawjson.Value, req *admissionv1.AdmissionRequest) bool {
	known := &e.review.known
	return each(v, requestFields, func(field int, v rawjson.Value) bool {
		switch requestFields[field] {
		case "uid":
			return text(e, v, &req.UID)
		case "kind":
			e.kind = v.Raw()
			return e.groupVersion(v, "kind", &req.Kind.Group, &req.Kind.Version, &req.Kind.Kind)
		case "resource":
			e.resource = v.Raw()
			return e.groupVersion(v, "resource", &req.Resource.Group, &req.Resource.Version, &req.Resource.Resource)
		case "subResource":
			return text(e, v, &req.SubResource)
		case "requestKind":
			req.RequestKind = &known.kind
			if bytes.Equal(v.Raw(), e.kind) {
				known.kind = req.Kind
				return true
			}
			return e.groupVersion(v, "kind", &known.kind.Group, &known.kind.Version, &known.kind.Kind)
		case "requestResource":
			req.RequestResource = &known.resource
			if bytes.Equal(v.Raw(), e.resource) {
				known.resource = req.Resource
				return true
			}
			return e.groupVersion(v, "resource", &known.resource.Group, &known.resource.Version, &known.resource.Resource)
		case "requestSubResource":
			return text(e, v, &req.RequestSubResource)
		case "name":
			return text(e, v, &req.Name)
		case "namespace":
			return text(e, v, &req.Namespace)
		case "operation":
			return text(e, v, &req.Operation)
		case "userInfo":
			return e.userInfo(v, &req.UserInfo)
		case "object":
			e.review.object = orAbsent(v)
			return true
		case "oldObject":
			e.review.oldObject = orAbsent(v)
			return true
		case "dryRun":
			known.dryRun = string(v.Raw()) == "true"
			req.DryRun = &known.dryRun
			return v.Kind() == rawjson.Bool
		case "options":
			req.Options.Raw = v.Raw()
			return v.IsObject()
		}
		return false
	})
}

func (e *envelope) groupVersion(v rawjson.Value, last string, group, version, name *string) bool {
	return each(v, []string{"group", "version", last}, func(field int, v rawjson.Value) bool {
		return text(e, v, [...]*string{group, version, name}[field])
	})
}

func (e *envelope) userInfo(v rawjson.Value, user *authenticationv1.UserInfo) bool {
	return each(v, []string{"username", "uid", "groups", "extra"}, func(field int, v rawjson.Value) bool {
		switch field {
		case 0:
			return text(e, v, &user.Username)
		case 1:
			return text(e, v, &user.UID)
		case 2:
			return e.list(v, &user.Groups)
		default:
			return extra(e, v, &user.Extra)
		}
	})
}

func extra[V ~[]string](e *envelope, v rawjson.Value, into *map[string]V) bool {
	if !v.IsObject() || v.Ambiguous() {
		return false
	}
	out := map[string]V{}
	for m := v.Members(); m.Next(); {
		var values []string
		if !e.list(m.Value(), &values) {
			return false
		}
		out[e.texts.Of(m.Name().Bytes())] = values
	}
	*into = out
	return true
}

// each calls take for every member of an object, with the index of its name in fields. It reports false if a name is not in fields,
// occurs twice, or take reports false.
func each(v rawjson.Value, fields []string, take func(field int, v rawjson.Value) bool) bool {
	seen, field := 0, -1
	for m := v.Members(); m.Next(); {
		field = index(fields, field+1, m.Name())
		if field < 0 || seen&(1<<field) != 0 || !take(field, m.Value()) {
			return false
		}
		seen |= 1 << field
	}
	return v.IsObject()
}

// index returns the index of a name in fields, -1 if it is not there. It starts the search at likely.
func index(fields []string, likely int, name rawjson.Name) int {
	for n := range fields {
		if i := (likely + n) % len(fields); name.Is(fields[i]) {
			return i
		}
	}
	return -1
}

func text[T ~string](e *envelope, v rawjson.Value, into *T) bool {
	*into = T(e.texts.Of(v.Bytes()))
	return v.Kind() == rawjson.String
}

func (e *envelope) list(v rawjson.Value, into *[]string) bool {
	*into = []string{}
	for i := v.Items(); i.Next(); {
		var item string
		if !text(e, i.Value(), &item) {
			return false
		}
		*into = append(*into, item)
	}
	return v.IsList()
}
