package review

import (
	"context"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/fieldperm/fieldperm/admission"
)

// Decide returns the report of the decision of both admission webhooks together. Errors are the Reviewer's.
func Decide(ctx context.Context, reviewer *admission.Reviewer, request *admissionv1.AdmissionRequest, most int) (*Report, error) {
	result, err := reviewer.Both(ctx, request)
	if err != nil {
		return nil, err
	}
	decided, err := newReport(result, most)
	if err != nil {
		return nil, err
	}
	decided.Notes = notes(request)
	return decided, nil
}
