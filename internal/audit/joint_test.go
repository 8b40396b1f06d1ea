package audit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Rules about what subjects hold in total: a fault, and what is nearly the same and right.
func TestJointRules(t *testing.T) {
	const scaler = `roles: [{name: scaler, rules: [{apiGroups: [apps], resources: [replicasets], verbs: ["granular:scale"]}, {apiGroups: [apps], resources: [replicasets/scale], verbs: [granular, "granular:scale", get]}]}`
	const marks = `, {name: marks, rules: [{apiGroups: [apps], resources: [replicasets], verbs: [granular, get]}]}`
	const edits = `, {name: edits, rules: [{apiGroups: [apps], resources: [replicasets], verbs: [patch]}]}`
	const creates = `, {name: creates, rules: [{apiGroups: [apps], resources: [replicasets], verbs: [create, granular, get]}]}`
	bound := func(more string) string { return scaler + more }
	sa := func(role, namespace string) string {
		if namespace == "" {
			return fmt.Sprintf("{name: %s, clusterRole: %[1]s, subjects: [ServiceAccount ops/bot]}", role)
		}
		return fmt.Sprintf("{name: %s, namespace: %s, clusterRole: %[1]s, subjects: [ServiceAccount ops/bot]}", role, namespace)
	}
	const alone = "error granular-verb-without-marker ClusterRole scaler rules[0].verbs[0]"
	for name, c := range map[string]struct {
		objects string
		scan    Scan
		want    []string
	}{
		"granular-verb-without-marker":       {objects: bound("]\nbindings: [" + sa("scaler", "") + "]"), want: []string{alone}},
		"the marker of another binding":      {objects: bound(marks + "]\nbindings: [" + sa("scaler", "") + "," + sa("marks", "") + "]")},
		"the marker of a group of accounts":  {objects: bound(marks + "]\nbindings: [" + sa("scaler", "") + `,{name: marks, clusterRole: marks, subjects: ["Group system:serviceaccounts:ops"]}]`)},
		"the marker of another group":        {objects: bound(marks + "]\nbindings: [" + sa("scaler", "") + `,{name: marks, clusterRole: marks, subjects: ["Group system:serviceaccounts:other"]}]`), want: []string{"warning marker-without-granular-verb", alone}},
		"the marker in one namespace":        {objects: bound(marks + "]\nbindings: [" + sa("scaler", "") + "," + sa("marks", "shop") + "]"), want: []string{"note granular-verb-without-marker"}},
		"the marker in all namespaces":       {objects: bound(marks + "]\nbindings: [" + sa("scaler", "shop") + "," + sa("marks", "") + "]")},
		"the marker in another namespace":    {objects: bound(marks + "]\nbindings: [" + sa("scaler", "shop") + "," + sa("marks", "other") + "]"), want: []string{"warning marker-without-granular-verb", alone}},
		"a user, and a group has the marker": {objects: bound(marks + `]` + "\n" + `bindings: [{name: a, clusterRole: scaler, subjects: [User jane]}, {name: b, clusterRole: marks, subjects: [Group team]}]`), want: []string{"note marker-without-granular-verb", "warning granular-verb-without-marker"}},
		"everybody has the marker":           {objects: bound(marks + `]` + "\n" + `bindings: [{name: a, clusterRole: scaler, subjects: [User jane]}, {name: b, clusterRole: marks, subjects: ["Group system:authenticated"]}]`)},
		"the generic permission, idle":       {objects: bound(edits + "]\nbindings: [" + sa("scaler", "") + "," + sa("edits", "") + "]"), want: []string{"note generic-permission-makes-verb-idle ClusterRole scaler rules[0].verbs[0]"}},
		"the generic permission elsewhere":   {objects: bound(edits + marks + "]\nbindings: [" + sa("scaler", "") + "," + sa("marks", "") + "," + sa("edits", "shop") + "]")},
		"create is no generic permission":    {objects: bound(creates + "]\nbindings: [" + sa("scaler", "") + "," + sa("creates", "") + "]")},
		"not bound":                          {objects: bound("]"), want: []string{"note granular-verb-without-marker"}},
		"not bound and aggregated":           {objects: strings.Replace(scaler, "name: scaler,", "name: scaler, labels: {to: edit},", 1) + ", {name: edit, aggregates: {to: edit}}]"},
		"in another namespace":               {objects: bound("]\nbindings: [" + sa("scaler", "shop") + "]"), scan: Scan{Namespace: "other"}},
		"a fault of a ClusterRole that the namespace binds": {objects: `
roles: [{name: a, rules: [{apiGroups: [apps], resources: [replicasets], verbs: [granluar]}]}, {name: b, rules: [{apiGroups: [apps], resources: [replicasets], verbs: [granluar]}]}]
bindings: [` + sa("a", "shop") + `]`, scan: Scan{Namespace: "shop"}, want: []string{"error misspelt-marker ClusterRole a rules[0].verbs[0]"}},
		"in the namespace": {objects: bound("]\nbindings: [" + sa("scaler", "shop") + "]"), scan: Scan{Namespace: "shop"}, want: []string{alone}},

		"names of the marker": {objects: `
roles: [{name: a, rules: [{apiGroups: [apps], resources: [replicasets], resourceNames: [x, y], verbs: ["granular:metadata"]}, {apiGroups: [apps], resources: [replicasets], resourceNames: [x], verbs: [granular, get]}]}]
bindings: [` + sa("a", "") + `]`, want: []string{"note granular-verb-without-marker ClusterRole a rules[0].verbs[0]"}},
		"all names of the marker": {objects: `
roles: [{name: a, rules: [{apiGroups: [apps], resources: [replicasets], resourceNames: [x], verbs: ["granular:metadata"]}, {apiGroups: [apps], resources: [replicasets], resourceNames: [x, y], verbs: [granular, get]}]}]
bindings: [` + sa("a", "") + `]`},
		"other names of the marker": {objects: `
roles: [{name: a, rules: [{apiGroups: [apps], resources: [replicasets], resourceNames: [x], verbs: ["granular:metadata"]}, {apiGroups: [apps], resources: [replicasets], resourceNames: [y], verbs: [granular, "granular:metadata", get]}]}]
bindings: [` + sa("a", "") + `]`, want: []string{"error granular-verb-without-marker ClusterRole a rules[0].verbs[0]"}},

		"a barrier's verb is not idle": {objects: `
roles: [{name: a, rules: [{apiGroups: [apps], resources: [deployments], verbs: [update, "granular:image(web)"]}]}]
bindings: [` + sa("a", "") + `]`},
		"a barrier's verb without update": {objects: `
roles: [{name: a, rules: [{apiGroups: [apps], resources: [deployments], verbs: ["granular:image(web)"]}]}]
bindings: [` + sa("a", "") + `]`, want: []string{"error granular-verb-without-marker ClusterRole a rules[0].verbs[0]"}},
		"a barrier's verb of a controller that this Kubernetes may lack": {objects: `
roles: [{name: a, rules: [{apiGroups: [apps], resources: [deployments], verbs: ["granular:image(web)"]}]}]
bindings: [{name: a, clusterRole: a, subjects: [ServiceAccount kube-system/migrator]}]`, want: []string{"note granular-verb-without-marker ClusterRole a rules[0].verbs[0]"}},
		"a verb for all fields is for a barrier to come": {objects: `
roles: [{name: a, rules: [{apiGroups: [""], resources: [events], verbs: [create, patch, "granular:*"]}]}]
bindings: [` + sa("a", "") + `]`},
		"with the marker it is idle": {objects: `
roles: [{name: a, rules: [{apiGroups: [""], resources: [events], verbs: [patch, granular, "granular:*", get]}]}]
bindings: [` + sa("a", "") + `]`, want: []string{"warning generic-permission-makes-verb-idle ClusterRole a rules[0].verbs[2]"}},
		"a barrier's verb beside create needs no marker": {objects: `
roles: [{name: a, rules: [{apiGroups: [apps], resources: [deployments], verbs: [create, "granular:image"]}]}]
bindings: [` + sa("a", "") + `]`},
		"another verb beside create needs it": {objects: `
roles: [{name: a, rules: [{apiGroups: [apps], resources: [deployments], verbs: [create, "granular:metadata"]}]}]
bindings: [` + sa("a", "") + `]`, want: []string{"error granular-verb-without-marker ClusterRole a rules[0].verbs[1]"}},
		"the marker does not open it": {objects: `
roles: [{name: a, rules: [{apiGroups: [""], resources: [pods/binding], verbs: [create, "granular:nodeAssignment"]}]}]
bindings: [` + sa("a", "") + `]`},
		"beside a barrier it is": {objects: `
roles: [{name: a, rules: [{apiGroups: [apps], resources: [deployments], verbs: [update, "granular:metadata"]}]}, {name: b, rules: [{apiGroups: [apps], resources: [deployments], verbs: ["granular:image"]}]}]
bindings: [` + sa("a", "") + `, ` + sa("b", "") + `]`, want: []string{"note generic-permission-makes-verb-idle ClusterRole a rules[0].verbs[1]"}},
		"a barrier's verb beside a wildcard is": {objects: `
roles: [{name: a, rules: [{apiGroups: [apps], resources: [deployments], verbs: ["granular:image"]}]}, {name: b, rules: [{apiGroups: [apps], resources: [deployments], verbs: ["*"]}]}]
bindings: [` + sa("a", "") + `, ` + sa("b", "") + `]`, want: []string{"warning generic-permission-makes-verb-idle ClusterRole a rules[0].verbs[0]", "warning wildcard-satisfies-barrier ClusterRole b"}},

		"marker-without-granular-verb": {objects: `
roles: [{name: a, rules: [{apiGroups: [""], resources: [services], verbs: [granular, get]}, {apiGroups: [""], resources: [pods], verbs: [granular, "granular:metadata", get]}]}]
bindings: [` + sa("a", "") + `]`, want: []string{"warning marker-without-granular-verb ClusterRole a rules[0].verbs[0]"}},

		"marker-without-get": {objects: `
roles: [{name: a, rules: [{apiGroups: [""], resources: [secrets], verbs: [granular, "granular:annotations"]}]}]
bindings: [` + sa("a", "") + `]`, want: []string{"warning marker-without-get ClusterRole a rules[0].verbs[0]"}},
		"marker-without-get by a wildcard": {objects: `
roles: [{name: a, rules: [{apiGroups: ["*"], resources: ["*"], verbs: [granular, "granular:annotations"]}]}]
bindings: [` + sa("a", "") + `]`, want: []string{"warning marker-without-get ClusterRole a rules[0].verbs[0]"}},
		"marker-without-get, for a name": {objects: `
roles: [{name: a, rules: [{apiGroups: [""], resources: [secrets], verbs: [granular, "granular:annotations"]}]}, {name: b, rules: [{apiGroups: [""], resources: [secrets], resourceNames: [x], verbs: [get]}]}]
bindings: [` + sa("a", "") + `, ` + sa("b", "") + `]`, want: []string{"note marker-without-get ClusterRole a rules[0].verbs[0]"}},
		"marker-without-get of a subresource": {objects: `
roles: [{name: a, rules: [{apiGroups: [apps], resources: [deployments/scale], verbs: [granular, "granular:scale"]}]}, {name: b, rules: [{apiGroups: [apps], resources: [deployments], verbs: [get]}]}]
bindings: [` + sa("a", "") + `, ` + sa("b", "") + `]`, want: []string{"warning marker-without-get ClusterRole a rules[0].verbs[0]"}},
		"get by another role": {objects: `
roles: [{name: a, rules: [{apiGroups: [""], resources: [secrets], verbs: [granular, "granular:annotations"]}]}, {name: b, rules: [{apiGroups: [""], resources: [secrets], verbs: [get]}]}]
bindings: [` + sa("a", "") + `, ` + sa("b", "") + `]`},

		"every user has a power": {objects: `
roles: [{name: a, rules: [{apiGroups: [apps], resources: [daemonsets], verbs: [granular, "granular:image", get]}]}]
bindings: [{name: all, clusterRole: a, subjects: [User x, "Group system:serviceaccounts"]}]`, want: []string{"error power-held-by-many ClusterRoleBinding all subjects[1]"}},
		"every user has a harmless verb": {objects: `
roles: [{name: a, rules: [{apiGroups: [apps], resources: [daemonsets], verbs: [granular, "granular:annotation(example.com)", get]}]}]
bindings: [{name: all, clusterRole: a, subjects: ["Group system:authenticated"]}]`},
		"many have a power": {objects: `
roles: [{name: a, rules: [{apiGroups: [apps], resources: [daemonsets], verbs: [granular, "granular:image", get]}]}]
bindings: [{name: x, clusterRole: a, subjects: [User x, User y]}, {name: y, namespace: shop, clusterRole: a, subjects: [User z, User y]}]`, scan: Scan{Many: 2}, want: []string{"warning power-held-by-many ClusterRole a rules[0].verbs[1]"}},
		"not so many": {objects: `
roles: [{name: a, rules: [{apiGroups: [apps], resources: [daemonsets], verbs: [granular, "granular:image", get]}]}]
bindings: [{name: x, clusterRole: a, subjects: [User x, User y]}, {name: y, namespace: shop, clusterRole: a, subjects: [User x, User y]}]`, scan: Scan{Many: 2}},

		"a ClusterRole without namespace in a RoleBinding": {objects: `
roles: [{name: a, rules: [{apiGroups: [""], resources: [nodes], verbs: [granular, "granular:taints", get]}]}]
bindings: [` + sa("a", "shop") + `]`, want: []string{"error cluster-scoped-resource-in-role RoleBinding shop/a roleRef"}},
		"a ClusterRole of Namespaces in a RoleBinding": {objects: `
roles: [{name: a, rules: [{apiGroups: [""], resources: [namespaces], verbs: [granular, "granular:labels", get]}]}]
bindings: [` + sa("a", "shop") + `]`},
	} {
		t.Run(name, func(t *testing.T) {
			got := auditText(t, &c.scan, objectsOf(t, c.objects))
			// The barriers of the schema have findings of their own, and most roles have no binding of the scale.
			got = slices.DeleteFunc(got, func(f string) bool {
				return strings.Contains(f, barrierNobody) || strings.Contains(f, scaleNotGranted)
			})
			ok := len(got) == len(c.want)
			for _, want := range c.want {
				ok = ok && slices.ContainsFunc(got, func(f string) bool { return strings.HasPrefix(f, want) })
			}
			if !ok {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

// Barriers that no subject and every user passes.
func TestBarrierRules(t *testing.T) {
	const nobody = "warning barrier-without-holder UncoveredPermissionSet "
	all := []string{nobody + "images spec.uncoveredPermissions[0]", nobody + "proxy spec.uncoveredPermissions[0]", "warning barrier-without-holder PermissionSchema doc1#4 spec.permissions[0]"}
	role := func(resource, group, verb string) string {
		return fmt.Sprintf("roles: [{name: a, rules: [{apiGroups: [%q], resources: [%q], verbs: [granular, update, %q, get]}]}]\n", group, resource, verb)
	}
	const holder = "bindings: [{name: b, clusterRole: a, subjects: [User jane]}]"
	for name, c := range map[string]struct {
		objects string
		files   bool
		passed  []string
		more    string
	}{
		"no subject":                         {objects: "{}"},
		"a role without a binding":           {objects: role("deployments", "apps", "granular:image")},
		"a holder":                           {objects: role("deployments", "apps", "granular:image") + holder, passed: []string{"images"}},
		"a holder of one container":          {objects: role("deployments", "apps", "granular:image(web)") + holder, passed: []string{"images"}},
		"a verb above the barrier":           {objects: role("deployments", "apps", "granular:containers") + holder},
		"the same verb on another resource":  {objects: role("daemonsets", "apps", "granular:image") + holder},
		"the verb of all for a barrier of 1": {objects: role("statefulsets", "apps", "granular:image") + holder},
		"the verb of one":                    {objects: role("statefulsets", "apps", "granular:image(proxy)") + holder, passed: []string{"proxy"}},
		"the verb of another one":            {objects: role("statefulsets", "apps", "granular:image(web)") + holder},
		"a schema":                           {objects: role("gadgets", "example.com", "granular:example.com/colour") + holder, passed: []string{"doc1"}},
		"a wildcard":                         {objects: role("*", "*", "*") + holder, passed: []string{"images", "proxy", "doc1"}, more: "warning wildcard-satisfies-barrier"},
		"only system:masters":                {objects: role("deployments", "apps", "granular:image") + `bindings: [{name: b, clusterRole: a, subjects: ["Group system:masters"]}]`},
		"everybody":                          {objects: role("deployments", "apps", "granular:image") + `bindings: [{name: b, clusterRole: a, subjects: ["Group system:authenticated"]}]`, passed: []string{"images"}, more: "error barrier-held-by-everybody ClusterRoleBinding b subjects[0]"},
		"of files it is a note":              {objects: "{}", files: true},
	} {
		t.Run(name, func(t *testing.T) {
			got := auditText(t, &Scan{Files: c.files}, objectsOf(t, c.objects))
			for _, want := range all {
				passed := slices.ContainsFunc(c.passed, func(p string) bool { return strings.Contains(want, p) })
				if c.files {
					want = strings.Replace(want, "warning", "note", 1)
				}
				if slices.Contains(got, want) == passed {
					t.Errorf("%s: found %v in %q", want, !passed, got)
				}
			}
			if c.more != "" && !slices.ContainsFunc(got, func(f string) bool { return strings.HasPrefix(f, c.more) }) {
				t.Errorf("got %q, want %q", got, c.more)
			}
		})
	}
}

// Roles of Kubernetes itself are one note, and their further bindings are reported. A role that only says so is reported.
func TestWildcardsOfKubernetes(t *testing.T) {
	const defaults = `
roles:
- {name: cluster-admin, labels: {kubernetes.io/bootstrapping: rbac-defaults}, rules: [{apiGroups: ["*"], resources: ["*"], verbs: ["*"]}]}
- {name: "system:more", labels: {kubernetes.io/bootstrapping: rbac-defaults}, rules: [{apiGroups: ["*"], resources: ["*"], verbs: ["*"]}]}
- {name: forged, labels: {kubernetes.io/bootstrapping: rbac-defaults}, rules: [{apiGroups: ["*"], resources: ["*"], verbs: ["*"]}]}
bindings:
- {name: cluster-admin, labels: {kubernetes.io/bootstrapping: rbac-defaults}, clusterRole: cluster-admin, subjects: ["Group system:masters"]}
- {name: "system:forged", labels: {kubernetes.io/bootstrapping: rbac-defaults}, clusterRole: cluster-admin, subjects: ["User system:kube-scheduler", User eve, "Group system:authenticated"]}
- {name: masters, clusterRole: cluster-admin, subjects: ["Group system:masters", User jane]}
`
	filter := func(got []string) []string {
		return slices.DeleteFunc(got, func(f string) bool { return !strings.Contains(f, wildcardBarrier) })
	}
	got := filter(auditText(t, &Scan{}, objectsOf(t, defaults)))
	want := []string{
		"warning wildcard-satisfies-barrier ClusterRole forged rules[0].verbs[0]", "note wildcard-satisfies-barrier ClusterRole cluster-admin",
		"warning wildcard-satisfies-barrier ClusterRoleBinding masters subjects[1]",
		"warning wildcard-satisfies-barrier ClusterRoleBinding system:forged subjects[1]", "warning wildcard-satisfies-barrier ClusterRoleBinding system:forged subjects[2]",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if got := filter(auditText(t, &Scan{All: true}, objectsOf(t, defaults))); len(got) != 3 || strings.Contains(strings.Join(got, ""), "note") {
		t.Errorf("with All: %q", got)
	}
}

// What cannot be read is returned, and what no object grants is not reported as missing.
func TestScan_IncompleteListsReportNoAbsence(t *testing.T) {
	source := objectsOf(t, `
roles: [{name: a, rules: [{apiGroups: [apps], resources: [replicasets], verbs: ["granular:metadata", "granular:metadat"]}]}]
bindings: [{name: a, clusterRole: a, subjects: [ServiceAccount ops/bot]}]`)
	refused := errors.New("forbidden")
	source.RoleBindings = func(context.Context, func(*Binding) error) error { return refused }
	var got []string
	s := &Scan{Known: shared(t), Many: DefaultMany, Report: func(f Finding) { got = append(got, f.Rule) }}
	missing, err := s.Run(t.Context(), source)
	if err != nil || len(missing) != 1 || !errors.Is(missing[0].Err, refused) || !slices.Equal(got, []string{unknownVerb}) {
		t.Errorf("%v, %v, %q", err, missing, got)
	}
}

// An end of the context leaves the findings of the roles that were read.
func TestScan_AnInterruptLeavesWhatWasFound(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	roles := []*Role{}
	for i := range 10 {
		roles = append(roles, &Role{Ref: Ref{Kind: clusterRoleKind, Namespace: "", Name: fmt.Sprint(i)}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"granluar"}}}})
	}
	found := 0
	s := &Scan{Known: shared(t), Many: DefaultMany, Report: func(Finding) {
		if found++; found == 3 {
			cancel()
		}
	}}
	if _, err := s.Run(ctx, sourceOf(roles, nil)); !errors.Is(err, context.Canceled) || found != 3 {
		t.Errorf("%v, %d findings", err, found)
	}
}
