package admission

import (
	"context"
	"errors"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/endpoint"
)

// Endpoint identifies the webhook that sent the review.
type Endpoint string

const (
	// Granular reviews the requests of users without the generic verb (W1).
	Granular Endpoint = "granular"
	// Uncovered reviews the requests of all users, for barriers only (W2).
	Uncovered Endpoint = "uncovered"
	// Observed reviews updates for PermissionObservations, and refuses none.
	Observed Endpoint = "observed"
	// Tried reviews requests for UncoveredPermissionSets whose actions let writes pass, and refuses none.
	Tried Endpoint = "tried"
)

// Reviewer decides on admission requests. It does not depend on HTTP; the handlers, the command line and the tests use it in the same
// way. The zero Reviewer has no schema and refuses every request.
type Reviewer struct {
	// Schema returns the permission schema in force, nil while there is none.
	Schema func() *schema.Schema
	// Authorizer returns the authorizer for the user and the object of the request.
	Authorizer func(*admissionv1.AdmissionRequest) fieldperm.Authorizer
	// Conditional returns the conditions on a write, nil if there are none. They are asked before then, which is what Authorizer returned for its
	// request. A Deny of the verb of the
	// request denies the request, whatever else the user holds. An error means that the conditions are not known. A nil func means that
	// there are none.
	Conditional func(write *Write, then fieldperm.Authorizer) (Conditions, error)
	Limits      fieldperm.Limits

	// conditionsOnly means that another authorizer is asked for the generic permission: only conditions can allow generic verbs.
	conditionsOnly bool
}

// Result is a decision with the changes that it covers.
type Result struct {
	fieldperm.Decision
	// Requirements are the changes, in the order of Decision.CoveredBy; empty for DELETE.
	Requirements []fieldperm.Requirement
	// Message is the text of the denial (P5), "" if the request is allowed.
	Message string
}

// Review decides on one request. A dry run is decided like the real request (P6).
//
// An error is not a denial. Code returns its HTTP code: 400 for a request that can never be decided, 503 for one that the client should
// try again, 500 for all others.
func (r *Reviewer) Review(ctx context.Context, endpoint Endpoint, req *admissionv1.AdmissionRequest) (*Result, error) {
	return r.ReviewDecoded(ctx, endpoint, FromRequest(req))
}

// ReviewDecoded is Review for a request that is already decoded.
func (r *Reviewer) ReviewDecoded(ctx context.Context, at Endpoint, in *DecodedReview) (*Result, error) {
	req := in.Request
	if at != Granular && at != Uncovered {
		return nil, badRequest("endpoint %q is not known: use %q or %q", at, Granular, Uncovered)
	}
	if err := r.check(req); err != nil {
		return nil, err
	}
	if at == Uncovered && OnFloor(req) {
		// The review stops here, before the schema of the kind is used, because that schema may not be known.
		return &Result{Decision: fieldperm.Decision{Allowed: true, Mode: fieldperm.ModeNone}}, nil
	}
	if verb, only := onlyGeneric(req); only {
		return r.reviewGeneric(ctx, at, req, verb)
	}
	compiled, kind, err := r.kindOf(req)
	if err != nil {
		return nil, err
	}
	write := NewWrite(req, kind, nil)
	write.Endpoint = at
	if err := r.findChanges(ctx, write, in, barriersInForce(ctx, compiled, &write.read)); err != nil {
		return nil, err
	}
	generic := []string{"update", "patch"}
	if req.Operation == admissionv1.Create {
		generic = []string{"create"}
	}
	if kind.ShownAsRead() && !schema.IsScale(runtimeschema.GroupKind{Group: req.Kind.Group, Kind: req.Kind.Kind}) {
		write.object, write.old = in.object, in.oldObject
	}
	// A condition may have let a request in that the marker does not (A2).
	of := RequestedResource(req)
	return r.decide(ctx, write, fieldperm.Review{
		Generic: generic, Requirements: write.Changes, UncoveredOnly: at == Uncovered, GenericOnly: !endpoint.TakesMarker(of.Group, of.Resource, of.Subresource),
	})
}

