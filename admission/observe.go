package admission

import (
	"context"
	"maps"
	"net/http"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/klog/v2"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/internal/shorten"
	"github.com/fieldperm/fieldperm/schema"
)

// The endpoints of this file refuse nothing: they say what would be refused if a user had only granular verbs, or if a set refused
// writes. An API server takes every response that does not allow the request as a denial, whatever the failurePolicy of the webhook is. So
// every response allows the request, also after an error.

const (
	// AnnotationRefused is the denial that would have been the response.
	AnnotationRefused = "refused"
	// AnnotationError says why a request could not be reviewed.
	AnnotationError = "error"

	modeObserved = "observed"
)

// Observation is what an update needs if the user does not hold the generic permission.
type Observation struct {
	// Verbs are the most specific verbs of the changes, sorted and without duplicates; Uncoverable stands for a change that no verb
	// covers.
	Verbs []string
	// Refused is the message of the denial without the generic permission, "" if there is none or if it was not asked for.
	Refused string
	// Denied means that fieldperm refuses the update: it does not show what the user may do. Refused is "" then.
	Denied bool
}

// Observe works out what an update needs. If decide is true, it also decides as if the user did not hold the generic permission. Errors are
// those of Review.
func (r *Reviewer) Observe(ctx context.Context, in *DecodedReview, decide bool) (*Observation, error) {
	if err := r.check(in.Request); err != nil {
		return nil, err
	}
	compiled, kind, err := r.kindOf(in.Request)
	if err != nil {
		return nil, err
	}
	write := NewWrite(in.Request, kind, nil)
	if err := r.findChanges(ctx, write, in, barriersInForce(ctx, compiled, &write.read)); err != nil {
		return nil, err
	}
	out := &Observation{Verbs: specificVerbs(nil, write.Changes)}
	if out.Denied, err = r.denied(ctx, write); err != nil {
		return nil, err
	}
	if out.Denied || !decide {
		return out, nil
	}
	result, err := r.decide(ctx, write, fieldperm.Review{Requirements: write.Changes})
	if err != nil {
		return nil, err
	}
	out.Refused = result.Message
	return out, nil
}

// denied reports whether the endpoints that decide refuse an update: because of a barrier, or because a user without the generic permission
// does not hold the verbs. The API server asks all endpoints at the same time, so that their answers are not known here.
func (r *Reviewer) denied(ctx context.Context, write *Write) (bool, error) {
	if OnFloor(write.Request) && slices.ContainsFunc(write.Changes, func(r fieldperm.Requirement) bool { return r.Barred() }) {
		return false, nil // No barrier reaches the floor.
	}
	result, err := r.decide(ctx, write, fieldperm.Review{Generic: []string{"update", "patch"}, Requirements: write.Changes})
	return err == nil && !result.Allowed, err
}

// Trial is what the sets that do not refuse writes say of a request: the messages of the denials if they did, "" if there is none.
type Trial struct {
	// Warning is for the client, from the sets with the action Warn. Audited is for the audit event, from those with the action Audit.
	Warning, Audited string
}

// Try decides as if the sets that do not refuse writes did. Errors are those of Review.
func (r *Reviewer) Try(ctx context.Context, in *DecodedReview) (*Trial, error) {
	req := in.Request
	if err := r.check(req); err != nil {
		return nil, err
	}
	if req.Operation == admissionv1.Delete {
		return &Trial{}, nil
	}
	compiled, kind, err := r.kindOf(req)
	if err != nil {
		return nil, err
	}
	out, read := &Trial{}, objectsOf(kind, req)
	warns := barriersFor(ctx, compiled, read, v1alpha1.ValidationWarn)
	if out.Warning, err = r.try(ctx, in, kind, warns); err != nil {
		return nil, err
	}
	audits := barriersFor(ctx, compiled, read, v1alpha1.ValidationAudit)
	if maps.Equal(warns, audits) {
		out.Audited = out.Warning
		return out, nil
	}
	if out.Audited, err = r.try(ctx, in, kind, audits); err != nil {
		return nil, err
	}
	return out, nil
}

