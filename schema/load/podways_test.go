package load

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// barriersAt returns an entry with a barrier and a verb of its own for each path.
func barriersAt(paths ...string) string {
	var entries []string
	for i, path := range paths {
		entries = append(entries, fmt.Sprintf("{path: '%s', verb: example.com/x%d, excluded: true}", path, i))
	}
	return strings.Join(entries, ", ")
}

// TestC8_ManyBarriersOnKeysOfPodsTakeMemoryWithTheirNumber, and not with its square: each holds also at the field that the API server derives the keys from.
func TestC8_ManyBarriersOnKeysOfPodsTakeMemoryWithTheirNumber(t *testing.T) {
	allocated := func(keys int) uint64 {
		var paths []string
		for i := range keys {
			paths = append(paths, fmt.Sprintf(".spec.nodeSelector.k%d", i))
		}
		document := permissionSchema("a", "", "Pod", barriersAt(paths...))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		s, errs := compileFragments(t, document)
		runtime.ReadMemStats(&after)
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		if got := strings.Count(verbsAt(t, s, gvk("apps", "v1", "Deployment"), ".spec.template.spec.runtimeClassName"), "EXAMPLE.COM"); got != keys {
			t.Errorf("%d keys: %d barriers hold at the runtime class", keys, got)
		}
		return after.TotalAlloc - before.TotalAlloc
	}
	allocated(1) // What a process makes once.
	least := allocated(1)
	half, whole := allocated(1000)-least, allocated(2000)-least
	if whole > half*5/2 {
		t.Errorf("1000 keys take %d KiB, 2000 keys %d KiB", half>>10, whole>>10)
	}
}

// TestC8_StepsOfKeysDoNotDoubleTheWork: the document is refused because Pods have no such keys, at once.
func TestC8_StepsOfKeysDoNotDoubleTheWork(t *testing.T) {
	var paths []string
	for i := range 18 {
		path := ".spec.nodeSelector" + strings.Repeat("[*]", i)
		paths = append(paths, path+"[*]", path+".a")
	}
	_, errs := compileFragments(t, permissionSchema("a", "", "Pod", barriersAt(paths...)))
	if len(errs) != len(paths)-2 {
		t.Errorf("%d faults of %d entries: %.300q", len(errs), len(paths), errs)
	}
}

// TestC8_BarriersOnPodsHaveABoundedNumberOfPlaces, and no kind that Pods are made from is in force if there are more.
func TestC8_BarriersOnPodsHaveABoundedNumberOfPlaces(t *testing.T) {
	var paths []string
	for i := range 300 {
		path := ".spec.nodeSelector" + strings.Repeat("[*]", i)
		paths = append(paths, path+"[*]", path+".a")
	}
	s, errs := compileFragments(t, permissionSchema("a", "", "Pod", barriersAt(paths...)))
	found := false
	for _, err := range errs {
		found = found || strings.HasPrefix(err.Error(), "d0.yaml:/spec/permissions/") && strings.Contains(err.Error(), `".spec.nodeSelector": the entries of the kind stand for more than 50000 places`)
	}
	if !found {
		t.Errorf("no fault says so: %.500q", errs)
	}
	for kind := range workloads {
		if _, err := s.Kind(kind); err == nil {
			t.Errorf("%s is in force", kind)
		}
	}
}
