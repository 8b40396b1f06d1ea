package rbac

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
)

// Authenticated returns the user with the group that an API server gives to whoever is
// authenticated: system:authenticated, unless the user is anonymous, or the groups say already
// whether it is authenticated.
func Authenticated(u user.Info) user.Info {
	groups := u.GetGroups()
	if u.GetName() == user.Anonymous || slices.Contains(groups, user.AllAuthenticated) || slices.Contains(groups, user.AllUnauthenticated) {
		return u
	}
	return &user.DefaultInfo{
		Name:   u.GetName(),
		UID:    u.GetUID(),
		Groups: append(slices.Clone(groups), user.AllAuthenticated),
		Extra:  u.GetExtra(),
	}
}

// appliesTo returns the first subject that the user is. The namespace is the binding's, "" for a
// ClusterRoleBinding: a ServiceAccount without a namespace is one of the binding's namespace.
func appliesTo(subjects []rbacv1.Subject, u user.Info, namespace string) *rbacv1.Subject {
	for i := range subjects {
		s := &subjects[i]
		is := false
		switch s.Kind {
		case rbacv1.UserKind:
			is = s.Name == u.GetName()
		case rbacv1.GroupKind:
			is = slices.Contains(u.GetGroups(), s.Name)
		case rbacv1.ServiceAccountKind:
			home := accountNamespace(s, namespace)
			is = home != "" && serviceaccount.MatchesUsername(home, s.Name, u.GetName())
		}
		if is {
			return s
		}
	}
	return nil
}

func accountNamespace(s *rbacv1.Subject, namespace string) string {
	if s.Namespace != "" {
		return s.Namespace
	}
	return namespace
}
