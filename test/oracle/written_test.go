package oracle

import (
	"testing"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/schema/endpoint"
	"github.com/fieldperm/fieldperm/test/exact"
)

// D13: a change is free if both its cause and its exact value match, and not with one of them alone. Behind a barrier only a constant of a
// new object is free.
func TestD13_FieldsWrittenBecauseOfAnotherField(t *testing.T) {
	const count = `.metadata.annotations["deprecated.daemonset.template.generation"]`
	for name, c := range map[string]struct {
		kind, group, path   string
		old, new            string
		causeWas, causeIs   string
		create, barred, may bool
	}{
		"a default":                   {"Deployment", "apps", ".spec.progressDeadlineSeconds", "", "600", "", "", true, false, true},
		"another value":               {"Deployment", "apps", ".spec.progressDeadlineSeconds", "", "601", "", "", true, false, false},
		"a default in an update":      {"Deployment", "apps", ".spec.progressDeadlineSeconds", "", "600", "", "", false, false, false},
		"a default behind a barrier":  {"Deployment", "apps", ".spec.progressDeadlineSeconds", "", "600", "", "", true, true, true},
		"a name behind a barrier":     {"Namespace", "", `.metadata.labels["kubernetes.io/metadata.name"]`, "", `"a"`, `"a"`, `"a"`, true, true, false},
		"a name":                      {"Namespace", "", `.metadata.labels["kubernetes.io/metadata.name"]`, "", `"a"`, `"a"`, `"a"`, true, false, true},
		"of another kind":             {"DaemonSet", "apps", ".spec.progressDeadlineSeconds", "", "600", "", "", true, false, false},
		"counted with the template":   {"DaemonSet", "apps", count, `"2"`, `"3"`, "{}", `{"a":1}`, false, false, true},
		"counted twice":               {"DaemonSet", "apps", count, `"2"`, `"4"`, "{}", `{"a":1}`, false, false, false},
		"counted without its cause":   {"DaemonSet", "apps", count, `"2"`, `"3"`, "{}", "{}", false, false, false},
		"an address goes with a type": {"Service", "", ".spec.ipFamilyPolicy", `"SingleStack"`, "", `"ClusterIP"`, `"ExternalName"`, false, false, true},
		"the address itself goes":     {"Service", "", ".spec.clusterIP", `"10.0.0.1"`, "", `"ClusterIP"`, `"ExternalName"`, false, false, true},
		"an address goes by itself":   {"Service", "", ".spec.clusterIP", `"10.0.0.1"`, "", `"ExternalName"`, `"ExternalName"`, false, false, false},
		"an address comes":            {"Service", "", ".spec.clusterIP", "", `"10.0.0.1"`, `"ExternalName"`, `"ClusterIP"`, false, false, false},
	} {
		text := func(s string) func() []byte {
			return func() []byte {
				if s == "" {
					return nil
				}
				return []byte(s)
			}
		}
		change := exact.Change{
			Kind: runtimeschema.GroupVersionKind{Group: c.group, Version: "v1", Kind: c.kind}, Path: c.path, Create: c.create, Barred: c.barred,
			Old: text(c.old), New: text(c.new), Field: func(...string) (was, is []byte) { return text(c.causeWas)(), text(c.causeIs)() },
		}
		if got := free(change); got != c.may {
			t.Errorf("%s: free is %v, want %v", name, got, c.may)
		}
	}
}

// D13: only what the API server counts itself is a counter.
func TestD13_Counters(t *testing.T) {
	sets := endpoint.Kind{Group: "apps", Kind: "DaemonSet"}
	for path, want := range map[string]bool{
		`.metadata.annotations["deprecated.daemonset.template.generation"]`: true,
		`.metadata.annotations["note"]`:                                     false,
		".spec.template":                                                    false,
	} {
		if isCounter(sets, path) != want || isCounter(endpoint.Kind{Group: "apps", Kind: "Deployment"}, path) {
			t.Errorf("%s: want a counter of a DaemonSet %v, of a Deployment never", path, want)
		}
	}
}
