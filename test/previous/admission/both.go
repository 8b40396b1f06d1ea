package admission

import (
	"context"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/fieldperm/fieldperm/test/previous/fieldperm"
)

// Both returns the decision of both admission webhooks together. /admit/granular reviews users without the generic verb (W1),
// including their barriers. For all other users, /admit/uncovered checks only the barriers (W2). The granular review
// distinguishes the two groups of users itself, and so covers both. Errors are those of Review.
func (r *Reviewer) Both(ctx context.Context, request *admissionv1.AdmissionRequest) (*Result, error) {
	result, err := r.Review(ctx, Granular, request)
	if err != nil {
		return nil, err
	}
	if !result.Allowed && BeyondBarriers(request) {
		if err := r.asHolder(ctx, request, result); err != nil {
			return nil, err
		}
	}
	if result.Mode == fieldperm.ModeUncovered && result.Denial != nil && result.Denial.Checks > 0 {
		return r.barriersOnly(ctx, request, result)
	}
	return result, nil
}

// barriersOnly returns the decision on a user with the generic verb if the barriers need too many checks (P3). In a cluster the API
// server has asked for the generic verb, so the webhook does not count that check.
func (r *Reviewer) barriersOnly(ctx context.Context, request *admissionv1.AdmissionRequest, granular *Result) (*Result, error) {
	result, err := r.Review(ctx, Uncovered, request)
	if err != nil {
		return nil, err
	}
	held := slices.IndexFunc(granular.Checks, func(c fieldperm.Check) bool { return c.Allowed }) // the first allowed check; in this mode it is the generic verb
	generic := granular.Checks[:held+1]
	result.Checks = append(slices.Clone(generic), result.Checks...)
	for i := range result.Requirements {
		if !result.Requirements[i].Barred() {
			result.CoveredBy[i] = generic[held].Verb
		}
	}
	return result, nil
}

// asHolder allows a write that barriers do not reach, if the user holds the generic permission: /admit/granular is not asked about such a user (W1),
// and /admit/uncovered is not asked about such a write (W2, W4), so that neither a barrier nor a Deny refuses it.
func (r *Reviewer) asHolder(ctx context.Context, request *admissionv1.AdmissionRequest, result *Result) error {
	var verbs []string
	switch request.Operation {
	case admissionv1.Create:
		verbs = []string{"create"}
	case admissionv1.Update:
		verbs = []string{"update", "patch"}
	case admissionv1.Delete, admissionv1.Connect:
	}
	of := r.Authorizer(request)
	for _, verb := range verbs {
		answer, err := of.Authorize(ctx, verb, true)
		if err == nil && !answer.AllowsGeneric() {
			err = answer.Failure
		}
		if err != nil {
			return err
		}
		if !answer.AllowsGeneric() {
			continue
		}
		result.Checks = append(result.Checks, fieldperm.Check{Verb: verb, Allowed: true, By: answer.By, Skipped: answer.Skipped})
		result.Decision = fieldperm.Decision{Allowed: true, Mode: fieldperm.ModeGeneric, Checks: result.Checks, CoveredBy: make([]string, len(result.Requirements))}
		for i := range result.CoveredBy {
			result.CoveredBy[i] = verb
		}
		result.Message = ""
		return nil
	}
	return nil
}
