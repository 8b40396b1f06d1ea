package tighten

import (
	"strings"
	"testing"
)

// C2: what the first step of the proposal added covers nothing, so that a barrier that was made since is reported, and a right that was
// taken away since. Otherwise the subject passes the barrier by the verbs that were granted before it.
func TestC2_ProveCountsNothingThatTheProposalAdded(t *testing.T) {
	rule := `{apiGroups: [apps], resources: [deployments], verbs: [create, update, patch]}`
	other := strings.ReplaceAll(`
---
`+bound(`{apiGroups: [''], resources: [configmaps], verbs: [create, update]}`, ""), "name: operator}, r", "name: other}, r")
	other = strings.ReplaceAll(other, "name: operator},\n", "name: other},\n")
	log := webLog + line("/configmaps", "", "team", "a", "granular:datum(a)")
	for name, c := range map[string]struct {
		documents string
		revoked   bool
		want      string
	}{
		"nothing since":   {"", false, ""},
		"a barrier since": {set("images", "granular:image", "apps", "deployments", ""), false, "granular:image(web) on deployments.apps: it may pass the barrier granular:image of"},
		"revoked since":   {"", true, "granular:datum(a) on configmaps"},
	} {
		t.Run(name, func(t *testing.T) {
			objects := grants(t, bound(rule, "")+other)
			first := propose(t, operator, objects, log)
			objects.ClusterRoles = append(objects.ClusterRoles, first.Add.ClusterRoles...)
			objects.ClusterRoleBindings = append(objects.ClusterRoleBindings, first.Add.ClusterRoleBindings...)
			if c.revoked {
				objects = without(objects, func(ref Ref) bool { return ref == Ref{clusterRoleBindingKind, "", "other"} })
			}
			barriers := barriersOf(t, c.documents)
			e, _ := collect(t, operator, log)
			p, err := Propose(mustSubject(t, operator), objects, e, Options{Namespaces: HeldReach, Names: HeldReach, Decides: decides, Barriers: barriers})
			if err != nil {
				t.Fatal(err)
			}
			got := strings.Join(Prove(p, objects, nil, barriers).New, "; ")
			if !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
				t.Errorf("the proof finds %q, want %q", got, c.want)
			}
		})
	}
}

// TestProve_NothingToChange: a proposal that takes nothing away is what is there already.
func TestProve_NothingToChange(t *testing.T) {
	objects := grants(t, bound(deployments, ""))
	first := propose(t, operator, objects, webLog)
	objects = without(objects, func(ref Ref) bool { return ref.Kind == clusterRoleKind })
	objects.ClusterRoles = first.Add.ClusterRoles
	objects.ClusterRoles = append(objects.ClusterRoles, *first.Change[0].RoleAfter)
	objects.ClusterRoleBindings = append(objects.ClusterRoleBindings, first.Add.ClusterRoleBindings...)
	if p := propose(t, operator, objects, webLog); len(p.Change) > 0 || len(p.Add.ClusterRoles) == 0 {
		t.Errorf("%d changes", len(p.Change))
	}
}
