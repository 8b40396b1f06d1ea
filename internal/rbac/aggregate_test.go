package rbac

import (
	"context"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authorization/authorizer"
)

func TestAggregation(t *testing.T) {
	const roles = `
kind: ClusterRole
apiVersion: rbac.authorization.k8s.io/v1
metadata: {name: admin}
aggregationRule:
  clusterRoleSelectors:
  - matchLabels: {to-admin: "true"}
  - matchExpressions: [{key: team, operator: In, values: [red]}]
rules:
- {apiGroups: [""], resources: [secrets], verbs: [update]}
---
# Aggregated, and selected by admin.
kind: ClusterRole
apiVersion: rbac.authorization.k8s.io/v1
metadata: {name: edit, labels: {to-admin: "true", to-edit: "true"}}
aggregationRule: {clusterRoleSelectors: [{matchLabels: {to-edit: "true"}}]}
---
kind: ClusterRole
apiVersion: rbac.authorization.k8s.io/v1
metadata: {name: pods, labels: {to-edit: "true"}}
rules: [{apiGroups: [""], resources: [pods], verbs: [update]}]
---
kind: ClusterRole
apiVersion: rbac.authorization.k8s.io/v1
metadata: {name: red, labels: {team: red}}
rules: [{apiGroups: [""], resources: [services], verbs: [update]}]
---
kind: ClusterRole
apiVersion: rbac.authorization.k8s.io/v1
metadata: {name: blue, labels: {team: blue, to-admin: "false"}}
rules: [{apiGroups: [""], resources: [nodes], verbs: [update]}]
---
# Two that select each other, with rules that come from nowhere else.
kind: ClusterRole
apiVersion: rbac.authorization.k8s.io/v1
metadata: {name: egg, labels: {to-hen: "true"}}
aggregationRule: {clusterRoleSelectors: [{matchLabels: {to-egg: "true"}}]}
rules: [{apiGroups: [""], resources: [eggs], verbs: [update]}]
---
kind: ClusterRole
apiVersion: rbac.authorization.k8s.io/v1
metadata: {name: hen, labels: {to-egg: "true"}}
aggregationRule: {clusterRoleSelectors: [{matchLabels: {to-hen: "true"}}]}
rules: [{apiGroups: [""], resources: [eggs], verbs: [update]}]
---
kind: ClusterRole
apiVersion: rbac.authorization.k8s.io/v1
metadata: {name: all}
aggregationRule: {clusterRoleSelectors: [{}]}
`
	var bindings strings.Builder
	for _, role := range []string{"admin", "edit", "egg", "all"} {
		bindings.WriteString("---\n{kind: ClusterRoleBinding, apiVersion: rbac.authorization.k8s.io/v1, metadata: {name: " + role + "}, roleRef: {kind: ClusterRole, name: " + role + "}, subjects: [{kind: User, name: " + role + "}]}\n")
	}
	a := parse(t, roles+bindings.String())
	for _, test := range []struct {
		user, resource string
		allowed        bool
	}{
		{"edit", "pods", true},
		{"edit", "services", false},
		{"admin", "pods", true},     // through edit
		{"admin", "services", true}, // by the second selector
		{"admin", "nodes", false},
		{"admin", "secrets", false}, // the controller overwrites the role's own rules
		{"egg", "eggs", false},
		{"all", "pods", true}, // an empty selector selects every role
		{"all", "nodes", true},
		{"all", "secrets", false},
	} {
		decision, _, _ := a.Authorize(context.Background(), attributes(test.user, "update /"+test.resource+" /x"))
		if allowed := decision == authorizer.DecisionAllow; allowed != test.allowed {
			t.Errorf("%s may update %s: got %v, want %v", test.user, test.resource, allowed, test.allowed)
		}
	}
	if warnings := a.Warnings(); len(warnings) != 3 || !strings.HasPrefix(warnings[0], `ClusterRole "admin": has rules that its aggregationRule does not yield`) {
		t.Errorf("warnings: %q", warnings)
	}
}
