package review

import (
	"context"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/fieldperm"
)

// Decide returns the decision of both admission webhooks together. /admit/granular reviews users without the generic verb (W1),
// including their barriers. For all other users, /admit/uncovered checks only the barriers (W2). The granular review of the
// Reviewer distinguishes the two groups of users itself, and so covers both. Errors are the Reviewer's.
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
	if !result.Allowed && admission.BeyondBarriers(request) {
		if err := asHolder(ctx, reviewer, request, result); err != nil {
			return nil, err
		}
	}
	if result.Mode == fieldperm.ModeUncovered && result.Denial != nil && result.Denial.Checks > 0 {
		return decideBarriers(ctx, reviewer, request, result, most)
	}
	return newReport(result, most)
}

// decideBarriers returns the report for a user with the generic verb if the barriers need too many checks (P3). In a cluster the API
// server has asked for the generic verb, so the webhook does not count that check.
func decideBarriers(ctx context.Context, reviewer *admission.Reviewer, request *admissionv1.AdmissionRequest, granular *admission.Result, most int) (*Report, error) {
	result, err := reviewer.Review(ctx, admission.Uncovered, request)
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
	return newReport(result, most)
}

// asHolder allows a write that barriers do not reach, if the user holds the generic permission: /admit/granular is not asked about such a user (W1),
// and /admit/uncovered is not asked about such a write (W2, W4), so that neither a barrier nor a Deny refuses it.
func asHolder(ctx context.Context, reviewer *admission.Reviewer, request *admissionv1.AdmissionRequest, result *admission.Result) error {
	var verbs []string
	switch request.Operation {
	case admissionv1.Create:
		verbs = []string{"create"}
	case admissionv1.Update:
		verbs = []string{"update", "patch"}
	case admissionv1.Delete, admissionv1.Connect:
	}
	of := reviewer.Authorizer(request)
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
		result.Checks = append(result.Checks, fieldperm.Check{Verb: verb, Allowed: true, By: answer.By})
		result.Decision = fieldperm.Decision{Allowed: true, Mode: fieldperm.ModeGeneric, Checks: result.Checks, CoveredBy: make([]string, len(result.Requirements))}
		for i := range result.CoveredBy {
			result.CoveredBy[i] = verb
		}
		result.Message = ""
		return nil
	}
	return nil
}