// try returns the message of the denial by barriers, "" if there is none.
func (r *Reviewer) try(ctx context.Context, in *DecodedReview, kind *schema.Kind, barriers schema.VerbSet) (string, error) {
	if len(barriers) == 0 {
		return "", nil
	}
	write := NewWrite(in.Request, kind, nil)
	if err := r.findChanges(ctx, write, in, barriers); err != nil {
		return "", err
	}
	result, err := r.decide(ctx, write, fieldperm.Review{Requirements: write.Changes, UncoveredOnly: true})
	if err != nil {
		return "", err
	}
	return result.Message, nil
}

// Observer finds and records the observations of updates. It must be safe for concurrent use.
type Observer interface {
	// Watch returns the watch of a request, nil if nothing observes it.
	Watch(req *admissionv1.AdmissionRequest) Watch
}

// Watch is what observes one request. Exactly one of Record and Fail is called.
type Watch interface {
	// Warns and Audits report whether the client gets a warning, and the audit event annotations.
	Warns() bool
	Audits() bool
	Record(*Observation)
	Fail()
}

// ObservationHandler serves AdmissionReview v1 for PermissionObservations.
func (h Handlers) ObservationHandler(reviewer *Reviewer, observer Observer) http.Handler {
	return h.lenient(Observed, func(ctx context.Context, in *DecodedReview, out *admissionv1.AdmissionResponse) (int, error) {
		watch := observer.Watch(in.Request)
		if watch == nil || in.Request.Operation != admissionv1.Update {
			return 0, nil
		}
		seen, err := reviewer.Observe(ctx, in, watch.Warns())
		if err != nil {
			watch.Fail()
			return 0, err
		}
		watch.Record(seen)
		if seen.Refused != "" {
			out.Warnings = []string{"without update and patch this write is refused: " + seen.Refused}
		}
		if watch.Audits() {
			out.AuditAnnotations = map[string]string{AnnotationMode: modeObserved, AnnotationFields: joined(seen.Verbs)}
			if seen.Refused != "" {
				out.AuditAnnotations[AnnotationRefused] = cut(seen.Refused)
			}
		}
		return len(seen.Verbs), nil
	})
}

// TrialHandler serves AdmissionReview v1 for UncoveredPermissionSets whose actions let writes pass.
func (h Handlers) TrialHandler(reviewer *Reviewer) http.Handler {
	return h.lenient(Tried, func(ctx context.Context, in *DecodedReview, out *admissionv1.AdmissionResponse) (int, error) {
		trial, err := reviewer.Try(ctx, in)
		if err != nil {
			return 0, err
		}
		if trial.Warning != "" {
			out.Warnings = []string{"will be refused once the barrier is enforced: " + trial.Warning}
		}
		if trial.Audited != "" {
			out.AuditAnnotations = map[string]string{AnnotationRefused: cut(trial.Audited)}
		}
		return 0, nil
	})
}

// lenient serves AdmissionReview v1 and allows every request. An error is logged, and is an annotation of the audit event.
func (h Handlers) lenient(endpoint Endpoint, review func(context.Context, *DecodedReview, *admissionv1.AdmissionResponse) (checks int, err error)) http.Handler {
	return h.serveReview(string(endpoint), func(ctx context.Context, x *exchange, in *DecodedReview) {
		response := &admissionv1.AdmissionResponse{UID: in.Request.UID, Allowed: true}
		if in.Request.UserInfo.Username == ProbeUser {
			x.respond(ctx, response, OutcomeProbe, 0)
			return
		}
		checks, err := review(ctx, in, response)
		outcome := OutcomeAllowed
		if err != nil {
			klog.FromContext(ctx).V(2).Info("A write was not observed", "err", err)
			response.AuditAnnotations, outcome = map[string]string{AnnotationError: cut(err.Error())}, OutcomeError
		}
		x.respond(ctx, response, outcome, checks)
	})
}

func cut(text string) string { return shorten.Within(text, maxAnnotation) }
