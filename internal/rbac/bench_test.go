package rbac

import (
	"context"
	"fmt"
	goruntime "runtime"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/tools/cache"
)

// busy returns the grants of a cluster with this many bindings. Three of four are RoleBindings in ten namespaces. Two bindings name
// benchUser itself and three its groups. One of these allows the request of benchQuestion.
func busy(bindings int) Grants {
	var g Grants
	for i := range 50 {
		g.ClusterRoles = append(g.ClusterRoles, *clusterRole(fmt.Sprintf("role-%d", i), "get", "list", "watch"))
		for range 8 {
			g.ClusterRoles[i].Rules = append(g.ClusterRoles[i].Rules, g.ClusterRoles[i].Rules[0])
		}
	}
	g.ClusterRoles = append(g.ClusterRoles, *clusterRole("scaler", "granular", "granular:scale"))
	in := func(namespace int, name, role string, kind, subject string) {
		b := *roleBinding(fmt.Sprintf("ns-%d", namespace), name, role)
		b.RoleRef.Kind = "ClusterRole"
		b.Subjects = []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: kind, Name: subject}}
		g.RoleBindings = append(g.RoleBindings, b)
	}
	everywhere := func(name, role, kind, subject string) {
		b := *clusterRoleBinding(name, role)
		b.Subjects = []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: kind, Name: subject}}
		g.ClusterRoleBindings = append(g.ClusterRoleBindings, b)
	}
	everywhere("everyone", "role-0", rbacv1.GroupKind, user.AllAuthenticated)
	everywhere("alice", "role-1", rbacv1.UserKind, "alice")
	in(0, "dev", "role-2", rbacv1.GroupKind, "dev")
	in(0, "alice", "role-3", rbacv1.UserKind, "alice")
	in(0, "ops", "scaler", rbacv1.GroupKind, "ops")
	for i := range bindings - 5 {
		name, role, subject := fmt.Sprintf("binding-%d", i), fmt.Sprintf("role-%d", i%50), fmt.Sprintf("user-%d", i/2)
		if i%4 == 0 {
			everywhere(name, role, rbacv1.UserKind, subject)
		} else {
			in(i%10, name, role, rbacv1.UserKind, subject)
		}
	}
	return g
}

func (g *Grants) objects() []runtime.Object {
	var out []runtime.Object
	for i := range g.ClusterRoles {
		out = append(out, &g.ClusterRoles[i])
	}
	for i := range g.Roles {
		out = append(out, &g.Roles[i])
	}
	for i := range g.ClusterRoleBindings {
		out = append(out, &g.ClusterRoleBindings[i])
	}
	for i := range g.RoleBindings {
		out = append(out, &g.RoleBindings[i])
	}
	return out
}

func benchQuestion(verb string) authorizer.AttributesRecord {
	return authorizer.AttributesRecord{
		User: &user.DefaultInfo{Name: "alice", Groups: []string{"dev", "ops", user.AllAuthenticated}},
		Verb: verb, Namespace: "ns-0", APIGroup: "apps", Resource: "deployments", Name: "web", ResourceRequest: true,
	}
}

// benchmarkAuthorizer asks for a verb that one of the user's bindings grants, and for one that none grants.
func benchmarkAuthorizer(b *testing.B, a authorizer.Authorizer) {
	for _, c := range []struct {
		name, verb string
		want       authorizer.Decision
	}{
		{"allow", "granular:scale", authorizer.DecisionAllow},
		{"no-opinion", "granular:image", authorizer.DecisionNoOpinion},
	} {
		b.Run(c.name, func(b *testing.B) {
			q := benchQuestion(c.verb)
			b.ReportAllocs()
			for b.Loop() {
				if decision, reason, err := a.Authorize(context.Background(), q); decision != c.want || err != nil {
					b.Fatalf("got %v %q %v", decision, reason, err)
				}
			}
		})
	}
}

