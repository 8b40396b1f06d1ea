package tighten

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const writer = `
{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: writer, namespace: shop}, rules: [{apiGroups: [apps], resources: [deployments], verbs: [get, update]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: writer, namespace: shop}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: writer}, subjects: [{kind: ServiceAccount, namespace: ops, name: operator}]}
`

// TestForeign: a binding of another that names a role to add, or one with the name of a binding to add and further subjects.
func TestForeign(t *testing.T) {
	objects := grants(t, writer)
	log := line("apps/deployments", "", "shop", "web", "granular:scale")
	p := propose(t, operator, objects, log)
	binding := func(name, role string, subjects ...rbacv1.Subject) rbacv1.RoleBinding {
		return rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, RoleRef: rbacv1.RoleRef{Kind: roleKind, Name: role}, Subjects: subjects}
	}
	added, mallory := p.Add.Roles[0].Name, rbacv1.Subject{Kind: rbacv1.UserKind, Name: "mallory"}
	elsewhere := binding("elsewhere", added, mallory)
	elsewhere.Namespace = "team"
	for name, test := range map[string]struct {
		binding rbacv1.RoleBinding
		foreign bool
	}{
		"of another":             {binding("planted", added, mallory), true},
		"without subjects":       {binding("planted", added), true},
		"the proposal's own":     {binding(added, added, p.Subject.RBAC()), false},
		"its own, and another":   {binding(added, added, p.Subject.RBAC(), mallory), true},
		"of another role":        {binding("planted", "writer", mallory), false},
		"in another namespace":   {elsewhere, false},
		"its name, another role": {binding(added, "writer", mallory), false},
	} {
		all := *objects
		all.RoleBindings = append([]rbacv1.RoleBinding{test.binding}, objects.RoleBindings...)
		got := Foreign(p, &all)
		if len(got) > 0 != test.foreign || len(got) > 0 && got[0] != (Binding{Ref{roleBindingKind, test.binding.Namespace, test.binding.Name}, Ref{roleKind, "shop", added}}) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestPropose_KeepsOnlyWhatTheSubjectHolds: a role that another has labelled adds no verbs.
func TestPropose_KeepsOnlyWhatTheSubjectHolds(t *testing.T) {
	s := mustSubject(t, operator)
	name := s.objectName("granular-")
	planted := strings.ReplaceAll(strings.ReplaceAll(`
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: NAME, namespace: shop, labels: {fieldperm.dev/tighten: ID}}, rules: [{apiGroups: [apps], resources: [deployments], verbs: [granular, 'granular:*']}]}
`, "NAME", name), "ID", s.ID())
	log := line("apps/deployments", "", "shop", "web", "granular:scale")
	if text := diffs(t, propose(t, operator, grants(t, writer+planted), log)); strings.Contains(text, "granular:*") {
		t.Error("the verbs of a role that the subject does not hold are proposed")
	}
	bound := planted + strings.ReplaceAll(`
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: any, namespace: shop}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: NAME}, subjects: [{kind: ServiceAccount, namespace: ops, name: operator}]}
`, "NAME", name)
	if text := diffs(t, propose(t, operator, grants(t, writer+bound), log)); !strings.Contains(text, "granular:*") {
		t.Error("the verbs of an earlier step are lost")
	}
}

// TestPropose_NamesEndWithTheSubject: of all objects to add. Names that are cut stay different.
func TestPropose_NamesEndWithTheSubject(t *testing.T) {
	shared := strings.Replace(writer, "subjects: [", "subjects: [{kind: User, name: jane}, ", 1)
	p := propose(t, operator, grants(t, shared), line("apps/deployments", "", "shop", "web", "granular:scale"))
	for _, o := range p.Added() {
		if !strings.HasSuffix(o.Ref.Name, "-"+p.Subject.shortID()) {
			t.Errorf("%s", o.Ref)
		}
	}
	long := strings.Repeat("a", nameLength)
	names := map[string]string{}
	for _, name := range []string{long + "b", long + "c", copyName(long+"b", "x"), "a", "a.", "a:", "a.:", "a-x"} {
		if of := copyName(name, "x"); names[of] == "" {
			names[of] = name
		} else {
			t.Errorf("%q and %q have the copy %s", name, names[of], of)
		}
	}
}

// TestC1_AnAggregatedClusterRoleGetsTheVerbsOfARoleThatItSelects: a controller writes the rules of a role to add into it.
func TestC1_AnAggregatedClusterRoleGetsTheVerbsOfARoleThatItSelects(t *testing.T) {
	objects := grants(t, bound(deployments, ""))
	p := propose(t, operator, objects, webLog)
	added := p.Add.ClusterRoles[0].Name
	live := `
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: ` + added + `, labels: {team: a}}, rules: []}
`
	for name, test := range map[string]struct {
		selectors, more string
		selects         bool
	}{
		"without a label":           {`{matchExpressions: [{key: restricted, operator: DoesNotExist}]}`, "", true},
		"everything":                {`{}`, "", true},
		"the label of the proposal": {`{matchLabels: {fieldperm.dev/tighten: ` + p.Subject.ID() + `}}`, "", true},
		"one of two":                {`{matchLabels: {team: a}}, {matchExpressions: [{key: fieldperm.dev/tighten, operator: Exists}]}`, "", true},
		"another label":             {`{matchLabels: {rbac.authorization.k8s.io/aggregate-to-admin: "true"}}`, "", false},
		"none of the proposals":     {`{matchExpressions: [{key: fieldperm.dev/tighten, operator: DoesNotExist}]}`, "", false},
		"a label that it has now":   {`{matchLabels: {team: a}}`, live, true},
		"a label that it has not":   {`{matchLabels: {team: b}}`, live, false},
	} {
		text := bound(deployments, "") + test.more + `
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: platform}, aggregationRule: {clusterRoleSelectors: [` + test.selectors + `]}, rules: []}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: platform, namespace: shop}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: platform}, subjects: [{kind: User, name: pat}]}
`
		got := Aggregating(p, grants(t, text))
		if !test.selects {
			if len(got) > 0 {
				t.Errorf("%s: %+v", name, got)
			}
			continue
		}
		if len(got) != 1 || got[0].By != (Ref{clusterRoleKind, "", "platform"}) || got[0].Role != (Ref{clusterRoleKind, "", added}) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
