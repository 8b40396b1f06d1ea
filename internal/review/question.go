package review

import (
	"bytes"
	"io"
	"net/http"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/internal/shorten"
)

// readQuestion reads a body that /admit accepts, but refuses unknown fields, which /admit ignores: with a misspelt "userinfo", a question
// about another user would become a question about the caller.
func readQuestion(w http.ResponseWriter, r *http.Request, limit int64) (*admissionv1.AdmissionRequest, error) {
	var body bytes.Buffer
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.TeeReader(r.Body, &body), r.Body}
	question, err := admission.ReadRequest(w, r, limit)
	if err != nil {
		return nil, err
	}
	var review admissionv1.AdmissionReview
	unknown, err := kjson.UnmarshalStrict(body.Bytes(), &review, kjson.DisallowUnknownFields)
	if err == nil && len(unknown) > 0 {
		err = unknown[0]
	}
	if err != nil {
		return nil, refusef(http.StatusBadRequest, "AdmissionReview: %s: correct the name, in which upper and lower case count, or leave it out", clipped(err.Error()))
	}
	return question, nil
}

// maxText is how many bytes of the caller's input an error shows.
const maxText = 256

func clipped(text string) string { return shorten.Text(text, maxText) }

// header is the type and the name in an object.
type header struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	} `json:"metadata"`
}

// complete checks the fields that an API server would have set. It copies name and namespace from the object if the question has
// none. The reviewer checks the rest.
func complete(question *admissionv1.AdmissionRequest) error {
	resource, kind := question.Resource, question.Kind
	switch {
	case question.Operation == admissionv1.Connect:
		return refusef(http.StatusBadRequest, "admission request: operation %q changes no object: send CREATE, UPDATE or DELETE", question.Operation)
	case resource.Resource == "" || resource.Version == "":
		return refusef(http.StatusBadRequest, `admission request: .request.resource lacks its resource or its version: send all of it, such as {"group":"apps","version":"v1","resource":"deployments"}`)
	case strings.Contains(resource.Resource, "/"):
		return refusef(http.StatusBadRequest, "admission request: resource %q has a subresource in it: send that as .request.subResource", clipped(resource.Resource))
	case kind.Kind == "" || kind.Version == "":
		return refusef(http.StatusBadRequest, `admission request: .request.kind lacks its kind or its version: send all of it, such as {"group":"apps","version":"v1","kind":"Deployment"}`)
	}
	wanted := metav1.GroupVersion{Group: kind.Group, Version: kind.Version}.String()
	for _, sent := range []struct {
		field string
		raw   []byte
	}{{"object", question.Object.Raw}, {"oldObject", question.OldObject.Raw}} {
		field := sent.field
		object, ok := headerOf(sent.raw)
		if !ok {
			continue // The reviewer reports its faults.
		}
		if object.Kind != "" && object.Kind != kind.Kind || object.APIVersion != "" && object.APIVersion != wanted {
			return refusef(http.StatusBadRequest, "admission request: .request.%s is of apiVersion %q, kind %q, and .request.kind of %q, %q: send the same for both",
				field, clipped(object.APIVersion), clipped(object.Kind), clipped(wanted), clipped(kind.Kind))
		}
		namespace := object.Metadata.Namespace
		if resource.Group == "" && resource.Resource == "namespaces" {
			// An API server does the same, so that a RoleBinding in a namespace can grant writes to that namespace.
			namespace = object.Metadata.Name
		}
		if question.Namespace == "" {
			question.Namespace = namespace
		}
		if namespace != "" && namespace != question.Namespace {
			return refusef(http.StatusBadRequest, "admission request: .request.%s is in namespace %q, and .request.namespace is %q: send the same for both",
				field, clipped(namespace), clipped(question.Namespace))
		}
		if question.Name == "" {
			question.Name = object.Metadata.Name
		}
	}
	return nil
}

// headerOf returns the header of an object. It returns false if raw is not an object or has contradictory fields.
func headerOf(raw []byte) (header, bool) {
	var out header
	if len(raw) == 0 {
		return out, false
	}
	faults, err := kjson.UnmarshalStrict(raw, &out, kjson.DisallowDuplicateFields)
	return out, err == nil && len(faults) == 0
}
