package admission

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/verbs"
)

// The audit annotations of every decision (P7). The API server puts the webhook's name before them.
const (
	AnnotationMode   = "mode"
	AnnotationVerbs  = "verbs"
	AnnotationChecks = "checks"
)

// maxVerbsAnnotation bounds the list of verbs in an audit annotation, in bytes.
const maxVerbsAnnotation = 1024

// Response renders what Review returned: allowed; 403 with the first field that is not covered (P5);
// or, for an error, a status that the API server hands to the client as it is (P4). Exactly one of
// result and err is expected; with neither, nothing is allowed.
func Response(result *Result, err error, req *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	response := &admissionv1.AdmissionResponse{}
	if req != nil {
		response.UID = req.UID
	}
	switch {
	case err != nil:
		response.Result = failure(err)
	case result == nil:
		response.Result = failure(fmt.Errorf("review: came to no result"))
	default:
		response.Allowed = result.Allowed
		response.AuditAnnotations = annotations(result)
		if !result.Allowed {
			response.Result = denial(result, req)
		}
	}
	return response
}

func denial(result *Result, req *admissionv1.AdmissionRequest) *metav1.Status {
	ref := addressed(req)
	details := &metav1.StatusDetails{Group: ref.Group, Kind: ref.Resource, Name: req.Name}
	if d := result.Denial; d != nil && d.Field() != "" {
		details.Causes = []metav1.StatusCause{{
			Type:    metav1.CauseType(field.ErrorTypeForbidden),
			Field:   d.Field(),
			Message: result.Message,
		}}
	}
	return &metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    http.StatusForbidden,
		Reason:  metav1.StatusReasonForbidden,
		Message: result.Message,
		Details: details,
	}
}

func denialMessage(d *fieldperm.Denial, req *admissionv1.AdmissionRequest) string {
	if d == nil {
		d = &fieldperm.Denial{}
	}
	return d.Message(fieldperm.Subject{
		Resource: resourceName(req), Name: req.Name, User: req.UserInfo.Username, Verb: strings.ToLower(string(req.Operation)),
	})
}

// resourceName is deployments.apps or deployments.apps/status.
func resourceName(req *admissionv1.AdmissionRequest) string {
	ref := addressed(req)
	name := ref.Resource
	if ref.Group != "" {
		name += "." + ref.Group
	}
	if ref.Subresource != "" {
		name += "/" + ref.Subresource
	}
	return name
}

func annotations(result *Result) map[string]string {
	return map[string]string{
		AnnotationMode:   string(result.Mode),
		AnnotationVerbs:  coveringVerbs(result),
		AnnotationChecks: strconv.Itoa(len(result.Checks)),
	}
}

// coveringVerbs lists the verbs that covered the change, sorted, each once, and the generic verb
// that was found held; "" if the request is denied.
func coveringVerbs(result *Result) string {
	if !result.Allowed {
		return ""
	}
	var held []string
	for _, verb := range result.CoveredBy {
		if verb != "" {
			held = append(held, verb)
		}
	}
	for _, check := range result.Checks {
		if check.Allowed && check.Verb != verbs.Marker && !strings.HasPrefix(check.Verb, verbs.Prefix) {
			held = append(held, check.Verb)
		}
	}
	slices.Sort(held)
	held = slices.Compact(held)
	var b strings.Builder
	for i, verb := range held {
		if b.Len()+len(verb)+len(",…") > maxVerbsAnnotation {
			b.WriteString(",…")
			break
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(verb)
	}
	return b.String()
}
