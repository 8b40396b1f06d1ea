package report

import (
	"context"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/fieldperm"
)

// Decide decides on a write as the two admission webhooks would together. /admit/granular reviews those who
// lack the generic verb (W1) and meets their barriers as well; of the others /admit/uncovered sees the
// barriers alone (W2). Granular's review tells the two apart by itself and is both. Errors are the
// reviewer's.
func Decide(ctx context.Context, reviewer *admission.Reviewer, request *admissionv1.AdmissionRequest, most int) (*Report, error) {
	decided, err := decide(ctx, reviewer, request, most)
	if err != nil {
		return nil, err
	}
	decided.Notes = notes(request)
	return decided, nil
}

func decide(ctx context.Context, reviewer *admission.Reviewer, request *admissionv1.AdmissionRequest, most int) (*Report, error) {
	result, err := reviewer.Review(ctx, admission.Granular, request)
	if err != nil {
		return nil, err
	}
	if result.Mode == fieldperm.ModeUncovered && result.Denial != nil && result.Denial.Checks > 0 {
		return decideBarriers(ctx, reviewer, request, result, most)
	}
	return New(result, most)
}

// decideBarriers is for a holder of the generic verb whose barriers cost too many checks (P3): there the
// API server has asked for the generic verb, and it is none of the checks that the webhook counts.
func decideBarriers(ctx context.Context, reviewer *admission.Reviewer, request *admissionv1.AdmissionRequest, granular *admission.Result, most int) (*Report, error) {
	result, err := reviewer.Review(ctx, admission.Uncovered, request)
	if err != nil {
		return nil, err
	}
	held := slices.IndexFunc(granular.Checks, func(c fieldperm.Check) bool { return c.Allowed }) // the first that is, in this mode
	generic := granular.Checks[:held+1]
	result.Checks = append(slices.Clone(generic), result.Checks...)
	for i := range result.Requirements {
		if !result.Requirements[i].Barred() {
			result.CoveredBy[i] = generic[held].Verb
		}
	}
	return New(result, most)
}
