package policies

import (
	"context"
	"fmt"
	"slices"
	"sync"

	admissionv1 "k8s.io/api/admission/v1"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/internal/conditions/expression"
	"github.com/fieldperm/fieldperm/internal/shorten"
	"github.com/fieldperm/fieldperm/schema/endpoint"
)

// request evaluates the policies about one admission request. All its conditions share the decoded objects and one limit of cost.
type request struct {
	set   *Set
	write *admission.Write
	of    *admissionv1.AdmissionRequest
	input func() *expression.Input

	mu      sync.Mutex
	answers map[string]fieldperm.AuthorizerDecision
	// unmet are the policies that have not allowed a verb.
	unmet map[string][]fieldperm.Unmet
}

// For returns the conditions of the policies on a write. The answer is NoOpinion for a verb without policies.
func (s *Set) For(write *admission.Write) admission.Conditions {
	r := &request{set: s, write: write, of: write.Request, unmet: map[string][]fieldperm.Unmet{}}
	r.input = sync.OnceValue(func() *expression.Input { return expression.NewInput(data{write.Request, write}, "", r.listChanges) })
	return r
}

// Conditional is For, and nil if there are no policies. It is for admission.Reviewer.
func (s *Set) Conditional(write *admission.Write, _ fieldperm.Authorizer) (admission.Conditions, error) {
	if s.Empty() {
		return nil, nil
	}
	return s.For(write), nil
}

// listChanges returns the changed fields. Only a CREATE and an UPDATE have any; an empty list for a deletion would make "all changes are …" true.
func (r *request) listChanges() (expression.ChangeList, error) {
	if r.of.Operation != admissionv1.Create && r.of.Operation != admissionv1.Update {
		return nil, fmt.Errorf("operation %q has no changed fields", r.of.Operation)
	}
	out, err := r.write.Parts()
	if len(out) > 1 && out[0].Operation == fieldperm.Created {
		out = out[1:] // A condition is about fields. A new object of which no field is charged is a change all the same.
	}
	return changes(out), err
}

// Authorize evaluates the policies of one verb. Every policy with update has patch, so both have the same answer.
func (r *request) Authorize(ctx context.Context, verb string, _ bool) (fieldperm.AuthorizerDecision, error) {
	verb = askedFor(verb)
	ref := admission.RequestedResource(r.of)
	about := r.set.about(verb, r.of.UserInfo.Username, r.of.UserInfo.Groups, &endpoint.Ref{Group: ref.Group, Resource: ref.Resource, Subresource: ref.Subresource})
	if len(about) == 0 {
		return fieldperm.AuthorizerDecision{Outcome: fieldperm.NoOpinion}, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if known, ok := r.answers[verb]; ok {
		return known, nil
	}
	answer := r.evaluate(ctx, verb, about, version{runtimeschema.GroupVersionResource{Group: ref.Group, Version: ref.Version, Resource: ref.Resource}, ref.Subresource})
	if err := ctx.Err(); err != nil {
		// The end of the context makes conditions fail. Their outcome does not count.
		return fieldperm.AuthorizerDecision{}, err
	}
	if r.answers == nil {
		r.answers = map[string]fieldperm.AuthorizerDecision{}
	}
	r.answers[verb] = answer
	return answer, nil
}

// askedFor returns the verb that policies are asked for: every policy with update has patch.
func askedFor(verb string) string {
	if verb == "patch" {
		return "update"
	}
	return verb
}

// Unmet returns the policies with effect Allow about the verbs, of those that were asked for and not allowed.
func (r *request) Unmet(verbs []string) []fieldperm.Unmet {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []fieldperm.Unmet
	for _, verb := range verbs {
		for _, one := range r.unmet[askedFor(verb)] {
			if !slices.Contains(out, one) {
				out = append(out, one)
			}
		}
	}
	return out
}

// evaluate is called with mu held.
func (r *request) evaluate(ctx context.Context, verb string, about []*policy, of version) fieldperm.AuthorizerDecision {
	var converted error
	if r.of.RequestKind != nil && *r.of.RequestKind != r.of.Kind {
		converted = fmt.Errorf("the API server has converted the object to %s: take the version out of the rules of the webhook", r.of.Kind.String())
	}
	var deny, noOpinion, allow []authorizer.Condition
	for _, p := range about {
		fault := converted
		if fault == nil {
			fault = p.fits(of)
		}
		if fault == nil && p.readsChanges() && r.write.Renames() && !p.names(of) {
			fault = fmt.Errorf("the condition reads changes, and another version of %s has fields under other names: name the version %q in spec.resources", of.Resource, of.Version)
		}
		switch p.decides.Effect {
		case expression.Allow:
			allow = append(allow, p.condition(fault))
		case expression.NoOpinion:
			noOpinion = append(noOpinion, p.condition(fault))
		default:
			deny = append(deny, p.condition(fault))
		}
	}
	decision := authorizer.ConditionsAwareDecisionConditionsMap(deny, noOpinion, allow)
	outcome, reason, err := r.set.outcome(ctx, decision, r.input())
	out := fieldperm.AuthorizerDecision{Outcome: fieldperm.Outcome(outcome), Reason: reason, By: Name}
	if err != nil {
		out.Reason = shorten.Within(fmt.Sprintf("%s: %v", reason, err), maxReason)
	}
	if out.Outcome == fieldperm.NoOpinion {
		out.By = ""
		for _, p := range about {
			one := fieldperm.Unmet{Name: p.name, Description: p.decides.Description}
			if p.decides.Effect == expression.Allow {
				r.unmet[verb] = append(r.unmet[verb], one)
			}
		}
	}
	return out
}

// maxReason is the largest reason in bytes.
const maxReason = 1024

// outcome evaluates a decision, which may be unconditional.
func (s *Set) outcome(ctx context.Context, d authorizer.ConditionsAwareDecision, in authorizer.ConditionsData) (authorizer.Decision, string, error) {
	switch {
	case d.IsConditionsMap():
		return s.EvaluateConditions(ctx, d, in)
	case d.IsNoOpinion():
		return authorizer.DecisionNoOpinion, d.Reason(), d.Error()
	}
	return authorizer.DecisionDeny, d.Reason(), d.Error()
}
