package policies

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
	"github.com/fieldperm/fieldperm/verbs"
)

const manyChanges = 30_000

// rewritten is an update that changes many keys.
func rewritten(tb testing.TB) *admission.Write {
	tb.Helper()
	var data fieldpath.Path
	data = data.Field("data")
	general, err := verbs.New("data")
	if err != nil {
		tb.Fatal(err)
	}
	out := make([]fieldperm.Requirement, manyChanges)
	for i := range out {
		key := fmt.Sprintf("key-%d", i)
		own, _ := general.WithParameter(key)
		out[i] = fieldperm.Requirement{Path: data.Key(key), Operation: "modified", Chain: []verbs.Verb{verbs.All(), general, own}, Barrier: -1}
	}
	return admission.NewWrite(updating(tb, replicas(2), replicas(3)), nil, out)
}

const readsChanges = `changes.all(c, c.path.startsWith(".data") && c.operation == "modified") && changes.size() > 1`

// TestK5_ChangesAreNotKept bounds what a request with many changes holds while other requests are reviewed. A decoded list of 30,000 takes 13 MB.
func TestK5_ChangesAreNotKept(t *testing.T) {
	set, write := setOf(t, about(v1alpha1.PolicyAllow, readsChanges)), rewritten(t)
	held := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := held()
	conditions := set.For(write)
	if got, err := conditions.Authorize(t.Context(), "update", true); err != nil || got.Outcome != fieldperm.Allow {
		t.Fatal(got, err)
	}
	if after := held(); after > before+1<<20 {
		t.Errorf("a request with %d changes holds %d bytes more after its conditions", manyChanges, after-before)
	}
	runtime.KeepAlive(conditions)
	runtime.KeepAlive(write)
}

// TestK5_ChangesAreThoseOfTheWrite holds each field of a change.
func TestK5_ChangesAreThoseOfTheWrite(t *testing.T) {
	condition := fmt.Sprintf(`changes.size() == %d && changes[7].path == %q && changes[7].operation == "modified" && changes[7].verbs == ["granular:*", "granular:data", "granular:data(key-7)"]`,
		manyChanges, changes(rewritten(t).Changes).Path(7))
	got, err := setOf(t, about(v1alpha1.PolicyAllow, condition)).For(rewritten(t)).Authorize(t.Context(), "update", true)
	if err != nil || got.Outcome != fieldperm.Allow {
		t.Errorf("%+v, %v", got, err)
	}
}

// BenchmarkManyChanges evaluates a condition on 30,000 changes.
func BenchmarkManyChanges(b *testing.B) {
	set, write := setOf(b, about(v1alpha1.PolicyAllow, readsChanges)), rewritten(b)
	b.ReportAllocs()
	for b.Loop() {
		if got, err := set.For(write).Authorize(b.Context(), "update", true); err != nil || got.Outcome != fieldperm.Allow {
			b.Fatal(got, err)
		}
	}
}
