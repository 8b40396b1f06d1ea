package rbac

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// TestRBAC_ListAboutKeepsWhatMatters: rules about the question, and bindings to roles with such a rule. A kind that may not be read is named,
// and the rest is there.
func TestRBAC_ListAboutKeepsWhatMatters(t *testing.T) {
	t.Parallel()
	other := clusterRole("other", "update")
	other.Rules[0].Resources = []string{"pods"}
	both := clusterRole("both", "update")
	both.Rules = append(both.Rules, other.Rules...)
	objects := []runtime.Object{
		other, both, role("shop", "web", "update"), role("dev", "web", "update"),
		clusterRoleBinding("other", "other", "ann"), clusterRoleBinding("both", "both", "bob"), clusterRoleBinding("dangling", "nowhere", "cat"),
		roleBinding("shop", "web", "web", "dan"), roleBinding("dev", "web", "web", "eve"),
	}
	s := Selection{Namespaced: true, Namespace: "shop", Keep: func(r *rbacv1.PolicyRule) bool { return slices.Contains(r.Resources, "deployments") }}
	got, errs := ListAbout(t.Context(), &Visitor{Client: fake.NewClientset(objects...)}, s, func(string) {})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	var all Grants
	for _, o := range objects {
		all.add(o)
	}
	for from, g := range map[string]*Grants{"a cluster": got, "files": all.Select(s)} {
		if len(g.ClusterRoles) != 1 || g.ClusterRoles[0].Name != "both" || len(g.ClusterRoles[0].Rules) != 1 || len(g.Roles) != 1 ||
			len(g.ClusterRoleBindings) != 1 || g.ClusterRoleBindings[0].Name != "both" || len(g.RoleBindings) != 1 || g.RoleBindings[0].Namespace != "shop" {
			t.Errorf("from %s: %+v", from, g)
		}
	}
	s.Namespaced = false
	if got, _ := ListAbout(t.Context(), &Visitor{Client: fake.NewClientset(objects...)}, s, func(string) {}); len(got.Roles)+len(got.RoleBindings) > 0 || len(got.ClusterRoleBindings) != 1 {
		t.Errorf("of a kind that is in no namespace: %+v", got)
	}

	s.Namespaced = true
	client := fake.NewClientset(objects...)
	client.PrependReactor("list", "rolebindings", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(rbacv1.Resource("rolebindings"), "", errors.New("no"))
	})
	got, errs = ListAbout(t.Context(), &Visitor{Client: client}, s, func(string) {})
	if len(errs) != 1 || !strings.Contains(errs[0].Error(), "allow list on rolebindings.rbac.authorization.k8s.io") || len(got.ClusterRoleBindings) != 1 {
		t.Errorf("%v, %+v", errs, got)
	}
}

// An interrupt leaves what was read, and an error for each kind that was not read to its end.
func TestRBAC_ListAboutLeavesWhatWasReadBeforeAnInterrupt(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	client := fake.NewClientset(clusterRole("web", "update"), role("shop", "a", "update"), role("shop", "b", "update"), roleBinding("shop", "a", "a", "ann"))
	visited := map[string]int{}
	got, errs := ListAbout(ctx, &Visitor{Client: client}, Selection{Namespaced: true, Keep: func(*rbacv1.PolicyRule) bool { return true }}, func(kind string) {
		if visited[kind]++; kind == "Role" {
			interrupt()
		}
	})
	if len(got.ClusterRoles) != 1 || len(got.Roles) != 1 || visited["Role"] != 1 || len(errs) != 3 || errs[0].Error() != "roles: interrupted after 1: ask again" {
		t.Errorf("%+v, errors %q, visited %v", got, errs, visited)
	}
}

func TestRBAC_MatchesAreWhatAuthorizeDecides(t *testing.T) {
	t.Parallel()
	g := Grants{}
	for _, o := range []runtime.Object{
		clusterRole("c", "update"), role("shop", "r", "patch"), clusterRoleBinding("c", "c", "ann"), roleBinding("shop", "r", "r", "ann", "bob"), roleBinding("shop", "d", "nowhere", "ann"),
	} {
		g.add(o)
	}
	a, err := NewStored(g)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"ann": "ClusterRoleBinding c ClusterRole c; RoleBinding shop/r Role shop/r", "bob": "RoleBinding shop/r Role shop/r", "cat": "",
	} {
		var got []string
		for _, m := range a.Matches(Authenticated(&user.DefaultInfo{Name: name}), "shop") {
			got = append(got, m.Binding.String()+" "+m.Role.String())
		}
		if text := strings.Join(got, "; "); text != want {
			t.Errorf("%s: %s, want %s", name, text, want)
		}
	}
	if got := a.Matches(&user.DefaultInfo{Name: "bob"}, ""); len(got) > 0 {
		t.Errorf("in no namespace: %+v", got)
	}
}
