package audit

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
)

// pages is a Source of n namespaces with a Role and a RoleBinding each that are not about fieldperm, and of a few that are. Objects exist only
// while they are visited, as with a paged list of an API server.
func pages(n int) Source {
	const relevant = 20
	none := func(context.Context, func(*Binding) error) error { return nil }
	return Source{
		ClusterRoles: func(context.Context, func(*Role) error) error { return nil }, ClusterRoleBindings: none,
		Roles: func(_ context.Context, visit func(*Role) error) error {
			for i := range n {
				verbs := []string{fmt.Sprintf("get%d", i), "update", "patch"}[1:]
				if i < relevant {
					verbs = []string{"granular:metadata"}
				}
				err := visit(&Role{
					Ref: Ref{Kind: roleKind, Namespace: fmt.Sprintf("team-%d", i), Name: fmt.Sprintf("role-%d", i)}, Labels: map[string]string{"app": fmt.Sprint(i)},
					Rules: []rbacv1.PolicyRule{{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: verbs}},
				})
				if err != nil {
					return err
				}
			}
			return nil
		},
		RoleBindings: func(_ context.Context, visit func(*Binding) error) error {
			for i := range n {
				err := visit(&Binding{
					Ref:  Ref{Kind: roleBindingKind, Namespace: fmt.Sprintf("team-%d", i), Name: fmt.Sprintf("binding-%d", i)},
					Role: Ref{Kind: roleKind, Namespace: fmt.Sprintf("team-%d", i), Name: fmt.Sprintf("role-%d", i)}, Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: fmt.Sprintf("user-%d", i)}},
				})
				if err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// heap returns the bytes of live objects.
func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // The first frees what the finalizers of the second hold.
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// What is not about fieldperm is not kept: five times as many other objects take no more memory.
func TestScan_MemoryDoesNotGrowWithOtherObjects(t *testing.T) {
	known := shared(t)
	grown := func(n int) (int64, int) {
		found := 0
		s := &Scan{Known: known, Many: DefaultMany, Report: func(f Finding) {
			if f.Rule == verbWithoutMarker {
				found++
			}
		}}
		before := heap()
		if _, err := s.Run(t.Context(), pages(n)); err != nil {
			t.Fatal(err)
		}
		after := heap()
		if s.Read[roleKind] != n || s.Read[roleBindingKind] != n {
			t.Errorf("read %v of %d", s.Read, n)
		}
		runtime.KeepAlive(s)
		return int64(after) - int64(before), found
	}
	grown(10) // builds the trees of the schema
	small, found := grown(10_000)
	large, foundOfLarge := grown(50_000)
	t.Logf("%d and %d bytes", small, large)
	// One byte for each further object would be 80 kB.
	if large-small > 64<<10 {
		t.Errorf("10,000 objects of each kind take %d bytes, 50,000 take %d", small, large)
	}
	if found != 20 || foundOfLarge != 20 {
		t.Errorf("found %d and %d of 20", found, foundOfLarge)
	}
}

func BenchmarkScan(b *testing.B) {
	known := shared(b)
	for b.Loop() {
		s := &Scan{Known: known, Many: DefaultMany, Report: func(Finding) {}}
		if _, err := s.Run(b.Context(), pages(10_000)); err != nil {
			b.Fatal(err)
		}
	}
}
