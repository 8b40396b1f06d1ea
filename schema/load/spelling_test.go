package load

import "testing"

// TestC8_DataOfAControllerRevisionInAnotherSpelling: the StatefulSet controller decodes the data with encoding/json, which ignores case.
func TestC8_DataOfAControllerRevisionInAnotherSpelling(t *testing.T) {
	s := compileBuiltIn(t, permissionSchema("x", "", "Pod", `{path: .spec.hostNetwork, verb: example.com/host, excluded: true}, {path: .metadata.labels.tier, verb: example.com/tier, excluded: true}`))
	revision := gvk("apps", "v1", "ControllerRevision")
	for path, want := range map[string]string{
		".data.spec.template.spec.hostNetwork":     "hostNamespaces EXAMPLE.COM/HOST",
		".data.spec.template.spec.HostNetwork":     "hostNamespaces EXAMPLE.COM/HOST",
		".data.Spec.template.spec.hostNetwork":     "hostNamespaces EXAMPLE.COM/HOST",
		".data.spec.tEmplate.spec.hostNetwork":     "hostNamespaces EXAMPLE.COM/HOST",
		".data.ſpec.template.spec.hostNetwork":     "hostNamespaces EXAMPLE.COM/HOST",
		".data.spec.template.metadata.labels.tier": "templateLabel(prefix of labelKey) EXAMPLE.COM/TIER",
		// Keys of labels have a case.
		".data.spec.template.metadata.labels.Tier": "templateLabel(prefix of labelKey)",
		".data.spec.template.Metadata.Labels.tier": "templateLabel(prefix of labelKey) EXAMPLE.COM/TIER",
	} {
		if got := verbsAt(t, s, revision, path); got != want {
			t.Errorf("%s has %q, want %q", path, got, want)
		}
	}
	// Kubernetes refuses unknown spellings of declared fields.
	if got := verbsAt(t, s, gvk("apps", "v1", "Deployment"), ".spec.template.spec.HostNetwork"); got != "" {
		t.Errorf("a Deployment has %q", got)
	}
}
