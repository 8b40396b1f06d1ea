package authz

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	kjson "sigs.k8s.io/json"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/fieldperm"
	peer "github.com/fieldperm/fieldperm/internal/conditions/remote"
	"github.com/fieldperm/fieldperm/internal/conditions/wire"
)

// Conditions returns what these webhooks decide on a write, nil if there are none. of is the authorizer that For returned for the request of the
// write, so that one configuration decides the whole review.
func Conditions(of fieldperm.Authorizer, write *admission.Write) admission.Conditions {
	r, ok := of.(*requestAuthorizer)
	if !ok || len(r.chain.conditionals) == 0 {
		return nil
	}
	conditions := newOnWrite(r, write.Request)
	conditions.barriersOnly = write.Endpoint == admission.Uncovered
	return conditions
}

// maxUnmet is how many conditions a denial can name. A webhook may return thousands for the verbs of one review.
const maxUnmet = 16

// onWrite asks webhooks that return conditions about one request in admission.
type onWrite struct {
	webhooks []*conditional
	of       authorizer.AttributesRecord // without a verb
	request  *admissionv1.AdmissionRequest
	// seen returns the request, encoded once, and nil if the API server has converted its objects: an authorizer gives conditions for the version
	// of the request.
	seen   func() (*wire.Admission, error)
	review peer.Review
	// barriersOnly is true for reviews of all users. A webhook does not decide on the generic verbs of users whom fieldperm does not let through. It
	// decides on the verbs of barriers, as every authorizer of the chain.
	barriersOnly bool

	mu      sync.Mutex
	answers map[string]fieldperm.AuthorizerDecision
	// unmet are the conditions that have not allowed a verb.
	unmet map[string][]fieldperm.Unmet
}

func newOnWrite(of *requestAuthorizer, request *admissionv1.AdmissionRequest) *onWrite {
	attributes := of.AttributesRecord
	attributes.User = &of.user
	return &onWrite{
		webhooks: of.chain.conditionals, of: attributes, request: request, answers: map[string]fieldperm.AuthorizerDecision{}, unmet: map[string][]fieldperm.Unmet{},
		seen: sync.OnceValues(func() (*wire.Admission, error) {
			if request.RequestKind != nil && *request.RequestKind != request.Kind {
				return nil, nil
			}
			return peer.Encode(request)
		}),
	}
}

// Authorize asks for one verb, and evaluates its conditions. A decision of the authorization phase that a webhook's cache still holds is used as
// it was.
func (w *onWrite) Authorize(ctx context.Context, verb string, generic bool) (fieldperm.AuthorizerDecision, error) {
	if generic && w.barriersOnly {
		return fieldperm.AuthorizerDecision{Outcome: fieldperm.NoOpinion}, nil
	}
	w.mu.Lock()
	answer, known := w.answers[verb]
	w.mu.Unlock()
	if !known {
		var err error
		if answer, err = w.decide(w.review.During(ctx), verb); err == nil {
			// The end of the context makes questions fail. Their outcome does not count.
			err = ctx.Err()
		}
		if err != nil {
			return fieldperm.AuthorizerDecision{}, err
		}
		w.mu.Lock()
		w.answers[verb] = answer
		w.mu.Unlock()
	}
	if generic && answer.Outcome == fieldperm.Deny && answer.Failure != nil {
		// A Deny of the generic verb denies the request. The webhook that failed might have allowed it (P4).
		return fieldperm.AuthorizerDecision{}, answer.Failure
	}
	return answer, nil
}

// Unmet returns some of the conditions that would have allowed one of the verbs, of those that were asked for and not allowed.
func (w *onWrite) Unmet(verbs []string) []fieldperm.Unmet {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []fieldperm.Unmet
	for _, verb := range verbs {
		for _, one := range w.unmet[verb] {
			if len(out) < maxUnmet && !slices.Contains(out, one) {
				out = append(out, one)
			}
		}
	}
	return out
}

