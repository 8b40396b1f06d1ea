package rbac

import (
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Grants are the RBAC objects to decide by, in the order in which they were read. The zero Grants allow nothing.
type Grants struct {
	Roles               []rbacv1.Role
	ClusterRoles        []rbacv1.ClusterRole
	RoleBindings        []rbacv1.RoleBinding
	ClusterRoleBindings []rbacv1.ClusterRoleBinding
}

// add adds an object, and reports whether it is of one of the four kinds.
func (g *Grants) add(object runtime.Object) bool {
	switch o := object.(type) {
	case *rbacv1.Role:
		g.Roles = append(g.Roles, *o)
	case *rbacv1.ClusterRole:
		g.ClusterRoles = append(g.ClusterRoles, *o)
	case *rbacv1.RoleBinding:
		g.RoleBindings = append(g.RoleBindings, *o)
	case *rbacv1.ClusterRoleBinding:
		g.ClusterRoleBindings = append(g.ClusterRoleBindings, *o)
	default:
		return false
	}
	return true
}

// Append adds the objects of more after those of g.
func (g *Grants) Append(more Grants) {
	g.Roles = append(g.Roles, more.Roles...)
	g.ClusterRoles = append(g.ClusterRoles, more.ClusterRoles...)
	g.RoleBindings = append(g.RoleBindings, more.RoleBindings...)
	g.ClusterRoleBindings = append(g.ClusterRoleBindings, more.ClusterRoleBindings...)
}

// Validate returns an error for objects that an API server would not store, because they would have no effect or not the intended
// one. Two objects with the same name are an error too: a cluster has only one of them.
func (g *Grants) Validate() error {
	seen := map[string]bool{}
	once := func(kind string, o *metav1.ObjectMeta) error {
		if o.Name == "" {
			return fmt.Errorf("%s: has no name: give it a metadata.name", kind)
		}
		name := kind + " " + o.Namespace + "/" + o.Name
		if seen[name] {
			return fmt.Errorf("%s: is given twice: remove one", title(kind, o))
		}
		seen[name] = true
		return nil
	}
	namespaced := func(kind string, o *metav1.ObjectMeta) error {
		if o.Namespace == "" && o.Name != "" {
			return fmt.Errorf("%s %q: has no namespace: give it a metadata.namespace", kind, o.Name)
		}
		return once(kind, o)
	}
	for i := range g.Roles {
		r := &g.Roles[i]
		if err := namespaced("Role", &r.ObjectMeta); err != nil {
			return err
		}
		if err := validateRules(r.Rules, true); err != nil {
			return fmt.Errorf("%s: %w", title("Role", &r.ObjectMeta), err)
		}
	}
	for i := range g.ClusterRoles {
		r := &g.ClusterRoles[i]
		if err := once("ClusterRole", &r.ObjectMeta); err != nil {
			return err
		}
		if err := validateRules(r.Rules, false); err != nil {
			return fmt.Errorf("ClusterRole %q: %w", r.Name, err)
		}
		if err := validateAggregation(r.AggregationRule); err != nil {
			return fmt.Errorf("ClusterRole %q: %w", r.Name, err)
		}
	}
	for i := range g.RoleBindings {
		b := &g.RoleBindings[i]
		if err := namespaced("RoleBinding", &b.ObjectMeta); err != nil {
			return err
		}
		if err := validateBinding(b.RoleRef, b.Subjects, "Role", "ClusterRole"); err != nil {
			return fmt.Errorf("%s: %w", title("RoleBinding", &b.ObjectMeta), err)
		}
	}
	for i := range g.ClusterRoleBindings {
		b := &g.ClusterRoleBindings[i]
		if err := once("ClusterRoleBinding", &b.ObjectMeta); err != nil {
			return err
		}
		if err := validateBinding(b.RoleRef, b.Subjects, "ClusterRole"); err != nil {
			return fmt.Errorf("ClusterRoleBinding %q: %w", b.Name, err)
		}
		for j, s := range b.Subjects {
			if s.Kind == rbacv1.ServiceAccountKind && s.Namespace == "" {
				return fmt.Errorf("ClusterRoleBinding %q: subjects[%d]: ServiceAccount %q has no namespace: name it", b.Name, j, s.Name)
			}
		}
	}
	return nil
}

// title returns the beginning of an error about an object.
func title(kind string, o *metav1.ObjectMeta) string {
	name := o.Name
	if o.Namespace != "" {
		name = o.Namespace + "/" + o.Name
	}
	return fmt.Sprintf("%s %q", kind, name)
}

func validateRules(rules []rbacv1.PolicyRule, namespaced bool) error {
	for i, r := range rules {
		fault := ""
		switch {
		case len(r.Verbs) == 0:
			fault = "has no verbs: name at least one"
		case len(r.NonResourceURLs) > 0 && namespaced:
			fault = "has nonResourceURLs, which no namespace has: move the rule to a ClusterRole"
		case len(r.NonResourceURLs) > 0 && len(r.APIGroups)+len(r.Resources)+len(r.ResourceNames) > 0:
			fault = "has both nonResourceURLs and resources: make it two rules"
		case len(r.NonResourceURLs) == 0 && len(r.APIGroups) == 0:
			fault = `has no apiGroups: name them; the core group is ""`
		case len(r.NonResourceURLs) == 0 && len(r.Resources) == 0:
			fault = "has no resources: name at least one"
		}
		if fault != "" {
			return fmt.Errorf("rules[%d] %s", i, fault)
		}
	}
	return nil
}

func validateAggregation(rule *rbacv1.AggregationRule) error {
	if rule == nil {
		return nil
	}
	if len(rule.ClusterRoleSelectors) == 0 {
		return fmt.Errorf("aggregationRule has no clusterRoleSelectors: give at least one")
	}
	for i := range rule.ClusterRoleSelectors {
		if _, err := metav1.LabelSelectorAsSelector(&rule.ClusterRoleSelectors[i]); err != nil {
			return fmt.Errorf("aggregationRule.clusterRoleSelectors[%d]: %w: correct the selector", i, err)
		}
	}
	return nil
}

func validateBinding(ref rbacv1.RoleRef, subjects []rbacv1.Subject, refKinds ...string) error {
	if ref.APIGroup != "" && ref.APIGroup != rbacv1.GroupName {
		return fmt.Errorf("roleRef: apiGroup %q has no roles: use %q", ref.APIGroup, rbacv1.GroupName)
	}
	if !slices.Contains(refKinds, ref.Kind) {
		return fmt.Errorf("roleRef: kind %q cannot be bound here: use one of %q", ref.Kind, refKinds)
	}
	if ref.Name == "" {
		return fmt.Errorf("roleRef: has no name: name the %s", ref.Kind)
	}
	for i, s := range subjects {
		group := rbacv1.GroupName
		switch s.Kind {
		case rbacv1.UserKind, rbacv1.GroupKind:
		case rbacv1.ServiceAccountKind:
			group = ""
		default:
			return fmt.Errorf("subjects[%d]: kind %q is no subject: use User, Group or ServiceAccount", i, s.Kind)
		}
		if s.Name == "" {
			return fmt.Errorf("subjects[%d]: %s has no name: name it", i, s.Kind)
		}
		// The group may be empty: the API server sets it.
		if s.APIGroup != "" && s.APIGroup != group {
			return fmt.Errorf("subjects[%d]: apiGroup %q has no %s: use %q", i, s.APIGroup, s.Kind, group)
		}
	}
	return nil
}
