package corpus

import (
	"bytes"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/fieldperm/fieldperm/verbs"
)

// PolicyRules returns the user's grants as rules of RBAC. Who may write a part of an object may read it: without get nobody is let in to update
// or patch (A7), and no scenario is about that.
func (s *Scenario) PolicyRules(user string) []rbacv1.PolicyRule {
	var out []rbacv1.PolicyRule
	for _, grant := range s.Users[user].May {
		rule := rbacv1.PolicyRule{Verbs: grant.Verbs, APIGroups: []string{s.Resource.Group}, Resources: grant.Resources}
		if grant.Group != nil {
			rule.APIGroups = []string{*grant.Group}
		}
		if len(grant.Resources) == 0 {
			rule.Resources = []string{s.Resource.Resource}
		}
		if slices.Contains(rule.Verbs, verbs.Marker) {
			rule.Verbs = append(slices.Clone(rule.Verbs), "get")
		}
		out = append(out, rule)
	}
	return out
}

// Grants returns a role and its binding for every user with permissions: cluster-wide if the objects are cluster-scoped, otherwise in the
// namespace.
func (s *Scenario) Grants() []any {
	var out []any
	for _, name := range sortedNames(s.Users) {
		rules := s.PolicyRules(name)
		if len(rules) == 0 {
			continue
		}
		meta := metav1.ObjectMeta{Name: s.Name + "-" + strings.NewReplacer(":", "-", "@", "-").Replace(name), Namespace: s.Namespace()}
		subjects := []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: name}}
		version := rbacv1.SchemeGroupVersion.String()
		if s.ClusterScoped {
			out = append(out,
				&rbacv1.ClusterRole{TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: "ClusterRole"}, ObjectMeta: meta, Rules: rules},
				&rbacv1.ClusterRoleBinding{
					TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: "ClusterRoleBinding"}, ObjectMeta: meta, Subjects: subjects,
					RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
				})
			continue
		}
		out = append(out,
			&rbacv1.Role{TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: "Role"}, ObjectMeta: meta, Rules: rules},
			&rbacv1.RoleBinding{
				TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: "RoleBinding"}, ObjectMeta: meta, Subjects: subjects,
				RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
			})
	}
	return out
}

// GrantsYAML returns Grants as a file that kubectl apply and kubectl-fieldperm take.
func (s *Scenario) GrantsYAML() ([]byte, error) {
	var out bytes.Buffer
	for _, object := range s.Grants() {
		document, err := yaml.Marshal(object)
		if err != nil {
			return nil, err
		}
		out.WriteString("---\n")
		out.Write(document)
	}
	return out.Bytes(), nil
}

func sortedNames[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for name := range m {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}