// decide asks for one verb. The name of a new object is known in admission. In the authorization phase an API server knows it for a server-side
// apply and for a PUT that creates, and not for a POST, and admission cannot tell a PUT from a POST. So create is asked with the name and
// without it. A Deny of one counts, and an Allow must be that of both. Of an object that an apply created, the API server has asked with the name.
func (w *onWrite) decide(ctx context.Context, verb string) (fieldperm.AuthorizerDecision, error) {
	named := w.of
	named.Verb = verb
	if verb != "create" || w.request.Operation != admissionv1.Create || named.Subresource != "" {
		return w.ask(ctx, named)
	}
	posted := named
	posted.Name = ""
	isNamespace := named.APIGroup == "" && named.Resource == "namespaces"
	if isNamespace {
		// In admission a namespace is in itself. A POST of it is in none.
		posted.Namespace = ""
	}
	first, err := w.ask(ctx, posted)
	if err != nil || first.Outcome == fieldperm.Deny || named.Name == "" {
		return first, err
	}
	applied := isApplied(w.request)
	if isNamespace && !applied {
		// No PUT creates a namespace.
		return first, nil
	}
	second, err := w.ask(ctx, named)
	if err != nil {
		return second, err
	}
	if !second.Allowed() {
		second.Failure = cmp.Or(second.Failure, first.Failure)
		return second, nil
	}
	if first.Allowed() || applied {
		return second, nil
	}
	return first, nil
}

// isApplied reports whether a server-side apply has created the object: the API server has recorded one manager, with the operation Apply. For a
// POST or a PUT of an object with fields it records a manager with the operation Update, whatever the user sends.
func isApplied(req *admissionv1.AdmissionRequest) bool {
	var object struct {
		Metadata struct {
			ManagedFields []metav1.ManagedFieldsEntry `json:"managedFields"`
		} `json:"metadata"`
	}
	if kjson.UnmarshalCaseSensitivePreserveInts(req.Object.Raw, &object) != nil {
		return false
	}
	managers := object.Metadata.ManagedFields
	return len(managers) == 1 && managers[0].Operation == metav1.ManagedFieldsOperationApply && managers[0].Subresource == ""
}

func (w *onWrite) ask(ctx context.Context, attributes authorizer.Attributes) (decided fieldperm.AuthorizerDecision, err error) {
	out := fieldperm.AuthorizerDecision{Outcome: fieldperm.NoOpinion}
	about := func(err error) error {
		if err == nil {
			return nil
		}
		return fmt.Errorf("verb %q on %q: %w", attributes.GetVerb(), w.of.Resource, err)
	}
	var unmet []authorizer.Condition
	var by, skipped []string
	defer func() { decided.Skipped = strings.Join(skipped, ",") }()
	for _, one := range w.webhooks {
		var made call
		decision := one.ConditionsAwareAuthorize(withCall(ctx, &made), attributes)
		if made.skipped {
			skipped = append(skipped, one.name)
		}
		var of *wire.Admission
		if !decision.IsUnconditional() {
			var err error
			if of, err = w.seen(); err != nil {
				return fieldperm.AuthorizerDecision{}, about(err)
			}
		}
		outcome, reason, err := one.remote.Evaluate(ctx, decision, of)
		switch outcome {
		case authorizer.DecisionAllow:
			return fieldperm.AuthorizerDecision{Outcome: fieldperm.Allow, Reason: reason, By: one.name}, nil
		case authorizer.DecisionNoOpinion:
			out.Failure = cmp.Or(out.Failure, about(err))
			for c := range allows(decision) {
				if len(unmet) == maxUnmet {
					break
				}
				unmet, by = append(unmet, c), append(by, one.name)
			}
		default:
			if err != nil {
				// An error is not a denial (P4).
				return fieldperm.AuthorizerDecision{}, about(err)
			}
			// A webhook before this one that failed might have allowed the verb.
			return fieldperm.AuthorizerDecision{Outcome: fieldperm.Deny, Reason: reason, By: one.name, Failure: out.Failure}, nil
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, c := range unmet {
		next := fieldperm.Unmet{Name: c.GetID(), Authorizer: by[i], Description: c.GetDescription()}
		w.unmet[attributes.GetVerb()] = append(w.unmet[attributes.GetVerb()], next)
	}
	return out, nil
}

// allows are the conditions of a decision with the effect Allow.
func allows(d authorizer.ConditionsAwareDecision) iter.Seq[authorizer.Condition] {
	return func(yield func(authorizer.Condition) bool) {
		switch {
		case d.IsConditionsMap():
			for c := range d.ConditionsMap().AllowConditions() {
				if !yield(c) {
					return
				}
			}
		case d.IsUnion():
			for _, inner := range d.UnionedDecisions() {
				for c := range allows(inner) {
					if !yield(c) {
						return
					}
				}
			}
		}
	}
}
