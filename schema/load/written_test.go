package load

import (
	"errors"
	"testing"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/endpoint"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

// D13: every recorded field, cause and original exists in its kind, and every free write is compiled in.
func TestD13_RecordedFieldsExist(t *testing.T) {
	compiled, errs := Offline(nil)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	free := map[string]bool{}
	for _, w := range endpoint.FreeWrites() {
		for _, version := range w.Versions {
			free[w.Kind.String()+" "+version+" "+w.Field] = true
		}
	}
	for _, w := range endpoint.Writes() {
		for _, version := range w.Versions {
			kind, err := compiled.Kind(runtimeschema.GroupVersionKind{Group: w.Kind.Group, Version: version, Kind: w.Kind.Kind})
			if err != nil {
				t.Errorf("%s: %v", w.Kind, err)
				continue
			}
			for _, path := range []string{w.Field, w.With, w.Copies} {
				if path != "" && nodeAt(t, kind.Root, path) == nil {
					t.Errorf("%s %s has no field %s", w.Kind, version, path)
				}
			}
			if n := nodeAt(t, kind.Root, w.Field); n != nil && (n.Written() != nil) != free[w.Kind.String()+" "+version+" "+w.Field] {
				t.Errorf("%s %s %s: written by the API server: %v", w.Kind, version, w.Field, n.Written() != nil)
			}
		}
	}
}

// nodeAt returns the node at a path, nil if the types have no such field.
func nodeAt(t *testing.T, n *schema.Node, path string) *schema.Node {
	t.Helper()
	p, err := fieldpath.ParsePattern(path)
	if err != nil {
		t.Error(err)
		return nil
	}
	for _, name := range p.Steps() {
		switch {
		case n.List() != nil && n.Map() == nil && name == "":
			n = n.List().Item()
		case n.Map() != nil && n.List() == nil:
			n = n.Map().Child(name)
		default:
			return nil
		}
	}
	return n
}

// D13: an administrator's entry for a field neither removes nor adds recorded writes of it.
func TestD13_DefaultsOfTheServerAreFree(t *testing.T) {
	compiled, errs := Offline(nil)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		kind runtimeschema.GroupVersionKind
		path []string
		free bool
	}{
		{gvk("apps", "v1", "Deployment"), []string{"spec", "progressDeadlineSeconds"}, true},
		{gvk("apps", "v1", "DaemonSet"), []string{"metadata", "annotations", "deprecated.daemonset.template.generation"}, true},
		{gvk("", "v1", "Service"), []string{"spec", "sessionAffinity"}, true},
		{gvk("", "v1", "Service"), []string{"spec", "clusterIP"}, true},
		// The samples have other values for these.
		{gvk("batch", "v1", "CronJob"), []string{"spec", "suspend"}, true},
		{gvk("batch", "v1", "Job"), []string{"spec", "suspend"}, true},
		{gvk("autoscaling", "v2", "HorizontalPodAutoscaler"), []string{"spec", "minReplicas"}, true},
		{gvk("apps", "v1", "Deployment"), []string{"spec", "replicas"}, true},
		// A client could choose them.
		{gvk("autoscaling", "v2", "HorizontalPodAutoscaler"), []string{"spec", "behavior", "scaleUp", "policies"}, false},
		{gvk("autoscaling", "v2", "HorizontalPodAutoscaler"), []string{"spec", "behavior", "scaleDown", "policies"}, false},
		{gvk("batch", "v1", "Job"), []string{"spec", "selector"}, false},
		{gvk("", "v1", "Pod"), []string{"spec", "priority"}, false},
		{gvk("", "v1", "Pod"), []string{"spec", "resources", "requests", "cpu"}, false},
		{gvk("", "v1", "PersistentVolumeClaim"), []string{"metadata", "finalizers"}, false},
	} {
		n := node(t, compiled, c.kind, c.path...)
		free := n.Written() != nil
		if l := n.List(); l != nil && n.Map() == nil {
			free = free || l.Item().Written() != nil
		}
		if free != c.free {
			t.Errorf("%s %q: free %v, want %v", c.kind, c.path, free, c.free)
		}
	}
}
