package oracle

import (
	"strings"
	"testing"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/schema/load"
	"github.com/fieldperm/fieldperm/test/exact"
)

// D13: the oracle and the catalogue name the same fields, with the same cause, and neither names one alone.
func TestD13_TheOracleAndTheCatalogueFreeTheSameFields(t *testing.T) {
	documents, err := load.Catalogue(false)
	if err != nil {
		t.Fatal(err)
	}
	used := map[int]bool{}
	for _, d := range documents {
		for _, e := range d.Entries {
			if e.WrittenWhen == "" {
				continue
			}
			found := false
			for i := range writings {
				w := &writings[i]
				cause := ""
				if w.cause != nil {
					cause = "." + strings.Join(w.cause, ".")
				}
				if w.about(d.Kind+"."+d.Group, e.Path) && cause == e.WrittenWith {
					found, used[i] = true, true
				}
			}
			if !found {
				t.Errorf("%s.%s %s: the catalogue frees it, because of %q: writings has no such row", d.Kind, d.Group, e.Path, e.WrittenWith)
			}
		}
	}
	for i := range writings {
		if !used[i] {
			t.Errorf("writings: %s %s: the catalogue frees no such field", writings[i].kinds, writings[i].path)
		}
	}
}

// D13: the cause and the exact value make a change free; neither alone does, and nothing does behind a barrier.
func TestD13_WhatIsWrittenBecauseOfAnotherField(t *testing.T) {
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
		"a default behind a barrier":  {"Deployment", "apps", ".spec.progressDeadlineSeconds", "", "600", "", "", true, true, false},
		"of another kind":             {"DaemonSet", "apps", ".spec.progressDeadlineSeconds", "", "600", "", "", true, false, false},
		"counted with the template":   {"DaemonSet", "apps", count, `"2"`, `"3"`, "{}", `{"a":1}`, false, false, true},
		"counted twice":               {"DaemonSet", "apps", count, `"2"`, `"4"`, "{}", `{"a":1}`, false, false, false},
		"counted without its cause":   {"DaemonSet", "apps", count, `"2"`, `"3"`, "{}", "{}", false, false, false},
		"an address goes with a type": {"Service", "", ".spec.clusterIP", `"10.0.0.1"`, "", `"ClusterIP"`, `"ExternalName"`, false, false, true},
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
