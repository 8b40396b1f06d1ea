package rbac

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
)

// Authenticated returns the user with the group that an API server adds to every authenticated user: system:authenticated. It adds
// nothing to an anonymous user, or if the groups already say whether the user is authenticated.
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

// appliesTo returns the first subject that matches the user. namespace is the binding's, "" for a ClusterRoleBinding. A
// ServiceAccount without a namespace is in the binding's namespace.
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
