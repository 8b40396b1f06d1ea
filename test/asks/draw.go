package asks

import (
	"fmt"
	"math/rand/v2"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
)

// User is a user who writes.
type User struct {
	Name   string
	Groups []string
	// Subject is the user as a subject of a binding.
	Subject rbacv1.Subject
}

// users is the number of drawn users. Every fifth is a service account, every fourth is in a group.
const users = 20

// Users returns the users of the test.
func Users() []User {
	var out []User
	for i := range users {
		if i%5 == 4 {
			name := fmt.Sprintf("bot-%d", i)
			out = append(out, User{
				serviceaccount.MakeUsername(Namespace, name), serviceaccount.MakeGroupNames(Namespace),
				rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: Namespace, Name: name},
			})
			continue
		}
		u := User{Name: fmt.Sprintf("user-%d", i)}
		if i%4 == 3 {
			u.Groups = []string{"team"}
		}
		u.Subject = rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: u.Name}
		out = append(out, u)
	}
	return out
}

// granted are the verbs that are drawn. Some exist for no field of the resource, and some for none at all.
var granted = []string{
	"update", "update", "patch", "*", "granular:*", "granular:*", "granular:metadata", "granular:labels", "granular:label(example.com)", "granular:annotations",
	"granular:annotation(example.com)", "granular:specification", "granular:specification", "granular:scale", "granular:scale", "granular:template", "granular:containers",
	"granular:container(web)", "granular:image", "granular:image(web)", "granular:image(side)", "granular:image(w)", "granular:data", "granular:data", "granular:example.com/size",
	"granular:example.com/danger", "granular:example.com/tags", "granular:example.com/tag(a)", "granular:example.com/lock", "granular:example.com/host", "granular:scal", "Granular:scale", "granularity",
}

// Grants draws Roles and bindings of a round.
func Grants(r *rand.Rand, round int, all []User) []any {
	var out []any
	add := func(rule rbacv1.PolicyRule, subjects ...rbacv1.Subject) {
		name := fmt.Sprintf("round-%d-%d", round, len(out))
		meta := metav1.ObjectMeta{Name: name, Labels: map[string]string{"asks": "drawn"}}
		ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}
		namespace := Namespace
		if r.IntN(12) == 0 {
			namespace = "default" // It grants nothing about the objects.
		}
		switch r.IntN(3) {
		case 0:
			out = append(out, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{rule}}, &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects})
		case 1:
			meta.Namespace = namespace
			clusterWide := metav1.ObjectMeta{Name: name, Labels: meta.Labels}
			out = append(out, &rbacv1.ClusterRole{ObjectMeta: clusterWide, Rules: []rbacv1.PolicyRule{rule}}, &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects})
		default:
			meta.Namespace, ref.Kind = namespace, "Role"
			out = append(out, &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{rule}}, &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects})
		}
	}
	team := rbacv1.Subject{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "team"}
	for _, u := range all {
		for range 1 + r.IntN(3) {
			rule := ruleOf(r)
			if r.IntN(3) > 0 {
				rule.Verbs = append(rule.Verbs, "granular")
			}
			subjects := []rbacv1.Subject{u.Subject}
			if r.IntN(15) == 0 {
				subjects = append(subjects, team)
			}
			add(rule, subjects...)
		}
		if r.IntN(4) == 0 { // The marker in a rule of its own.
			rule := ruleOf(r)
			rule.Verbs = []string{"granular"}
			add(rule, u.Subject)
		}
	}
	everyone := rbacv1.Subject{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: []string{"system:authenticated", "system:serviceaccounts", "system:serviceaccounts:shop"}[r.IntN(3)]}
	add(rbacv1.PolicyRule{Verbs: []string{[]string{"granular", "granular:annotations", "granular:data"}[r.IntN(3)]}, APIGroups: []string{"*"}, Resources: []string{"*"}}, everyone)
	return out
}

func ruleOf(r *rand.Rand) rbacv1.PolicyRule {
	rule := rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}}
	switch r.IntN(4) {
	case 0:
		rule.APIGroups, rule.Resources = []string{"apps"}, []string{"deployments"}
	case 1:
		rule.APIGroups, rule.Resources = []string{"", "example.com"}, []string{"configmaps", "gadgets"}
	case 2:
		if r.IntN(3) == 0 {
			rule.ResourceNames = []string{[]string{"web", "one", "colours", "other"}[r.IntN(4)]}
		}
	default:
		if r.IntN(4) == 0 {
			rule.Resources = []string{"deployments/scale", "*/status"}
		}
	}
	for range 1 + r.IntN(4) {
		if verb := granted[r.IntN(len(granted))]; !slices.Contains(rule.Verbs, verb) {
			rule.Verbs = append(rule.Verbs, verb)
		}
	}
	return rule
}

// documents are PermissionSchemas, UncoveredPermissionSets and ConditionalPolicies of fieldperm.dev/v1alpha1: kind and specification.
var documents = [][2]string{
	{"PermissionSchema", `{group: "", kind: ConfigMap, permissions: [{path: '.data["locked"]', verb: example.com/lock, excluded: true}]}`},
	{"PermissionSchema", `{group: apps, kind: Deployment, permissions: [{path: .spec.template.spec.hostNetwork, verb: example.com/host, excludedWhen: self == true}]}`},
	{"UncoveredPermissionSet", `{uncoveredPermissions: ['granular:scale'], resources: [{apiGroups: [apps], resources: [deployments]}]}`},
	{"UncoveredPermissionSet", `{uncoveredPermissions: ['granular:image'], resources: [{apiGroups: [apps], resources: [deployments]}], matchConditions: [{name: others, expression: 'request.userInfo.username != "user-1"'}]}`},
	{"UncoveredPermissionSet", `{uncoveredPermissions: ['granular:label(example.com)'], resources: [{apiGroups: [apps], resources: [deployments]}]}`},
	{"ConditionalPolicy", `{subjects: [{kind: User, name: user-0}, {kind: User, name: user-2}, {kind: Group, name: 'system:serviceaccounts'}], verbs: [update, patch], resources: [{apiGroups: [''], resources: [configmaps]}], effect: Allow, condition: 'object.data.wall == "red"'}`},
	{"ConditionalPolicy", `{subjects: [{kind: User, name: user-5}, {kind: Group, name: team}], verbs: ['granular:scale', 'granular:specification'], resources: [{apiGroups: [apps], resources: [deployments]}], effect: Allow, condition: 'object.spec.replicas < 5'}`},
	{"ConditionalPolicy", `{subjects: [{kind: Group, name: 'system:authenticated'}], verbs: [update, patch], resources: [{apiGroups: [example.com], resources: [gadgets]}], effect: Deny, condition: 'object.spec.color == "black"'}`},
}

// Documents draws objects of fieldperm. Their names are new in each round.
func Documents(r *rand.Rand, round int) []string {
	var out []string
	for i, d := range documents {
		if r.IntN(5) < 3 {
			out = append(out, fmt.Sprintf("{apiVersion: fieldperm.dev/v1alpha1, kind: %s, metadata: {name: round-%d-%d}, spec: %s}", d[0], round, i, d[1]))
		}
	}
	return out
}
