package rbac

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/tools/cache"
)

// search looks for a binding that allows the request.
type search struct {
	index *index
	user  user.Info
	asked question

	// by is the binding that allows the request, because of subject. subject is nil until one is found.
	by      binding
	subject *rbacv1.Subject

	// missing has one error for each role that is bound but does not exist.
	missing []error
}

// authorize decides like an API server with the objects of the index: Allow or NoOpinion. The reason of NoOpinion names the roles
// that the user's bindings refer to but that do not exist. A ClusterRoleBinding precedes a RoleBinding. In an API server, chance
// decides which of several bindings the reason names, and the order of missing roles. Here it is the first by name, so that the
// same request always gets the same reason.
func (x *index) authorize(u user.Info, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if x == nil || u == nil {
		return authorizer.DecisionNoOpinion, "", nil
	}
	s := search{index: x, user: u, asked: ask(a)}
	if err := s.bindings(x.clusterRoleBindings, ""); err != nil {
		return authorizer.DecisionDeny, "", err
	}
	if namespace := a.GetNamespace(); namespace != "" && s.subject == nil {
		if err := s.bindings(x.roleBindings, namespace); err != nil {
			return authorizer.DecisionDeny, "", err
		}
	}
	if s.subject != nil {
		return authorizer.DecisionAllow, allowedBy(&s.by, s.subject), nil
	}
	return authorizer.DecisionNoOpinion, notFound(s.missing), nil
}

// bindings looks at the bindings of a namespace, or at ClusterRoleBindings if it is "", that name the user or one of its groups. A
// binding that names both is looked at twice, which does not change the result.
func (s *search) bindings(store cache.Indexer, namespace string) error {
	if err := s.bindingsOf(store, namespace, byUser, s.user.GetName()); err != nil {
		return err
	}
	for _, group := range s.user.GetGroups() {
		if err := s.bindingsOf(store, namespace, byGroup, group); err != nil {
			return err
		}
	}
	return nil
}

func (s *search) bindingsOf(store cache.Indexer, namespace, by, name string) error {
	objects, err := store.ByIndex(by, subjectKey(namespace, name))
	if err != nil {
		return fmt.Errorf("RBAC: %w", err)
	}
	for _, object := range objects {
		if b := bindingOf(object); b.namespace == namespace {
			s.consider(&b)
		}
	}
	return nil
}

func (s *search) consider(b *binding) {
	if s.subject != nil && b.name >= s.by.name {
		return
	}
	// The reason names the first subject of the binding that matches the user, whichever index entry led to the binding.
	subject := appliesTo(b.subjects, s.user, b.namespace)
	if subject == nil {
		return
	}
	rules, err := s.index.rules(b)
	if err != nil {
		s.missing = append(s.missing, err)
		return
	}
	for i := range rules {
		if allows(&rules[i], &s.asked) {
			s.by, s.subject = *b, subject
			return
		}
	}
}

// allowedBy returns the reason of an Allow.
func allowedBy(b *binding, subject *rbacv1.Subject) string {
	out := make([]byte, 0, 256)
	out = b.appendTitle(append(out, "RBAC: allowed by "...))
	out = append(append(append(out, " of "...), b.role.Kind...), ' ')
	out = append(strconv.AppendQuote(out, b.role.Name), " to "...)
	name := subject.Name
	if subject.Kind == rbacv1.ServiceAccountKind {
		name += "/" + accountNamespace(subject, b.namespace)
	}
	return string(strconv.AppendQuote(append(append(out, subject.Kind...), ' '), name))
}

// notFound returns the reason of a NoOpinion. An API server aggregates the errors, which drops equal ones.
func notFound(missing []error) string {
	if len(missing) == 0 {
		return ""
	}
	slices.SortFunc(missing, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return "RBAC: " + utilerrors.NewAggregate(missing).Error()
}