// BenchmarkRBAC measures a check that asks no server. BenchmarkSubjectAccessReview measures a check that does.
func BenchmarkRBAC(b *testing.B) {
	for _, bindings := range []int{20, 2000} {
		b.Run(fmt.Sprintf("bindings=%d", bindings), func(b *testing.B) {
			g := busy(bindings)
			b.Run("live", func(b *testing.B) {
				l, _ := ready(b, newFakeAPI(g.objects()...))
				benchmarkAuthorizer(b, l)
			})
			b.Run("files", func(b *testing.B) {
				a, err := New(g)
				if err != nil {
					b.Fatal(err)
				}
				benchmarkAuthorizer(b, a)
			})
		})
	}
}

func TestACheckCostsAsMuchAsTheUsersOwnBindings(t *testing.T) {
	cost := func(bindings int) float64 {
		a, err := New(busy(bindings))
		if err != nil {
			t.Fatal(err)
		}
		q := benchQuestion("granular:image")
		return testing.AllocsPerRun(100, func() {
			if decision, _, err := a.Authorize(context.Background(), q); decision != authorizer.DecisionNoOpinion || err != nil {
				t.Fatal(decision, err)
			}
		})
	}
	if few, many := cost(20), cost(2000); many != few || many > 15 {
		t.Errorf("allocations: %v with 20 bindings, %v with 2000", few, many)
	}
}

// BenchmarkMemory20000 measures what 20,000 Roles and as many bindings hold, decoded and indexed as an informer does it. MiB-unstripped is
// the same with all parts of the objects.
func BenchmarkMemory20000(b *testing.B) {
	for b.Loop() {
		for unit, transform := range map[string]func(any) (any, error){
			"MiB":            (&stripper{}).strip,
			"MiB-unstripped": func(object any) (any, error) { return object, nil },
		} {
			before := liveHeap()
			x := newIndex()
			for i := range 20_000 {
				meta := metav1.ObjectMeta{
					Name: fmt.Sprintf("role-%d", i), Namespace: fmt.Sprintf("team-%d", i%200), UID: types.UID(fmt.Sprintf("00000000-0000-0000-0000-%012d", i)), ResourceVersion: fmt.Sprint(i),
					Labels: map[string]string{"app.kubernetes.io/managed-by": "Helm", "team": fmt.Sprint(i)}, Annotations: map[string]string{"meta.helm.sh/release-name": fmt.Sprint(i)},
					ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "helm", Operation: "Update", APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(strings.Repeat("x", 400))}},
				}
				role := &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
					{Verbs: []string{"get", "list", "watch", "granular", "granular:scale"}, APIGroups: []string{"apps"}, Resources: []string{"deployments", "statefulsets"}},
					{Verbs: []string{"get", "list", "watch"}, APIGroups: []string{""}, Resources: []string{"pods", "pods/log", "services", "configmaps"}},
				}}
				binding := &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name}, Subjects: []rbacv1.Subject{
					{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: fmt.Sprintf("person-%d@example.com", i)}, {Kind: rbacv1.ServiceAccountKind, Namespace: meta.Namespace, Name: "default"},
				}}
				// Decoded objects share no memory.
				store(b, x.roles, transform, role, &rbacv1.Role{})
				store(b, x.roleBindings, transform, binding, &rbacv1.RoleBinding{})
			}
			b.ReportMetric(liveHeap()-before, unit)
			goruntime.KeepAlive(x)
		}
	}
}

// message is an object in the form in which clients receive it.
type message interface {
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

func store(b *testing.B, in cache.Indexer, transform func(any) (any, error), object, decoded message) {
	b.Helper()
	raw, err := object.Marshal()
	if err != nil {
		b.Fatal(err)
	}
	if err := decoded.Unmarshal(raw); err != nil {
		b.Fatal(err)
	}
	is, err := transform(decoded)
	if err != nil {
		b.Fatal(err)
	}
	if err := in.Add(is); err != nil {
		b.Fatal(err)
	}
}

// liveHeap returns the size of the reachable memory in MiB.
func liveHeap() float64 {
	goruntime.GC()
	goruntime.GC()
	var m goruntime.MemStats
	goruntime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / (1 << 20)
}
