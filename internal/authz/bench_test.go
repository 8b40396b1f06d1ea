package authz

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/internal/rbac"
)

// BenchmarkCheck measures one check through a chain, for each source of the answer.
func BenchmarkCheck(b *testing.B) {
	p := newPlace(b)
	r := newRemote(b, allow(""))
	check := func(name string, a fieldperm.Authorizer) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if answer, err := a.Authorize(b.Context(), "update", false); err != nil || !answer.Allowed() {
					b.Fatal(answer, err)
				}
			}
		})
	}
	h := hook{name: "hook", kubeconfig: p.kubeconfig("k", r)}
	p.configure(h)
	check("cached", p.chain(Settings{}).For(request()))
	check("default chain, cached", defaultOf(b, r).For(request()))
	p.configure(rbacEntry, hook{name: "api"})
	check("RBAC of 2000 bindings", p.chain(Settings{newRoles: manyBindings(b)}).For(request()))
	check("RBAC of 2000 bindings has no opinion, then cached", p.chain(Settings{newRoles: manyBindings(b), Cluster: r.Config()}).For(by("stranger", "team")))
	check("system:masters", p.chain(Settings{newRoles: manyBindings(b)}).For(by("root", "system:masters")))
	h.more = keepNone
	p.configure(h)
	check("round trip", p.chain(Settings{}).For(request()))
}

// BenchmarkReview measures the checks of one review with cached decisions: a request of a service account, with the verbs that are
// asked for a user with a few granular verbs.
func BenchmarkReview(b *testing.B) {
	r := newRemote(b, func(w http.ResponseWriter, req *http.Request, review *authorizationv1.SubjectAccessReview) {
		status(authorizationv1.SubjectAccessReviewStatus{Allowed: review.Spec.ResourceAttributes.Verb == "granular:scale"})(w, req, review)
	})
	p := newPlace(b)
	p.configure(rbacEntry, hook{name: "api"})
	for name, chain := range map[string]*Chain{
		"default chain":    defaultOf(b, r),
		"RBAC and cluster": p.chain(Settings{newRoles: manyBindings(b), Cluster: r.Config()}),
	} {
		b.Run(name, func(b *testing.B) {
			req := by("system:serviceaccount:shop:deployer", "system:serviceaccounts", "system:serviceaccounts:shop", "system:authenticated")
			for _, key := range []string{"credential-id", "node-name", "node-uid", "pod-name", "pod-uid"} {
				req.UserInfo.Extra["authentication.kubernetes.io/"+key] = authenticationv1.ExtraValue{"0b8f0a2e-6f0d-4d6e-9d6f-8f1a2b3c4d5e"}
			}
			b.ReportAllocs()
			for b.Loop() {
				a := chain.For(req)
				for i, verb := range []string{"update", "patch", "granular", "granular:*", "granular:specification", "granular:scale"} {
					if _, err := a.Authorize(b.Context(), verb, i < 2); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

// BenchmarkCheckParallel measures checks with a cached decision, on all processors in parallel.
func BenchmarkCheckParallel(b *testing.B) {
	a := defaultOf(b, newRemote(b, allow(""))).For(request())
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if answer, err := a.Authorize(b.Context(), "update", false); err != nil || !answer.Allowed() {
				b.Error(answer, err)
			}
		}
	})
}

// defaultOf returns the default chain in front of a stand-in for a kube-apiserver.
func defaultOf(b *testing.B, r *remote) *Chain {
	b.Helper()
	chain, err := NewChain(b.Context(), Settings{TTL: time.Hour, Cluster: r.Config()})
	if err != nil {
		b.Fatal(err)
	}
	return chain
}

// manyBindings returns RBAC with 2,000 users. Each may update deployments in the namespace shop.
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
