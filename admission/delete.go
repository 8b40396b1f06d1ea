package admission

import (
	"context"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/verbs"
)

// reviewDelete allows a deletion to holders of a generic verb for it only: granular verbs never
// cover one (C4), whatever the schema says.
func (r *Reviewer) reviewDelete(ctx context.Context, req *admissionv1.AdmissionRequest) (*Result, error) {
	generic := []string{"delete", "deletecollection"}
	result := &Result{Decision: fieldperm.Decision{Mode: fieldperm.ModeNone}}
	authorizer := r.Authorizer(req)
	for _, verb := range generic {
		answer, err := authorizer.Authorize(ctx, verb, true)
		if err != nil {
			return nil, err
		}
		// A4's second lock, though fieldperm's own authorizer knows nothing of deletion (A1).
		allowed := answer.Allowed && !strings.HasPrefix(answer.Reason, verbs.Prefix)
		result.Checks = append(result.Checks, fieldperm.Check{Verb: verb, Allowed: allowed})
		if allowed {
			result.Allowed, result.Mode = true, fieldperm.ModeGeneric
			return result, nil
		}
	}
	result.Denial = &fieldperm.Denial{Generic: generic}
	result.Message = denialMessage(result.Denial, req)
	return result, nil
}
