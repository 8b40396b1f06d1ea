package load

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

// placeIn returns a kind and the node of a place in it, also where the types are not known.
func placeIn(t *testing.T, s *schema.Schema, kind runtimeschema.GroupVersionKind, path string) (*schema.Kind, *schema.Node) {
	t.Helper()
	k, err := s.Kind(kind)
	if err != nil {
		t.Fatal(err)
	}
	p, err := fieldpath.ParsePattern(path)
	if err != nil {
		t.Fatal(err)
	}
	n := k.Root
	for _, e := range p {
		switch {
		case e.Any && n.List() != nil:
			n = n.List().Item()
		case n.Map() != nil:
			n = n.Map().Child(e.Name)
		}
	}
	return k, n
}

// verbsAt returns the verbs of a place. Verbs that may be barriers are in capitals.
func verbsAt(t *testing.T, s *schema.Schema, kind runtimeschema.GroupVersionKind, path string) string {
	t.Helper()
	k, n := placeIn(t, s, kind, path)
	var out []string
	for _, p := range n.Permissions() {
		text := strings.TrimPrefix(p.Describe(), "granular:")
		if p.MayBar() {
			text = strings.ToUpper(text)
		}
		out = append(out, text)
	}
	if strings.ToLower(strings.Join(out, " ")) != strings.Join(out, " ") && strings.Contains(strings.Join(out, " "), "EXAMPLE") && !k.MayBar() {
		t.Errorf("%s: the kind does not know of its barrier", kind)
	}
	return strings.Join(out, " ")
}

// permissionSchema returns a PermissionSchema with entries in the flow style of YAML.
func permissionSchema(name, group, kind, entries string) string {
	return fmt.Sprintf("apiVersion: fieldperm.dev/v1alpha1\nkind: PermissionSchema\nmetadata: {name: %s}\nspec: {group: %q, kind: %s, permissions: [%s]}\n", name, group, kind, entries)
}

// TestC2_ABarrierOnAPrefixHoldsForKeysOfLowerDocuments: no verb of a key passes a barrier on its prefix, that of the catalogue as little as that of the
// same document.
func TestC2_ABarrierOnAPrefixHoldsForKeysOfLowerDocuments(t *testing.T) {
	const key = `.spec.template.metadata.annotations["kubectl.kubernetes.io/restartedAt"]`
	prefix := `{path: '.spec.template.metadata.annotations["kubectl.kubernetes.io/"]', verb: example.com/x, excluded: true}`
	for own, want := range map[string]string{
		"": "templateAnnotation(prefix of annotationKey) example.com/x restart EXAMPLE.COM/X",
		", {path: '" + key + "', verb: example.com/y}": "templateAnnotation(prefix of annotationKey) example.com/x example.com/y EXAMPLE.COM/X",
	} {
		s := compileWorkloads(t, permissionSchema("a", "apps", "Deployment", prefix+own))
		if got := verbsAt(t, s, gvk("apps", "v1", "Deployment"), key); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// barsAt reports whether a conditional barrier at a place of a kind holds for a change of values.
func barsAt(t *testing.T, s *schema.Schema, kind runtimeschema.GroupVersionKind, path string, before, after any) bool {
	t.Helper()
	_, n := placeIn(t, s, kind, path)
	return slices.ContainsFunc(n.Permissions(), func(p *schema.Permission) bool {
		return p.MayBar() && p.Bars(t.Context(), before, after)
	})
}

// TestC2_NoPermissionSchemaLiftsTheBarrierOfAnother, neither by a key of a prefix nor by another condition. The names do not matter.
func TestC2_NoPermissionSchemaLiftsTheBarrierOfAnother(t *testing.T) {
	prefix, key := `{path: '.metadata.labels["example.com/"]', verb: example.com/l, excluded: true}`, `{path: '.metadata.labels["example.com/x"]', verb: example.com/x}`
	for _, names := range [][2]string{{"a", "b"}, {"b", "a"}} {
		s := compileWorkloads(t, permissionSchema(names[0], "", "Pod", prefix), permissionSchema(names[1], "", "Pod", key))
		if got, want := verbsAt(t, s, gvk("", "v1", "Pod"), `.metadata.labels["example.com/x"]`), "label(prefix of labelKey) example.com/l example.com/x EXAMPLE.COM/L"; got != want {
			t.Errorf("Pods: %q, want %q", got, want)
		}
		condition := func(text string) string {
			return `{path: .spec.hostNetwork, verb: example.com/host, excludedWhen: "` + text + `"}`
		}
		s = compileWorkloads(t, permissionSchema(names[0], "", "Pod", condition("self == true")), permissionSchema(names[1], "", "Pod", condition("false")))
		if pod := gvk("", "v1", "Pod"); !barsAt(t, s, pod, ".spec.hostNetwork", nil, true) || barsAt(t, s, pod, ".spec.hostNetwork", nil, false) {
			t.Error("the condition of one of the two is lost, or always true")
		}
	}
}

// TestG5_ParametersOfAFragmentComeFromBelow: a parameter of the same name above an include would be taken for the fragment's own.
func TestG5_ParametersOfAFragmentComeFromBelow(t *testing.T) {
	teams := func(source string) string {
		return strings.Replace(runner("{type: object}"), "name: {type: string}}}", "teams: {type: object, x-kubernetes-permission-parameter-source: "+source+
			", additionalProperties: {type: object, properties: {template: "+partial(withKey+", ", loose)+"}}}}}", 1)
	}
	if _, errs := compileFragments(t, teams("team")); len(errs) > 0 {
		t.Error(errs)
	}
	_, errs := compileFragments(t, teams("containerName"))
	if len(errs) == 0 || !strings.Contains(errs[0].Error(), "give the parameter above another name") {
		t.Errorf("%v", errs)
	}
}
