package observation

import (
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/schema"
)

// The kinds of subjects, as in RBAC.
const (
	userKind           = "User"
	groupKind          = "Group"
	serviceAccountKind = "ServiceAccount"
)

// subjects are the users and groups of an observation, by the names that an API server authenticates.
type subjects struct{ users, groups []string }

func subjectsOf(spec *v1alpha1.PermissionObservationSpec) subjects {
	var out subjects
	for _, s := range spec.Subjects {
		switch s.Kind {
		case userKind:
			out.users = append(out.users, s.Name)
		case groupKind:
			out.groups = append(out.groups, s.Name)
		case serviceAccountKind:
			out.users = append(out.users, "system:serviceaccount:"+s.Namespace+":"+s.Name)
		}
	}
	return out
}

func (s subjects) include(user *authenticationv1.UserInfo) bool {
	return slices.Contains(s.users, user.Username) || slices.ContainsFunc(user.Groups, func(group string) bool { return slices.Contains(s.groups, group) })
}

// covers reports whether rules name a resource. A resource stands for its subresources, too.
func covers(rules []v1alpha1.ResourceRule, ref schema.ResourceRef) bool {
	for _, rule := range rules {
		if !slices.Contains(rule.APIGroups, "*") && !slices.Contains(rule.APIGroups, ref.Group) {
			continue
		}
		for _, name := range rule.Resources {
			resource, subresource, single := strings.Cut(name, "/")
			if (resource == "*" || resource == ref.Resource) && (!single || subresource == "*" || subresource == ref.Subresource) {
				return true
			}
		}
	}
	return false
}
