package admission

import (
	"fmt"
	"net/http"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/schema"
)

// Response renders the result of Review: allowed; 403 with the first field that is not covered (P5); or, for an error, a status that the
// API server passes to the client unchanged (P4). The caller gives exactly one of result and err. If both are nil, the response is an
// error.
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
	ref := RequestedResource(req)
	details := &metav1.StatusDetails{Group: ref.Group, Kind: ref.Resource, Name: req.Name}
	if d := result.Denial; d != nil && d.Field() != "" {
		details.Causes = append([]metav1.StatusCause{{
			Type:    metav1.CauseType(field.ErrorTypeForbidden),
			Field:   d.Field(),
			Message: result.Message,
		}}, furtherCauses(result, len(d.Field())+len(result.Message))...)
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
	verb := strings.ToLower(string(req.Operation))
	if req.Operation == admissionv1.Connect {
		verb += " to"
	}
	return d.Message(fieldperm.Subject{Resource: resourceName(req), Name: req.Name, User: req.UserInfo.Username, Verb: verb})
}

// resourceName returns the requested resource in the form of nameOf.
func resourceName(req *admissionv1.AdmissionRequest) string { return nameOf(RequestedResource(req)) }

// nameOf returns a resource as deployments.apps or deployments.apps/status.
func nameOf(ref schema.ResourceRef) string {
	name := ref.Resource
	if ref.Group != "" {
		name += "." + ref.Group
	}
	if ref.Subresource != "" {
		name += "/" + ref.Subresource
	}
	return name
}
