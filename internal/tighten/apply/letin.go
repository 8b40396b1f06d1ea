package apply

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/fieldperm/fieldperm/internal/tighten"
	"github.com/fieldperm/fieldperm/verbs"
)

// mostQuestions is how many rules are asked about.
const mostQuestions = 5

// proveLetIn asks kube-apiserver whether it lets the writes of the subject in by the marker. It does not if fieldperm is no authorizer of
// it, or if enforcement is not proven. Then the subject could write nothing, so update and patch are given back at once.
func (c *Client) proveLetIn(ctx context.Context, p *tighten.Proposal, st *stored, options *Options) error {
	for _, attributes := range questions(p, options.Version) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: p.Subject.Username(), Groups: append(p.Subject.Groups(), options.Groups...), ResourceAttributes: attributes,
		}}
		if p.Subject.Kind == rbacv1.GroupKind {
			review.Spec.User, review.Spec.Groups = "fieldperm:tighten", append(review.Spec.Groups, p.Subject.Name)
		}
		var status authorizationv1.SubjectAccessReviewStatus
		err := wait.PollUntilContextTimeout(ctx, 500*time.Millisecond, c.LetIn, true, func(ctx context.Context) (bool, error) {
			answer, err := c.RBAC.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
			if err != nil {
				return false, err
			}
			status = answer.Status
			// RBAC may still know the old rules.
			return status.Allowed && strings.HasPrefix(status.Reason, verbs.Prefix), nil
		})
		if err == nil || wait.Interrupted(err) && status.Allowed {
			continue
		}
		cause := fmt.Errorf("kube-apiserver does not let %q update %s by the marker (%s): look at fieldperm's enforcement, on a managed control plane granular users are not possible", p.Subject, resourceOf(attributes), reasonOf(status))
		if !wait.Interrupted(err) {
			cause = fmt.Errorf("SubjectAccessReview: %w", err)
		}
		if _, undone := c.restore(context.WithoutCancel(ctx), st, false); undone != nil {
			return errors.Join(cause, fmt.Errorf("update and patch could not be given back: %w: run with --undo", undone))
		}
		return fmt.Errorf("update and patch were given back: %w", cause)
	}
	return nil
}

func resourceOf(a *authorizationv1.ResourceAttributes) tighten.Resource {
	name := a.Resource
	if a.Subresource != "" {
		name += "/" + a.Subresource
	}
	return tighten.Resource{Group: a.Group, Name: name}
}

func reasonOf(status authorizationv1.SubjectAccessReviewStatus) string {
	for _, text := range []string{status.EvaluationError, status.Reason} {
		if text != "" {
			return text
		}
	}
	return "no authorizer allows it"
}

// questions are updates that granular rules of the proposal let in.
func questions(p *tighten.Proposal, version func(r tighten.Resource) string) []*authorizationv1.ResourceAttributes {
	var out []*authorizationv1.ResourceAttributes
	ask := func(meta *metav1.ObjectMeta, rules []rbacv1.PolicyRule) {
		if meta.Annotations[tighten.SourceAnnotation] != "" {
			return
		}
		for i := range rules {
			if len(out) == mostQuestions {
				return
			}
			r := tighten.Resource{Group: rules[i].APIGroups[0], Name: rules[i].Resources[0]}
			a := &authorizationv1.ResourceAttributes{Verb: "update", Group: r.Group, Namespace: meta.Namespace}
			a.Resource, a.Subresource = r.Split()
			if version != nil {
				a.Version = version(r)
			}
			if len(rules[i].ResourceNames) > 0 {
				a.Name = rules[i].ResourceNames[0]
			}
			out = append(out, a)
		}
	}
	for i := range p.Add.ClusterRoles {
		ask(&p.Add.ClusterRoles[i].ObjectMeta, p.Add.ClusterRoles[i].Rules)
	}
	for i := range p.Add.Roles {
		ask(&p.Add.Roles[i].ObjectMeta, p.Add.Roles[i].Rules)
	}
	return out
}
