package admission

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/internal/rawjson"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/verbs"
)

// Write is an admission request as conditions see it. The zero Write has no objects.
type Write struct {
	Request *admissionv1.AdmissionRequest
	// Endpoint is the webhook that sent the review, "" if that is not known.
	Endpoint Endpoint
	// Changes are the changed fields of a CREATE or an UPDATE.
	Changes []fieldperm.Requirement

	// parts returns the changes for conditions: see Parts. It is nil if they are Changes.
	parts func() ([]fieldperm.Requirement, error)
	// read has no request if the objects are not known.
	read objectReader
	// object and old are absent if they have to be decoded.
	object, old rawjson.Value
}

// NewWrite returns the write of a request with an object of a kind. kind is nil for a deletion.
func NewWrite(req *admissionv1.AdmissionRequest, kind *schema.Kind, changes []fieldperm.Requirement) *Write {
	return &Write{Request: req, Changes: changes, read: objectReader{kind: kind, req: req}}
}

// Parts returns the changed fields of a CREATE or an UPDATE with everything that conditions may ask for: besides an item or another value that is charged as
// a whole, each changed scalar in it. The error means that they are not known one by one: the object is charged as a whole. It must not be called after
// the review.
func (w *Write) Parts() ([]fieldperm.Requirement, error) {
	out := w.Changes
	if w.parts != nil {
		var err error
		if out, err = w.parts(); err != nil {
			return nil, err
		}
	}
	for i := range out {
		if r := &out[i]; r.Path.IsRoot() && r.Operation != fieldperm.Created {
			return nil, fmt.Errorf("the changed fields are not known one by one: %s", cmp.Or(r.Instead, "the object is charged as a whole"))
		}
	}
	return out, nil
}

// Renames reports whether another version of the kind has a field under another name, so that a condition on changes must say for which version it is
// written.
func (w *Write) Renames() bool { return w.read.kind != nil && w.read.kind.Renames() }

// Objects returns the decoded objects as readers get them, nil for an absent one. The error means that an object cannot be decoded, or that
// the API server stores it without some of its fields. The caller must not change the objects. Objects is safe for concurrent use.
func (w *Write) Objects() (object, old any, err error) {
	if w.read.req == nil {
		return nil, nil, errors.New("the objects of the request are not known")
	}
	out, err := w.read.read()
	return out.object, out.old, err
}

// Scanned returns the objects as they are in the request, absent for an absent one. It reports false if readers get them in another form, or
// if they have not been scanned: then Objects has them. The values must not be used after the review.
func (w *Write) Scanned() (object, old rawjson.Value, ok bool) {
	return w.object, w.old, !w.object.IsAbsent() || !w.old.IsAbsent()
}

// Conditions decides by conditions on the objects of one request. NoOpinion leaves the decision to the chain.
type Conditions interface {
	fieldperm.Authorizer
	// Unmet returns the conditions under which one of the verbs, of those that have been asked for, would have been allowed.
	Unmet(verbs []string) []fieldperm.Unmet
}

// authorizers are the conditions and the authorizer that is asked for what no condition decides.
type authorizers struct {
	conditions Conditions
	then       fieldperm.Authorizer
}

// Authorize asks for one verb.
func (a *authorizers) Authorize(ctx context.Context, verb string, generic bool) (fieldperm.AuthorizerDecision, error) {
	conditional, err := a.conditions.Authorize(ctx, verb, generic)
	if err != nil || conditional.Outcome != fieldperm.NoOpinion {
		return conditional, err
	}
	out, err := a.then.Authorize(ctx, verb, generic)
	if conditional.Skipped != "" {
		out.Skipped = strings.TrimSuffix(conditional.Skipped+","+out.Skipped, ",")
	}
	if out.Failure == nil && !out.Allowed() {
		// The conditional authorizer that failed might have allowed the verb, so a denial is due to the failure (P4).
		out.Failure = conditional.Failure
	}
	return out, err
}

// unmet returns the conditions that a denial names: those under which one of the verbs that it names would have been allowed. Others have been asked for
// too, some of them only because several are asked for at the same time.
func unmet(of fieldperm.Authorizer, denial *fieldperm.Denial, checks []fieldperm.Check) []fieldperm.Unmet {
	a, ok := of.(*authorizers)
	if !ok {
		return nil
	}
	names := slices.Clone(denial.Generic)
	for _, v := range denial.Needs {
		names = append(names, v.String())
	}
	if slices.ContainsFunc(checks, func(c fieldperm.Check) bool { return c.Verb == verbs.Marker && !c.Allowed }) {
		names = append(names, verbs.Marker)
	}
	return a.conditions.Unmet(names)
}

// authorizer returns the authorizer of a request. The result is a denial if a condition denies one of the verbs of the request.
func (r *Reviewer) authorizer(ctx context.Context, write *Write, verbs []string) (fieldperm.Authorizer, *Result, error) {
	then, changes := r.Authorizer(write.Request), write.Changes
	behind := then
	if r.conditionsOnly {
		behind = granularVerbsOf{then}
	}
	if r.Conditional == nil {
		return behind, nil, nil
	}
	conditions, err := r.Conditional(write, then)
	if err != nil {
		return nil, nil, unavailable("%w: try again, and look at /readyz if it stays so", err)
	}
	if conditions == nil {
		return behind, nil, nil
	}
	for _, verb := range verbs {
		answer, err := conditions.Authorize(ctx, verb, true)
		if err != nil {
			return nil, nil, err
		}
		if answer.Outcome == fieldperm.Deny {
			denial := &fieldperm.Denial{More: len(changes), Refusal: &fieldperm.Refusal{Verb: verb, By: answer.By, Reason: answer.Reason}}
			return nil, &Result{
				Decision: fieldperm.Decision{
					Mode: fieldperm.ModeNone, Denial: denial, CoveredBy: make([]string, len(changes)),
					Checks: []fieldperm.Check{{Verb: verb, By: answer.By, Skipped: answer.Skipped}},
				},
				Requirements: changes, Message: denialMessage(denial, write.Request),
			}, nil
		}
	}
	return &authorizers{conditions, behind}, nil, nil
}

// granularVerbsOf is an authorizer that has no opinion on generic verbs.
type granularVerbsOf struct{ fieldperm.Authorizer }

// Authorize asks for one verb.
func (g granularVerbsOf) Authorize(ctx context.Context, verb string, generic bool) (fieldperm.AuthorizerDecision, error) {
	if generic {
		return fieldperm.AuthorizerDecision{Outcome: fieldperm.NoOpinion}, nil
	}
	return g.Authorizer.Authorize(ctx, verb, generic)
}

// forConditions returns the reviewer of an authorizer in a chain. Others in the chain decide on the generic permission, in their order: an Allow
// of one of them must not count here.
func (r *Reviewer) forConditions() *Reviewer {
	out := *r
	out.conditionsOnly = true
	return &out
}
