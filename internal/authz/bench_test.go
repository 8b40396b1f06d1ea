package authz

import (
	"fmt"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/internal/rbac"
)

// BenchmarkCheck is one check through a chain, by where its answer is from.
func BenchmarkCheck(b *testing.B) {
	p := newPlace(b)
	r := newRemote(b, allow(""))
	check := func(name string, a fieldperm.Authorizer) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if answer, err := a.Authorize(b.Context(), "update", false); err != nil || !answer.Allowed {
					b.Fatal(answer, err)
				}
			}
		})
	}
	h := hook{name: "hook", kubeconfig: p.kubeconfig("k", r)}
	p.configure(h)
	check("cached", p.chain(Settings{}).For(request()))
	h.conditions = []string{"has(request.resourceAttributes)", "request.resourceAttributes.namespace != 'kube-system'"}
	p.configure(h)
	check("cached, two conditions", p.chain(Settings{}).For(request()))
	p.configure(rbacEntry, hook{name: "api"})
	check("RBAC of 2000 bindings", p.chain(Settings{newRoles: manyBindings(b)}).For(request()))
	check("system:masters", p.chain(Settings{newRoles: manyBindings(b)}).For(by("root", "system:masters")))
	h.conditions, h.more = nil, keepNone
	p.configure(h)
	check("round trip", p.chain(Settings{}).For(request()))
}

// manyBindings returns RBAC of 2,000 users, each of whom may update deployments in the namespace shop.
func manyBindings(b *testing.B) func(*rest.Config) (roles, error) {
	b.Helper()
	g := rbac.Grants{Roles: []rbacv1.Role{{
		ObjectMeta: metav1.ObjectMeta{Name: "writer", Namespace: "shop"},
		Rules:      []rbacv1.PolicyRule{{Verbs: []string{"update"}, APIGroups: []string{"apps"}, Resources: []string{"deployments"}}},
	}}}
	for i := range 2000 {
		name := fmt.Sprintf("user-%d", i)
		if i == 1000 {
			name = "alice"
		}
		g.RoleBindings = append(g.RoleBindings, rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "writer"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
		})
	}
	a, err := rbac.New(g)
	if err != nil {
		b.Fatal(err)
	}
	return func(*rest.Config) (roles, error) { return grants{Authorizer: a}, nil }
}
