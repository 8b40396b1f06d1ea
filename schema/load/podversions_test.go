package load

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/schema"
)

// TestC8_BarriersOfPodsInSeveralVersions: an include marks the same field of all versions. If each version has an include at its name of
// the field, no barrier of Pods is hidden, and other fields are free of it. Without an include the field may be anywhere.
func TestC8_BarriersOfPodsInSeveralVersions(t *testing.T) {
	const (
		pod     = `{type: object, properties: {spec: {type: object, properties: {hostPID: {type: boolean}, shareProcessNamespace: {type: boolean}}}}}`
		v1      = `{type: object, properties: {size: {type: integer}, template: ` + pod + `}}`
		renamed = `{type: object, properties: {size: {type: integer}, pod: ` + pod + `}}`
		there   = `{"path":".spec.template","include":"podTemplate"}`
		other   = `{"path":".spec.pod","include":"podTemplate"}`
		sharing = `{path: .spec.shareProcessNamespace, verb: example.com/sharing, excludedWhen: self == true}`
	)
	for name, c := range map[string]struct {
		versions versions
		field    string
		bars     string
		whole    []string
	}{
		"renamed, both include":       {versions{v1: v1, v1beta1: renamed, metadata: annotated(there, other), top: byWebhook}, ".spec.pod", "EXAMPLE.COM/SHARING", nil},
		"renamed, one includes":       {versions{v1: v1, v1beta1: renamed, metadata: annotated(there, ""), top: byWebhook}, ".spec.pod", "", []string{"[granular:example.com/sharing]"}},
		"the same path, one includes": {versions{v1: v1, v1beta1: v1, metadata: annotated(there, "")}, ".spec.template", "EXAMPLE.COM/SHARING", nil},
		"the same path, an own verb": {versions{v1: v1, v1beta1: v1, metadata: annotated(there+`,{"path":".spec.template.spec","verb":"example.com/run"}`, `{"path":".spec.template.spec","verb":"example.com/go"}`)},
			".spec.template", "EXAMPLE.COM/SHARING", nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := compileBox(t, c.versions.String(), permissionSchema("x", "", "Pod", sharing))
			if got := verbsAt(t, s, boxOf("v1beta1"), c.field+".spec.shareProcessNamespace"); got != c.bars {
				t.Errorf("v1beta1 has %q, want %q", got, c.bars)
			}
			if got := verbsAt(t, s, boxOf("v1"), ".spec.template.spec.shareProcessNamespace"); got != "EXAMPLE.COM/SHARING" {
				t.Errorf("v1 has %q", got)
			}
			ref := schema.ResourceRef{Group: "example.com", Version: "v1beta1", Resource: "boxes"}
			if got := barsOn(t, s, boxOf("v1beta1"), ref, "", `{"metadata":{"name":"x"},"spec":{"size":1}}`); fmt.Sprint(got) != fmt.Sprint(c.whole) {
				t.Errorf("a write of another field needs %v, want %v", got, c.whole)
			}
		})
	}
}

// TestC8_ABarrierOnPodsOfAnotherVersion holds in templates, as it does on Pods.
func TestC8_ABarrierOnPodsOfAnotherVersion(t *testing.T) {
	// The error says that the version is not known.
	s, _ := compileFragments(t, "apiVersion: fieldperm.dev/v1alpha1\nkind: PermissionSchema\nmetadata: {name: x}\nspec: {group: '', kind: Pod, versions: [v2], permissions: [{path: .spec.nodeName, verb: nodeAssignment, excluded: true}]}\n")
	for kind, path := range map[string]string{"Pod": ".spec.nodeName", "Deployment": ".spec.template.spec.nodeName"} {
		group := map[string]string{"Deployment": "apps"}[kind]
		if got := verbsAt(t, s, gvk(group, "v1", kind), path); got != "NODEASSIGNMENT" {
			t.Errorf("%s has %q", kind, got)
		}
	}
}

// TestC8_ABarrierOnPodsOfAnotherVersionHoldsForWhatItsFieldIsDerivedFrom, as it holds on the field.
func TestC8_ABarrierOnPodsOfAnotherVersionHoldsForWhatItsFieldIsDerivedFrom(t *testing.T) {
	// The error says that the version is not known.
	s, _ := compileFragments(t, "apiVersion: fieldperm.dev/v1alpha1\nkind: PermissionSchema\nmetadata: {name: x}\nspec: {group: '', kind: Pod, versions: [v2], permissions: [{path: .spec.imagePullSecrets, verb: example.com/barred, excluded: true}]}\n")
	if got := verbsAt(t, s, gvk("apps", "v1", "Deployment"), ".spec.template.spec.serviceAccountName"); !strings.Contains(got, "EXAMPLE.COM/BARRED") {
		t.Errorf("serviceAccountName has %q", got)
	}
}
