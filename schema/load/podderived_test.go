package load

import (
	"slices"
	"strings"
	"testing"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/schema"
)

const appArmor = `.metadata.annotations["container.apparmor.security.beta.kubernetes.io/web"]`

// TestC8_ABarrierHoldsAtTheFieldsItsFieldIsDerivedFrom: in a Pod the API server writes the barred field, and in a template nothing does.
func TestC8_ABarrierHoldsAtTheFieldsItsFieldIsDerivedFrom(t *testing.T) {
	const container = ".spec.containers[*]"
	for name, c := range map[string]struct {
		path, more, at string
		holds          bool
	}{
		"the other name":                     {".spec.serviceAccountName", "excluded: true", ".spec.serviceAccount", true},
		"the first name":                     {".spec.serviceAccount", "excluded: true", ".spec.serviceAccountName", true},
		"a condition on the other name":      {".spec.serviceAccountName", "excludedWhen: \"self == 'admin'\"", ".spec.serviceAccount", true},
		"the profile of AppArmor":            {container + ".securityContext.appArmorProfile", "excluded: true", appArmor, true},
		"a field of the profile":             {container + ".securityContext.appArmorProfile.type", "excluded: true", appArmor, true},
		"what has the profile":               {container + ".securityContext", "excluded: true", appArmor, true},
		"another part of an item that comes": {".spec.volumes[*].hostPath", "excluded: true", ".spec.serviceAccountName", false},
		"another annotation":                 {container + ".securityContext", "excluded: true", ".metadata.annotations.other", false},
		"the port of the host":               {container + ".ports[*].hostPort", "excluded: true", ".spec.hostNetwork", true},
		"requests":                           {container + ".resources.requests", "excluded: true", container + ".resources.limits", true},
		"requests of initializers":           {".spec.initContainers[*].resources.requests", "excluded: true", container + ".resources.limits", false},
		"priority":                           {".spec.priority", "excludedWhen: 'self > 1000'", ".spec.priorityClassName", true},
		"what the runtime adds":              {".spec.overhead", "excluded: true", ".spec.runtimeClassName", true},
		"the port, where the host's is":      {container + ".ports[*].hostPort", "excluded: true", container + ".ports[*].containerPort", true},
		"secrets of the account":             {".spec.imagePullSecrets", "excluded: true", ".spec.serviceAccountName", true},
		"a label of the node":                {`.metadata.labels["topology.kubernetes.io/zone"]`, "excluded: true", ".spec.nodeName", true},
		"a prefix of labels of the node":     {`.metadata.labels["topology.kubernetes.io/"]`, "excluded: true", ".spec.nodeName", true},
		"all labels":                         {`.metadata.labels[*]`, "excluded: true", ".spec.nodeName", true},
		"the labels":                         {`.metadata.labels`, "excluded: true, parameterSource: labelKey", ".spec.nodeName", true},
		"another label":                      {`.metadata.labels["example.com/zone"]`, "excluded: true", ".spec.nodeName", false},
		"the volume of the token":            {".spec.volumes", "excluded: true", ".spec.automountServiceAccountToken", true},
		"resources of the Pod":               {".spec.resources", "excluded: true", container + ".resources.limits", true},
		"what counts for the Pod":            {".spec.resources", "excluded: true", ".spec.initContainers[*].restartPolicy", false},
		"keys that do not match":             {".spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[*].labelSelector", "excluded: true", ".spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[*].mismatchLabelKeys", true},
		"labels that a constraint names":     {".spec.topologySpreadConstraints", "excluded: true", ".metadata.labels", false},
		"a field that is not derived":        {".spec.hostPID", "excluded: true", ".spec.hostNetwork", false},
	} {
		t.Run(name, func(t *testing.T) {
			s := compileWorkloads(t, barrier("", "Pod", c.path, "example.com/barred", c.more))
			for kind, template := range workloads {
				if got := verbsAt(t, s, kind, template+c.at); strings.Contains(got, "EXAMPLE.COM/BARRED") != c.holds {
					t.Errorf("%s: %s has %q, want the barrier: %t", kind.Kind, c.at, got, c.holds)
				}
			}
		})
	}
}

