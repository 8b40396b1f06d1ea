package admission

import (
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fieldperm/fieldperm/internal/rawjson"
)

// plainReview reads a review as API servers write it: every field known, once, and of its type. It reports
// false for any other, which the library is to read or to refuse; what it does read, it reads as the
// library does, in less time than the rest of the review takes.
func plainReview(v rawjson.Value, review *admissionv1.AdmissionReview) bool {
	return each(v, []string{"kind", "apiVersion", "request"}, func(field int, v rawjson.Value) bool {
		switch field {
		case 0:
			return text(v, &review.Kind)
		case 1:
			return text(v, &review.APIVersion)
		default:
			review.Request = &admissionv1.AdmissionRequest{}
			return plainRequest(v, review.Request)
		}
	})
}

var requestFields = []string{
	"uid", "kind", "resource", "subResource", "requestKind", "requestResource", "requestSubResource", "name", "namespace",
	"operation", "userInfo", "object", "oldObject", "dryRun", "options",
}

func plainRequest(v rawjson.Value, req *admissionv1.AdmissionRequest) bool {
	return each(v, requestFields, func(field int, v rawjson.Value) bool {
		switch requestFields[field] {
		case "uid":
			return text(v, &req.UID)
		case "kind":
			return groupVersion(v, "kind", &req.Kind.Group, &req.Kind.Version, &req.Kind.Kind)
		case "resource":
			return groupVersion(v, "resource", &req.Resource.Group, &req.Resource.Version, &req.Resource.Resource)
		case "subResource":
			return text(v, &req.SubResource)
		case "requestKind":
			req.RequestKind = &metav1.GroupVersionKind{}
			return groupVersion(v, "kind", &req.RequestKind.Group, &req.RequestKind.Version, &req.RequestKind.Kind)
		case "requestResource":
			req.RequestResource = &metav1.GroupVersionResource{}
			return groupVersion(v, "resource", &req.RequestResource.Group, &req.RequestResource.Version, &req.RequestResource.Resource)
		case "requestSubResource":
			return text(v, &req.RequestSubResource)
		case "name":
			return text(v, &req.Name)
		case "namespace":
			return text(v, &req.Namespace)
		case "operation":
			return text(v, &req.Operation)
		case "userInfo":
			return userInfo(v, &req.UserInfo)
		case "object", "oldObject":
			return true // Reading has found them.
		case "dryRun":
			dry := string(v.Raw()) == "true"
			req.DryRun = &dry
			return v.Kind() == rawjson.Bool
		case "options":
			req.Options.Raw = slices.Clone(v.Raw())
			return v.IsObject()
		}
		return false
	})
}

func groupVersion(v rawjson.Value, last string, group, version, name *string) bool {
	return each(v, []string{"group", "version", last}, func(field int, v rawjson.Value) bool {
		return text(v, [...]*string{group, version, name}[field])
	})
}

func userInfo(v rawjson.Value, user *authenticationv1.UserInfo) bool {
	return each(v, []string{"username", "uid", "groups", "extra"}, func(field int, v rawjson.Value) bool {
		switch field {
		case 0:
			return text(v, &user.Username)
		case 1:
			return text(v, &user.UID)
		case 2:
			return list(v, &user.Groups)
		}
		if !v.IsObject() || v.Ambiguous() {
			return false
		}
		user.Extra = map[string]authenticationv1.ExtraValue{}
		for m := v.Members(); m.Next(); {
			var values []string
			if !list(m.Value(), &values) {
				return false
			}
			user.Extra[m.Name().String()] = values
		}
		return true
	})
}

// each hands every member of an object over with its place among the fields, and reports false if one is
// not among them, comes twice, or is not taken.
func each(v rawjson.Value, fields []string, take func(field int, v rawjson.Value) bool) bool {
	seen := 0
	for m := v.Members(); m.Next(); {
		field := index(fields, m.Name())
		if field < 0 || seen&(1<<field) != 0 || !take(field, m.Value()) {
			return false
		}
		seen |= 1 << field
	}
	return v.IsObject()
}

func index(fields []string, name rawjson.Name) int {
	for i, field := range fields {
		if name.Is(field) {
			return i
		}
	}
	return -1
}

func text[T ~string](v rawjson.Value, into *T) bool {
	*into = T(v.Text())
	return v.Kind() == rawjson.String
}

func list(v rawjson.Value, into *[]string) bool {
	*into = []string{}
	for i := v.Items(); i.Next(); {
		var item string
		if !text(i.Value(), &item) {
			return false
		}
		*into = append(*into, item)
	}
	return v.IsList()
}
