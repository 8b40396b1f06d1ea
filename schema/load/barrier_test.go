package load

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/internal/schemacheck"
	"github.com/fieldperm/fieldperm/schema"
)

func setOf(spec string) string {
	return "apiVersion: fieldperm.dev/v1alpha1\nkind: UncoveredPermissionSet\nmetadata: {name: s}\nspec: " + spec
}

func permissionsOf(group, kind, entries string) string {
	return fmt.Sprintf("apiVersion: fieldperm.dev/v1alpha1\nkind: PermissionSchema\nmetadata: {name: p}\nspec: {group: %q, kind: %s, permissions: [%s]}", group, kind, entries)
}

// A barrier that guards no field is refused, with the nearest valid name. A barrier on a resource that may be created later is unmatched.
func TestA6_F5_F6_ASetWithoutEffect(t *testing.T) {
	on := func(verb, group, resource string) string {
		return setOf(fmt.Sprintf("{uncoveredPermissions: [%q], resources: [{apiGroups: [%q], resources: [%q]}]}", verb, group, resource))
	}
	for _, c := range []struct {
		name, set string
		unmatched bool
		want      string // "" for no error
	}{
		{"a good one", on("granular:scale", "apps", "deployments"), false, ""},
		{"the verb for all parameters", on("granular:label", "", "namespaces"), false, ""},
		{"a subresource", on("granular:scale", "apps", "deployments/scale"), false, ""},
		{"everything", setOf("{uncoveredPermissions: ['granular:*']}"), false, ""},
		{"a combination that does not exist beside those that do", setOf("{uncoveredPermissions: ['granular:template'], resources: [{apiGroups: [apps, batch], resources: [deployments, jobs]}]}"), false, ""},
		{"a singular", on("granular:scale", "apps", "deployment"), false, `/spec/resources/0/resources/0: resource "deployment" does not exist: write "deployments"`},
		{"a singular of the core group", on("granular:labels", "", "namespace"), false, `write "namespaces"`},
		{"another group's resource", on("granular:scale", "", "deployments"), false, `it is in group "apps"`},
		{"a resource that no built-in group has", on("granular:scale", "apps", "somethingelse"), false, `resource "somethingelse" does not exist in group "apps"`},
		{"a group with a typo", on("granular:scale", "ap", "deployments"), false, `it is in group "apps"`},
		{"a subresource with a typo", on("granular:scale", "apps", "deployments/scael"), false, `has no subresource "scael"`},
		{"a verb with a typo", on("granular:scal", "apps", "deployments"), false, `/spec/uncoveredPermissions/0: verb "granular:scal" guards no field of "deployments.apps": the nearest verb that does is "granular:scale"`},
		{"a verb with a typo, of everything", setOf("{uncoveredPermissions: ['granular:nodeAsignment']}"), false, `"granular:nodeAssignment"`},
		{"a verb that the resource lacks", on("granular:taints", "", "pods"), false, `verb "granular:taints" guards no field of "pods": `},
		{"a key where a prefix is", on("granular:label(pod-security.kubernetes.io/enforce)", "", "namespaces"), false, `write "granular:label(pod-security.kubernetes.io)"`},
		{"a parameter where there is none", on("granular:scale(x)", "apps", "deployments"), false, `write "granular:scale"`},
		{"a resource that bears none of the verbs", setOf("{uncoveredPermissions: ['granular:scale'], resources: [{apiGroups: [apps], resources: [deployments]}, {apiGroups: [''], resources: [namespaces]}]}"), false, `/spec/resources/1/resources/0: none of the verbs guards a field of "namespaces"`},
		{"a misspelt field of the request", setOf("{uncoveredPermissions: ['granular:scale'], matchConditions: [{name: a, expression: 'request.userinfo.username == \"x\"'}]}"), false, "undefined field 'userinfo'"},
		{"a kind that is not installed", on("granular:example.com/budget", "example.com", "widgets"), true, `resource "widgets" of group "example.com" is not known`},
		{"a verb of a kind to come", setOf("{uncoveredPermissions: ['granular:example.com/budget']}"), true, "install the kind first"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, errs := compileAll(t, c.set)
			for _, err := range errs {
				var e *schema.Error
				if !errors.As(err, &e) || e.Unmatched != c.unmatched {
					t.Errorf("%v: want it unmatched: %v", err, c.unmatched)
				}
			}
			if c.want == "" && len(errs) > 0 || c.want != "" && !slices.ContainsFunc(errs, func(err error) bool { return strings.Contains(err.Error(), c.want) }) {
				t.Errorf("%v, want %q", errs, c.want)
			}
		})
	}
}

// Roles take precedence over permissions: a field with such a role is never charged.
func TestA6_ABarrierOnAFieldThatIsNeverCharged(t *testing.T) {
	for path, want := range map[string]string{".metadata.name": "identifies the object", ".metadata.uid": "the API server itself writes", ".metadata.managedFields": "owners"} {
		_, errs := compileAll(t, permissionsOf("", "ConfigMap", "{path: "+path+", verb: example.com/x, excluded: true}"))
		if len(errs) != 1 || !strings.Contains(errs[0].Error(), "a barrier here holds nothing") || !strings.Contains(errs[0].Error(), want) {
			t.Errorf("%s: %v", path, errs)
		}
	}
	_, errs := compileAll(t, permissionsOf("", "ConfigMap", "{path: .metadata.name, verb: example.com/x}"),
		setOf("{uncoveredPermissions: ['granular:example.com/x'], resources: [{apiGroups: [''], resources: [configmaps]}]}"))
	if len(errs) != 1 || !strings.Contains(errs[0].Error(), "never charged") {
		t.Errorf("a set: %v", errs)
	}
}

