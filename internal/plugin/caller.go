package plugin

import (
	"context"
	"errors"
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/internal/authz"
	"github.com/fieldperm/fieldperm/internal/policies"
	"github.com/fieldperm/fieldperm/internal/review"
)

// conditionsOwn is what is not known without the ConditionalPolicies.
const conditionsOwn = "conditions of ConditionalPolicies"

// caller is the user that an answer is about, with all that decides its writes. What could not be read is in traced.missing: options.incomplete
// warns of it, and a decision without it may allow what the webhook refuses.
type caller struct {
	*traced
	user     user.Info
	chain    *authz.Chain
	policies *policies.Set
	// maxChecks is how many permission checks one request may cost.
	maxChecks int
}

// caller returns the user of --as, else that of the kubeconfig. The user of the kubeconfig is asked about by SelfSubjectAccessReviews, which need no
// permission, unless --authorization-config has other authorizers. Another user is asked about by SubjectAccessReviews. Files decide with --grants.
func (o *inquirer) caller(ctx context.Context) (*caller, error) {
	if o.offline() && o.as == "" {
		return nil, errors.New("--as is missing: name the user, because files decide about no user of a kubeconfig")
	}
	known, err := o.known(ctx)
	if err != nil {
		return nil, err
	}
	out := &caller{traced: known, maxChecks: o.maxChecks}
	if out.maxChecks == 0 {
		out.maxChecks = fieldperm.DefaultMaxChecks
	}
	if out.user, err = o.subject(ctx); err != nil {
		return nil, err
	}
	if out.chain, err = o.chainOf(ctx, out.user); err != nil {
		return nil, err
	}
	out.policies, err = o.policies(ctx)
	if err == nil {
		return out, nil
	}
	if o.offline() || ctx.Err() != nil {
		return nil, err
	}
	known.miss(conditionsOwn, err)
	known.rules = len(known.missing)
	if out.policies, _, err = policies.Files(ctx, o.policyFiles); err != nil {
		return nil, err
	}
	return out, nil
}

// chainOf returns a chain that answers for a user.
func (o *inquirer) chainOf(ctx context.Context, u user.Info) (*authz.Chain, error) {
	if o.as != "" || o.offline() || o.authorizationConfig != "" {
		// The hint at the namespace is for requests from files. It reads the namespace only.
		return o.chain(ctx, &admissionv1.AdmissionRequest{Namespace: "-"})
	}
	config, err := o.config()
	if err != nil {
		return nil, err
	}
	chain, err := authz.Self(config, u)
	if err != nil {
		return nil, fmt.Errorf("cluster: %w: correct --kubeconfig and --context, or %s", err, o.withoutCluster())
	}
	return chain, nil
}

// undecided names what could not be read and may refuse a write, "" if nothing may.
func (c *caller) undecided() string {
	var out []string
	for i := range c.missing {
		if !c.missing[i].OfKinds() {
			out = append(out, c.missing[i].What)
		}
	}
	return strings.Join(out, " and ")
}

// userInfo returns the user in the form of a request.
func (c *caller) userInfo() authenticationv1.UserInfo {
	out := authenticationv1.UserInfo{Username: c.user.GetName(), UID: c.user.GetUID(), Groups: c.user.GetGroups()}
	for key, values := range c.user.GetExtra() {
		if out.Extra == nil {
			out.Extra = map[string]authenticationv1.ExtraValue{}
		}
		out.Extra[key] = values
	}
	return out
}

// decide decides on a request of the caller, whatever user the request names. An error is not a denial.
func (c *caller) decide(ctx context.Context, request *admissionv1.AdmissionRequest) (*review.Report, error) {
	ofCaller := *request
	ofCaller.UserInfo = c.userInfo()
	if err := decidable(c.Snapshot, &ofCaller); err != nil {
		return nil, err
	}
	return review.Decide(ctx, c.reviewer(), &ofCaller, 0)
}

// reviewer returns the reviewer that decides as the webhooks do.
func (c *caller) reviewer() *admission.Reviewer {
	return reviewerOf(c.Schema, c.policies, c.chain, c.maxChecks)
}
