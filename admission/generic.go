package admission

import (
	"context"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/fieldperm/fieldperm/fieldperm"
)

// onlyGeneric returns the generic verb of a request that granular verbs never cover, whatever the schema says: a deletion, and a connection to
// a Pod (C4). It reports false for any other request.
func onlyGeneric(req *admissionv1.AdmissionRequest) (verb string, only bool) {
	switch req.Operation {
	case admissionv1.Delete:
		// An API server names the object in a deletion of one object, and names none in the deletion of a collection.
		if req.Name == "" {
			return "deletecollection", true
		}
		return "delete", true
	case admissionv1.Connect:
		return "create", true
	case admissionv1.Create, admissionv1.Update:
	}
	return "", false
}

// reviewGeneric allows a request only if the user holds its generic verb. The endpoint uncovered refuses only what a condition denies.
func (r *Reviewer) reviewGeneric(ctx context.Context, endpoint Endpoint, req *admissionv1.AdmissionRequest, verb string) (*Result, error) {
	write := NewWrite(req, nil, nil)
	write.Endpoint = endpoint
	authorizer, denied, err := r.authorizer(ctx, write, []string{verb})
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
	result.Checks = []fieldperm.Check{{Verb: verb, Allowed: result.Allowed, By: answer.By, Skipped: answer.Skipped}}
	if result.Allowed {
		result.Mode = fieldperm.ModeGeneric
		return result, nil
	}
	if answer.Failure != nil {
		return nil, answer.Failure
	}
	result.Denial = &fieldperm.Denial{Generic: []string{verb}, GenericOnly: true}
	result.Denial.Unmet = unmet(authorizer, result.Denial, nil)
	result.Message = denialMessage(result.Denial, req)
	return result, nil
}
