package diagnosis

import (
	"cmp"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/internal/rbac"
	"github.com/fieldperm/fieldperm/verbs"
)

// Question is whether a holder of the marker is let through to a resource.
type Question struct {
	User        string
	Groups      []string
	Resource    runtimeschema.GroupResource
	Subresource string
	// Namespace is "" for a grant in all namespaces.
	Namespace string
}

// askedUser is the user of a question about a group. It holds what the group holds.
const askedUser = "fieldperm:status"

// maxQuestions bounds the requests to the cluster.
const maxQuestions = 50

// Questions returns a question for each resource on which a subject holds the marker and not the generic permission by the same role. There
// are maxQuestions at most. A user with the generic permission by another role is let through without a proof, and the answer shows that.
func Questions(grants *rbac.Grants) []Question {
	q := questions{seen: map[string]int{}}
	for _, b := range grants.Bound() {
		q.add(b.Rules, b.Subjects, b.Namespace)
	}
	slices.SortStableFunc(q.out, func(a, b Question) int { return cmp.Compare(a.Name(), b.Name()) })
	return q.out
}

type questions struct {
	out []Question
	// seen counts the questions about a resource. Two subjects are enough: one may have the generic permission elsewhere.
	seen map[string]int
}

func (q *questions) add(rules []rbacv1.PolicyRule, subjects []rbacv1.Subject, namespace string) {
	for _, rule := range rules {
		if !slices.Contains(rule.Verbs, verbs.Marker) || len(rule.ResourceNames) > 0 || slices.ContainsFunc(rule.Verbs, isGeneric) {
			continue
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, s := range subjects {
					q.one(s, group, resource, namespace)
				}
			}
		}
	}
}

func isGeneric(verb string) bool { return verb == "update" || verb == "patch" || verb == "*" }

func (q *questions) one(s rbacv1.Subject, group, resource, namespace string) {
	if group == "*" {
		group = ""
	}
	question := Question{Namespace: namespace}
	question.Resource, question.Subresource = split(resource)
	question.Resource.Group = group
	if question.Resource.Resource == "*" {
		// Every cluster has these, and fieldperm-webhook knows them.
		if group != "" || question.Subresource != "" {
			return
		}
		question.Resource.Resource = "configmaps"
	}
	switch s.Kind {
	case rbacv1.UserKind:
		question.User, question.Groups = s.Name, []string{"system:authenticated"}
	case rbacv1.GroupKind:
		question.User, question.Groups = askedUser, []string{s.Name, "system:authenticated"}
	case rbacv1.ServiceAccountKind:
		question.User = "system:serviceaccount:" + s.Namespace + ":" + s.Name
		question.Groups = []string{"system:serviceaccounts", "system:serviceaccounts:" + s.Namespace, "system:authenticated"}
	default:
		return
	}
	key := question.Resource.String() + "/" + question.Subresource
	if q.seen[key]++; q.seen[key] <= 2 && len(q.out) < maxQuestions {
		q.out = append(q.out, question)
	}
}

func split(resource string) (of runtimeschema.GroupResource, subresource string) {
	for i, c := range resource {
		if c == '/' {
			return runtimeschema.GroupResource{Resource: resource[:i]}, resource[i+1:]
		}
	}
	return runtimeschema.GroupResource{Resource: resource}, ""
}

// Name returns the resource as an API server writes it: deployments.apps/scale.
func (q *Question) Name() string {
	if q.Subresource != "" {
		return q.Resource.String() + "/" + q.Subresource
	}
	return q.Resource.String()
}
