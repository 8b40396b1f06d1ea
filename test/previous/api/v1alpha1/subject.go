package v1alpha1

import "slices"

// Subject names users, in the way of the subjects of a RoleBinding.
//
// +kubebuilder:validation:XValidation:rule="(self.kind == 'ServiceAccount') == has(self.namespace)",message="a ServiceAccount has a namespace, a User and a Group have none: add or remove namespace"
type Subject struct {
	// kind is User, Group or ServiceAccount.
	// +required
	// +kubebuilder:validation:Enum=User;Group;ServiceAccount
	Kind string `json:"kind"`
	// name of the user, the group or the ServiceAccount.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Name string `json:"name"`
	// namespace of the ServiceAccount.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
}

// Subjects are users and groups by the names that an API server authenticates. The zero value includes nobody.
//
// +kubebuilder:object:generate=false
type Subjects struct{ Users, Groups []string }

// NewSubjects returns the users and groups that subjects name. A subject of an unknown kind names nobody.
func NewSubjects(subjects []Subject) Subjects {
	var out Subjects
	for _, s := range subjects {
		switch s.Kind {
		case "User":
			out.Users = append(out.Users, s.Name)
		case "Group":
			out.Groups = append(out.Groups, s.Name)
		case "ServiceAccount":
			out.Users = append(out.Users, "system:serviceaccount:"+s.Namespace+":"+s.Name)
		}
	}
	return out
}

// Include reports whether a user or one of its groups is one of the subjects.
func (s Subjects) Include(user string, groups []string) bool {
	return slices.Contains(s.Users, user) || slices.ContainsFunc(groups, func(group string) bool { return slices.Contains(s.Groups, group) })
}
