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

// search looks for a binding that allows what is asked.
type search struct {
	index *index
	user  user.Info
	asked question

	// by is the binding that allows it, for the sake of subject, which is nil while there is none.
	by      binding
	subject *rbacv1.Subject

	// missing has an error for each role that is bound and does not exist.
	missing []error
}

// authorize answers as an API server does that has the objects of the index: Allow, or NoOpinion, whose
// reason names the roles that the user's bindings refer to but that do not exist. A ClusterRoleBinding
// goes before a RoleBinding. Which of several it is that a reason names, and the order of missing roles,
// are by chance in an API server; here the first by name, so that the same question has the same answer.
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

// bindings looks at the bindings of a namespace, or at ClusterRoleBindings if it is "", that name the
// user or one of its groups. One that names both is looked at twice, which changes nothing.
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
	// The reason names the first of the binding's subjects that the user is, however it was found.
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

// allowedBy is the reason of an Allow.
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

// notFound is the reason of a NoOpinion. An API server aggregates the errors, which leaves out those
// that say the same.
func notFound(missing []error) string {
	if len(missing) == 0 {
		return ""
	}
	slices.SortFunc(missing, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return "RBAC: " + utilerrors.NewAggregate(missing).Error()
}
