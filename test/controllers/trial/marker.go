//go:build controllers

package trial

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fieldperm/fieldperm/internal/rbac"
	"github.com/fieldperm/fieldperm/internal/tighten"
)

// markerAdds returns as a table of Markdown what the users may create and read with the proposals and not with what they hold now. Users to
// whom the marker adds nothing have no row. The text is "" if no user has one. Any other new access fails the test.
func (r *Run) markerAdds(proposals []*proposal) string {
	r.T.Helper()
	now, err := rbac.List(r.T.Context(), r.Client)
	Must(r.T, err)
	text := &strings.Builder{}
	for _, p := range proposals {
		subject, err := tighten.ParseSubject(p.user)
		Must(r.T, err)
		add, _ := p.split()
		// The barriers of the cluster were asked by the command that made the proposal.
		proof := tighten.Prove(&tighten.Proposal{Subject: subject, Add: r.grants(add)}, now, append(groupsOf(p.user), "system:authenticated"), &tighten.Barriers{Unknown: true})
		if len(proof.New) > 0 {
			r.T.Errorf("%s: new access: %q", p.user, proof.New)
		}
		if len(proof.Read) > 0 {
			fmt.Fprintf(text, "| %s | %s |\n", short(p.user), resourcesOf(proof.Read))
		}
	}
	if text.Len() == 0 {
		return "Nothing.\n"
	}
	return "| user | may also read |\n|---|---|\n" + text.String()
}

// resourcesOf returns the resources of the sentences of a proof.
func resourcesOf(sentences []string) string {
	var out []string
	for _, s := range sentences {
		_, s, _ = strings.Cut(s, ": may also ")
		_, s, _ = strings.Cut(s, " ")
		out = append(out, "`"+s+"`")
	}
	slices.Sort(out)
	return strings.Join(slices.Compact(out), ", ")
}

// grants returns the RBAC objects of a proposal.
func (r *Run) grants(objects []*unstructured.Unstructured) rbac.Grants {
	r.T.Helper()
	var out rbac.Grants
	for _, o := range objects {
		into := func(typed any) { Must(r.T, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, typed)) }
		switch o.GetKind() {
		case "Role":
			out.Roles = append(out.Roles, rbacv1.Role{})
			into(&out.Roles[len(out.Roles)-1])
		case "ClusterRole":
			out.ClusterRoles = append(out.ClusterRoles, rbacv1.ClusterRole{})
			into(&out.ClusterRoles[len(out.ClusterRoles)-1])
		case "RoleBinding":
			out.RoleBindings = append(out.RoleBindings, rbacv1.RoleBinding{})
			into(&out.RoleBindings[len(out.RoleBindings)-1])
		case "ClusterRoleBinding":
			out.ClusterRoleBindings = append(out.ClusterRoleBindings, rbacv1.ClusterRoleBinding{})
			into(&out.ClusterRoleBindings[len(out.ClusterRoleBindings)-1])
		default:
			r.T.Fatalf("%s %s is no object of RBAC", o.GetKind(), o.GetName())
		}
	}
	return out
}
