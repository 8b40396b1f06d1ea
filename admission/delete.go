package admission

import (
	"cmp"
	"context"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/fieldperm/fieldperm/fieldperm"
)

// reviewDelete allows a deletion only if the user holds a generic verb for it. Granular verbs never cover a deletion (C4), whatever the
// schema says.
func (r *Reviewer) reviewDelete(ctx context.Context, req *admissionv1.AdmissionRequest) (*Result, error) {
	generic := []string{"delete", "deletecollection"}
	result := &Result{Decision: fieldperm.Decision{Mode: fieldperm.ModeNone}}
	authorizer := r.Authorizer(req)
	var failure error
	for _, verb := range generic {
		answer, err := authorizer.Authorize(ctx, verb, true)
		if err != nil {
			return nil, err
		}
		allowed := answer.AllowsGeneric()
		result.Checks = append(result.Checks, fieldperm.Check{Verb: verb, Allowed: allowed, By: answer.By})
		failure = cmp.Or(failure, answer.Failure)
		if allowed {
			result.Allowed, result.Mode = true, fieldperm.ModeGeneric
			return result, nil
		}
	}
	if failure != nil {
		return nil, failure
	}
	result.Denial = &fieldperm.Denial{Generic: generic}
	result.Message = denialMessage(result.Denial, req)
	return result, nil
}
