package tighten

import (
	"fmt"
	"strings"
	"testing"
)

// TestPropose_AWildcardKeepsWhatIsNotDecided: "*" covers resources on which fieldperm does not decide without their names. No observation sees
// writes of them, so that they stay.
func TestPropose_AWildcardKeepsWhatIsNotDecided(t *testing.T) {
	undecided := []Resource{{"", "services/proxy"}, {"admissionregistration.k8s.io", "mutatingwebhookconfigurations"}, {"admissionregistration.k8s.io", "validatingwebhookconfigurations"}, {"gone.example.com", "*"}}
	lease := Resource{"coordination.k8s.io", "leases"}
	for rule, want := range map[string]string{
		`apiGroups: ["*"], resources: ["*"], verbs: [get, update, patch]`: `get *.*; update,patch *.*/finalizers; update,patch coordination.k8s.io.leases; update,patch .services/proxy; ` +
			`update,patch admissionregistration.k8s.io.mutatingwebhookconfigurations,validatingwebhookconfigurations; update,patch gone.example.com.*`,
		`apiGroups: [admissionregistration.k8s.io], resources: ["*"], resourceNames: [a], verbs: [update]`: `update admissionregistration.k8s.io.*/finalizers,mutatingwebhookconfigurations,validatingwebhookconfigurations[a]`,
		`apiGroups: [""], resources: [configmaps, "*/proxy"], verbs: [get, patch]`:                         `get .configmaps,*/proxy; patch .services/proxy`,
		`apiGroups: ["*"], resources: [leases, deployments], verbs: [update]`:                              `update coordination.k8s.io.leases`,
		`apiGroups: [""], resources: [configmaps], verbs: [update]`:                                        ``,
	} {
		objects := grants(t, `
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: wide}, rules: [{`+rule+`}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: wide}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: wide}, subjects: [{kind: ServiceAccount, namespace: ops, name: operator}]}
`)
		p := propose(t, operator, objects, line("/configmaps", "", "team", "a", "granular:label(a)"), func(o *Options) {
			o.Undecided, o.Keep, o.AllowNew = undecided, []Resource{lease}, true
		})
		if len(p.Change) != 1 {
			t.Fatalf("%s: %d changes", rule, len(p.Change))
		}
		var got []string
		for _, r := range p.Change[0].RoleAfter.Rules {
			text := fmt.Sprintf("%s %s.%s", strings.Join(r.Verbs, ","), strings.Join(r.APIGroups, ","), strings.Join(r.Resources, ","))
			if len(r.ResourceNames) > 0 {
				text += fmt.Sprint(r.ResourceNames)
			}
			got = append(got, text)
		}
		if text := strings.Join(got, "; "); text != want {
			t.Errorf("%s:\ngot  %s\nwant %s", rule, text, want)
		}
		notes := strings.Join(p.Notes, "\n")
		for _, r := range undecided {
			if strings.Contains(notes, r.String()) != strings.Contains(want, r.Group+".") && r.Group != "" {
				t.Errorf("%s: notes about %s: %s", rule, r, notes)
			}
		}
	}
}