// TestC8_ASetHoldsAtTheFieldsItsFieldsAreDerivedFrom, at the verb that these fields have in the template.
func TestC8_ASetHoldsAtTheFieldsItsFieldsAreDerivedFrom(t *testing.T) {
	const pods = "[{apiGroups: [''], resources: [pods]}]"
	for verb, want := range map[string]string{
		"securityContext":      "confinement securityContext",
		"securityContext(web)": "confinement securityContext(web)",
		"ports":                "hostNamespaces ports",
		"priority":             "priority",
		"preemptionPolicy":     "preemptionPolicy priority",
		"image":                "image",
		"imagePullPolicy":      "imagePullPolicy",
		"imagePullSecrets":     "imagePullSecrets workloadIdentity",
		"resources":            "resources",
		"topologySpread":       "topologySpread",
		"volumes":              "tokenAutomount volumes workloadIdentity",
	} {
		if got := barriersOfSet(t, compileWorkloads(t, setAboutPods(verb, pods))); got != want {
			t.Errorf("%s: barriers %q, want %q", verb, got, want)
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

// TestC8_AConditionOnTheOldValueCountsForNewPods: each change of a template makes Pods, which had no value before.
func TestC8_AConditionOnTheOldValueCountsForNewPods(t *testing.T) {
	s := compileWorkloads(t, barrier("", "Pod", ".spec.nodeName", "example.com/node", "excludedWhen: 'oldSelf == null && self != null'"))
	if !barsAt(t, s, gvk("apps", "v1", "Deployment"), ".spec.template.spec.nodeName", "a", "b") {
		t.Error("a template may choose another node")
	}
	if barsAt(t, s, gvk("", "v1", "Pod"), ".spec.nodeName", "a", "b") {
		t.Error("the condition is false for a Pod that exists")
	}
}

// TestC2_NoPermissionSchemaLiftsTheBarrierOfAnother, neither by a key of a prefix nor by another condition. The names do not matter.
func TestC2_NoPermissionSchemaLiftsTheBarrierOfAnother(t *testing.T) {
	prefix, key := `{path: '.metadata.labels["example.com/"]', verb: example.com/l, excluded: true}`, `{path: '.metadata.labels["example.com/x"]', verb: example.com/x}`
	for _, names := range [][2]string{{"a", "b"}, {"b", "a"}} {
		s := compileWorkloads(t, permissionSchema(names[0], "", "Pod", prefix), permissionSchema(names[1], "", "Pod", key))
		if got, want := verbsAt(t, s, gvk("", "v1", "Pod"), `.metadata.labels["example.com/x"]`), "label(prefix of labelKey) EXAMPLE.COM/L example.com/x"; got != want {
			t.Errorf("Pods: %q, want %q", got, want)
		}
		if got := verbsAt(t, s, gvk("apps", "v1", "Deployment"), `.spec.template.metadata.labels["example.com/x"]`); !strings.Contains(got, "EXAMPLE.COM/L") {
			t.Errorf("templates: %q", got)
		}
		condition := func(text string) string {
			return `{path: .spec.hostNetwork, verb: example.com/host, excludedWhen: "` + text + `"}`
		}
		s = compileWorkloads(t, permissionSchema(names[0], "", "Pod", condition("self == true")), permissionSchema(names[1], "", "Pod", condition("false")))
		for kind, path := range map[runtimeschema.GroupVersionKind]string{gvk("", "v1", "Pod"): ".spec.hostNetwork", gvk("apps", "v1", "Deployment"): ".spec.template.spec.hostNetwork"} {
			if !barsAt(t, s, kind, path, nil, true) || barsAt(t, s, kind, path, nil, false) {
				t.Errorf("%s: the condition of one of the two is lost, or always true", kind.Kind)
			}
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
