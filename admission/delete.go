package admission

import (
	"context"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/fieldperm/fieldperm/fieldperm"
)

// reviewDelete allows a deletion only if the user holds the generic verb for it. Granular verbs never cover a deletion (C4), whatever the
// schema says. The endpoint uncovered refuses only what a condition denies.
func (r *Reviewer) reviewDelete(ctx context.Context, endpoint Endpoint, req *admissionv1.AdmissionRequest) (*Result, error) {
	// An API server names the object in a deletion of one object, and names none in the deletion of a collection.
	verb := "delete"
	if req.Name == "" {
		verb = "deletecollection"
	}
	authorizer, denied, err := r.authorizer(ctx, NewWrite(req, nil, nil), []string{verb})
	if err != nil || denied != nil {
		return denied, err
	}
	result := &Result{Decision: fieldperm.Decision{Mode: fieldperm.ModeNone}}
	if endpoint == Uncovered {
		result.Allowed = true
		return result, nil
	}
	answer, err := authorizer.Authorize(ctx, verb, true)
	if err != nil {
		return nil, err
	}
	result.Allowed = answer.AllowsGeneric()
	result.Checks = []fieldperm.Check{{Verb: verb, Allowed: result.Allowed, By: answer.By}}
	if result.Allowed {
		result.Mode = fieldperm.ModeGeneric
		return result, nil
	}
	if answer.Failure != nil {
		return nil, answer.Failure
	}
	result.Denial = &fieldperm.Denial{Generic: []string{verb}, Unmet: unmet(authorizer)}
	result.Message = denialMessage(result.Denial, req)
	return result, nil
}