// An entry that replaces an entry with a parameter source keeps the parameter, or has a name of its own for it that leaves no verb without the
// parameter that it takes. Otherwise label(…) would disappear, with the barriers on it.
func TestA6_F4_AParameterIsNotDroppedInSilence(t *testing.T) {
	for entries, want := range map[string]string{
		"{path: .metadata.labels, verb: example.com/tags}":                            "",
		"{path: .metadata.labels, verb: example.com/tags, parameterSource: other}":    `add parameterSource: labelKey`,
		"{path: .metadata.labels, verb: example.com/tags, parameterSource: labelKey}": "",
	} {
		s, errs := compileAll(t, permissionsOf("", "Namespace", entries))
		if want == "" && len(errs) > 0 || want != "" && (len(errs) == 0 || !strings.Contains(errs[0].Error(), want)) {
			t.Errorf("%s: %v, want %q", entries, errs, want)
		}
		if want == "" {
			if got := verbsAt(t, s, gvk("", "v1", "Namespace"), ".metadata.labels[*]"); got != "label(prefix of labelKey)" {
				t.Errorf("%s: a label has the verb %q", entries, got)
			}
		}
	}
	// A document has names of its own for parameters, if no verb is left without the one that it takes (H1).
	const source = "{path: '.status.conditions[*].type', parameterSource: condition-type}"
	for entries, want := range map[string]string{
		source: "add parameterSource: conditionType",
		source + ", {path: '.status.conditions[*]', verb: condition, parameterizedBy: condition-type}": "",
	} {
		s, errs := compileAll(t, permissionsOf("apps", "Deployment", entries))
		if want == "" && len(errs) > 0 || want != "" && (len(errs) == 0 || !strings.Contains(errs[0].Error(), want)) {
			t.Errorf("%s: %v, want %q", entries, errs, want)
		}
		if want == "" {
			if got := verbsAt(t, s, gvk("apps", "v1", "Deployment"), ".status.conditions[*]"); got != "condition(condition-type)" {
				t.Errorf("%s: %q", entries, got)
			}
		}
	}
	s, errs := compileAll(t, permissionsOf("apps", "Deployment", "{path: '.spec.template.spec.containers[*].name', verb: example.com/name}"))
	if got := verbsAt(t, s, gvk("apps", "v1", "Deployment"), ".spec.template.spec.containers[*].image"); len(errs) > 0 || got != "image(containerName)" {
		t.Errorf("a key of a list: %q, %v", got, errs)
	}
}

// If some fields of a kind have a verb with a parameter and others have it without, the verb is a barrier at all of them.
func TestA6_C2_ABarrierHoldsWithAndWithoutAParameter(t *testing.T) {
	for _, c := range []struct {
		verb      string
		resources string
		want      string
	}{
		{"securityContext", "{apiGroups: [''], resources: [pods]}", "/pods=4"},
		{"resources", "{apiGroups: [''], resources: [pods]}", "/pods=4"},
		{"backend", "{apiGroups: [apiextensions.k8s.io], resources: [customresourcedefinitions]}, {apiGroups: [admissionregistration.k8s.io], resources: [validatingwebhookconfigurations]}", "apiextensions.k8s.io/customresourcedefinitions=1 admissionregistration.k8s.io/validatingwebhookconfigurations=1"},
		{"scope", "{apiGroups: [admissionregistration.k8s.io], resources: [validatingwebhookconfigurations, validatingadmissionpolicies]}", "admissionregistration.k8s.io/validatingwebhookconfigurations=5 admissionregistration.k8s.io/validatingadmissionpolicies=2"},
		{"failurePolicy", "{apiGroups: [admissionregistration.k8s.io], resources: [validatingwebhookconfigurations, validatingadmissionpolicies]}", "admissionregistration.k8s.io/validatingwebhookconfigurations=1 admissionregistration.k8s.io/validatingadmissionpolicies=1"},
	} {
		_, sets, errs := schemacheck.Compile(documentsOf(t, setOf("{uncoveredPermissions: ['granular:"+c.verb+"'], resources: ["+c.resources+"]}")))
		if len(errs) > 0 {
			t.Errorf("%s: %v", c.verb, errs)
		}
		var got []string
		for _, g := range sets.GuardedFields("d0.yaml") {
			got = append(got, fmt.Sprintf("%s/%s=%d", g.Group, g.Resource, g.Fields))
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%s: guards %q, want %q", c.verb, text, c.want)
		}
	}
	s, sets, _ := schemacheck.Compile(documentsOf(t, setOf("{uncoveredPermissions: ['granular:taints'], resources: [{apiGroups: [''], resources: [pods]}]}")))
	if got := sets.GuardedFields("d0.yaml"); got != nil {
		t.Errorf("taints on pods guard %v", got)
	}
	if _, err := s.Kind(runtimeschema.GroupVersionKind{Version: "v1", Kind: "Pod"}); err != nil {
		t.Errorf("a faulty set is not its kinds' fault: %v", err)
	}
}