// kindOf returns the schema in force, and the kind of a request in it.
func (r *Reviewer) kindOf(req *admissionv1.AdmissionRequest) (*schema.Schema, *schema.Kind, error) {
	compiled := r.schema()
	if compiled == nil {
		return nil, nil, unavailable("permission schema: is not loaded yet: try again, and look at /readyz if it stays so")
	}
	gvk := runtimeschema.GroupVersionKind{Group: req.Kind.Group, Version: req.Kind.Version, Kind: req.Kind.Kind}
	kind, err := compiled.KindFor(gvk, RequestedResource(req))
	if err == nil {
		kind, err = through(kind, compiled, req)
	}
	if err != nil {
		// The barriers of such a kind are unknown, so every request is refused, whatever verbs the user holds.
		if errors.Is(err, schema.ErrUnknownKind) {
			return nil, nil, unavailable("%w; if it was installed just now, try again", err)
		}
		return nil, nil, unavailable("%w; correct the document, then try again", err)
	}
	return compiled, kind, nil
}

// findChanges compares the objects of a request, and gives the write its changes.
func (r *Reviewer) findChanges(ctx context.Context, write *Write, in *DecodedReview, barriers schema.VerbSet) error {
	kind := write.read.kind
	diffing, span := startSpan(ctx, "diff")
	requirements, err := in.diff(diffing, kind, barriers)
	if span.IsRecording() {
		span.SetAttributes(spanChanges.Int(len(requirements)))
	}
	span.End()
	if err != nil {
		return err
	}
	write.Changes = ownersOfStatus(requirements, in.Request)
	if r.Conditional != nil {
		write.parts = func() ([]fieldperm.Requirement, error) {
			out, err := in.parts(ctx, kind, barriers)
			return ownersOfStatus(out, in.Request), err
		}
	}
	return nil
}

// decide asks for the verbs of the user, and renders the denial.
func (r *Reviewer) decide(ctx context.Context, write *Write, review fieldperm.Review) (*Result, error) {
	deciding, span := startSpan(ctx, "decide")
	defer span.End()
	authorizer, denied, err := r.authorizer(deciding, write, review.Generic)
	if err != nil || denied != nil {
		return denied, err
	}
	decision, err := fieldperm.Decide(deciding, authorizer, review, r.Limits)
	if span.IsRecording() { // The values take memory, also if nothing records them.
		span.SetAttributes(spanMode.String(string(decision.Mode)), spanAllowed.Bool(decision.Allowed), spanChecks.Int(len(decision.Checks)))
	}
	if err != nil {
		return nil, err
	}
	result := &Result{Decision: decision, Requirements: review.Requirements}
	if !decision.Allowed {
		req := write.Request
		decision.Denial.Unmet = unmet(authorizer, decision.Denial, decision.Checks)
		decision.Denial.Unattributed = fieldperm.Unattributed(req.Object.Raw, decision.Denial.Requirement)
		result.Message = denialMessage(decision.Denial, req)
	}
	return result, nil
}

// ownersOfStatus adjusts the requirements of a write of an object that changes owners in its status. Such a change needs a verb of the
// whole object, because verbs on the object do not count for its status. An API server changes owners in the status only in a write of
// the status.
func ownersOfStatus(requirements []fieldperm.Requirement, req *admissionv1.AdmissionRequest) []fieldperm.Requirement {
	isOwner := func(r fieldperm.Requirement) bool {
		return r.Operation == fieldperm.Ownership && r.Path.Top() == "status"
	}
	if req.SubResource != "" || !slices.ContainsFunc(requirements, isOwner) {
		return requirements
	}
	if _, ok := endpoint.Lookup(req.Resource.Group, req.Resource.Resource, "status"); !ok {
		return requirements
	}
	for i, r := range requirements {
		if !isOwner(r) {
			continue
		}
		if r.Barrier > 0 {
			requirements = append(requirements, r)
			r.Barrier = -1
		}
		r.Chain = r.Chain[:1:1]
		requirements[i] = r
	}
	return requirements
}

// check returns an error for a request that can never be decided.
func (r *Reviewer) check(req *admissionv1.AdmissionRequest) error {
	switch {
	case req == nil:
		return badRequest("admission review: has no request: send one with .request")
	case req.UserInfo.Username == "":
		return badRequest("admission request: names no user: send .request.userInfo.username")
	case req.Resource.Resource == "":
		return badRequest("admission request: names no resource: send .request.resource")
	case r.Authorizer == nil:
		return errors.New("reviewer: has no authorizer: configure one")
	}
	switch req.Operation {
	case admissionv1.Delete:
		return nil
	case admissionv1.Create:
		return present("object", req.Object.Raw)
	case admissionv1.Update:
		if err := present("oldObject", req.OldObject.Raw); err != nil {
			return err
		}
		return present("object", req.Object.Raw)
	case admissionv1.Connect:
		if ref := RequestedResource(req); !endpoint.IsConnection(ref.Group, ref.Resource, ref.Subresource) {
			return badRequest("admission request: CONNECT to %q: admission does not see the verb of such a connection: take it out of the webhook's rules", resourceName(req))
		}
		return present("object", req.Object.Raw)
	}
	return badRequest("admission request: operation %q is not known: send CREATE, UPDATE, DELETE or CONNECT", req.Operation)
}

func present(field string, raw []byte) error {
	if len(raw) == 0 || string(raw) == "null" {
		return badRequest("admission request: .request.%s is missing: send the whole object", field)
	}
	return nil
}

func (r *Reviewer) schema() *schema.Schema {
	if r.Schema == nil {
		return nil
	}
	return r.Schema()
}

// barriersInForce returns the barriers that refuse writes.
func barriersInForce(ctx context.Context, compiled *schema.Schema, read *objectReader) schema.VerbSet {
	return barriersFor(ctx, compiled, read, v1alpha1.ValidationDeny)
}

// barriersFor returns the barriers for the resource that the user addressed and for the resource that the webhook was asked about. They
// differ if a resource is served under several groups. A user that addresses the other name must meet the same barriers. The action selects
// the sets: Deny those that refuse writes, another one those that have it and do not.
func barriersFor(ctx context.Context, compiled *schema.Schema, read *objectReader, action v1alpha1.ValidationAction) schema.VerbSet {
	req := read.req
	if OnFloor(req) {
		return nil
	}
	refs := [2]schema.ResourceRef{{Group: req.Resource.Group, Resource: req.Resource.Resource, Subresource: req.SubResource}, RequestedResource(req)}
	fields := read.fields
	var out schema.VerbSet
	for i, ref := range refs {
		if i > 0 && ref == refs[0] {
			break
		}
		var set schema.VerbSet
		var err error
		if action == v1alpha1.ValidationDeny {
			set, err = compiled.Uncovered(ctx, ref, fields)
		} else {
			set, err = compiled.Tried(ctx, ref, fields, action)
		}
		if err != nil {
			klog.FromContext(ctx).Info("A match condition failed and counts as true", "err", err)
		}
		out = out.Plus(set)
	}
	return out
}

// through returns the kind with everything that a write in the version of the request can lose. If the rules of the webhook name another
// version, the API server sends a converted object, which does not show these parts.
func through(kind *schema.Kind, compiled *schema.Schema, req *admissionv1.AdmissionRequest) (*schema.Kind, error) {
	if req.RequestKind == nil || *req.RequestKind == req.Kind {
		return kind, nil
	}
	sent, err := compiled.Kind(runtimeschema.GroupVersionKind{Group: req.RequestKind.Group, Version: req.RequestKind.Version, Kind: req.RequestKind.Kind})
	if err != nil {
		return nil, err
	}
	return kind.Through(sent), nil
}

// RequestedResource returns the resource that the client addressed, which is the one that the API server authorized. req.Resource differs
// from it if the rules of the webhook name another group or version of the same objects.
func RequestedResource(req *admissionv1.AdmissionRequest) schema.ResourceRef {
	if sent := req.RequestResource; sent != nil {
		return schema.ResourceRef{Group: sent.Group, Version: sent.Version, Resource: sent.Resource, Subresource: req.RequestSubResource}
	}
	return schema.ResourceRef{Group: req.Resource.Group, Version: req.Resource.Version, Resource: req.Resource.Resource, Subresource: req.SubResource}
}
