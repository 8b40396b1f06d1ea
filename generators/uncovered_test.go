package generators

import (
	"slices"
	"testing"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/load"
)

// compile compiles the built-in kinds and documents.
func compile(t *testing.T, documents ...string) (*schema.Schema, []schema.UncoveredDocument) {
	t.Helper()
	topology, err := load.BuiltIn()
	if err != nil {
		t.Fatal(err)
	}
	catalogue, err := load.Catalogue(false)
	if err != nil {
		t.Fatal(err)
	}
	docs := schema.Documents{Topologies: []schema.Topology{topology}, Permissions: catalogue}
	for _, document := range documents {
		more, errs := load.Decode("test", []byte(document))
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		docs = docs.Append(more)
	}
	compiled, errs := schema.Compile(docs)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return compiled, docs.Uncovered
}

func permissionSchema(group, kind, path, verb, barrier string) string {
	return "apiVersion: fieldperm.dev/v1alpha1\nkind: PermissionSchema\nmetadata: {name: x}\nspec: {group: '" + group + "', kind: " + kind +
		", permissions: [{path: " + path + ", verb: " + verb + ", " + barrier + "}]}\n"
}

func uncoveredSet(spec string) string {
	return "apiVersion: fieldperm.dev/v1alpha1\nkind: UncoveredPermissionSet\nmetadata: {name: x}\nspec: " + spec + "\n"
}

func TestW2_UncoveredRules(t *testing.T) {
	// Every compile has the barrier on the annotation of CustomResourceDefinitions.
	definitions := []string{"apiextensions.k8s.io: customresourcedefinitions", "apiextensions.k8s.io: customresourcedefinitions/status"}
	for name, c := range map[string]struct {
		documents []string
		want      []string
	}{
		"catalogue alone": {nil, nil},
		"spec":            {[]string{permissionSchema("apps", "Deployment", ".spec.paused", "paused", "excluded: true")}, []string{"apps: deployments", "apps: deployments/scale"}},
		"condition":       {[]string{permissionSchema("apps", "Deployment", ".spec.paused", "paused", "excludedWhen: 'self == true'")}, []string{"apps: deployments", "apps: deployments/scale"}},
		"no barrier":      {[]string{permissionSchema("apps", "Deployment", ".spec.paused", "paused", "excluded: false")}, nil},
		"status":          {[]string{permissionSchema("apps", "Deployment", ".status", "status", "excluded: true")}, []string{"apps: deployments", "apps: deployments/status"}},
		"metadata":        {[]string{permissionSchema("", "Namespace", ".metadata.labels.a", "a", "excluded: true")}, []string{": namespaces", ": namespaces/finalize", ": namespaces/status"}},
		"data":            {[]string{permissionSchema("", "ConfigMap", ".data.a", "a", "excluded: true")}, []string{": configmaps"}},
		"plural guessed":  {[]string{permissionSchema("networking.k8s.io", "NetworkPolicy", ".metadata.labels.a", "a", "excluded: true"), permissionSchema("", "Endpoints", ".subsets", "subsets", "excluded: true")}, []string{": endpoints", "networking.k8s.io: networkpolicies", "networking.k8s.io: networkpolicies/status"}},
		"pods":            {[]string{permissionSchema("", "Pod", ".spec.nodeName", "nodeAssignment", "excluded: true")}, []string{": pods", ": pods/ephemeralcontainers", ": pods/resize", ": pods/scale"}},
		"custom": {[]string{
			"apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: mice.example.com}\nspec: {group: example.com, scope: Cluster, names: {kind: Mouse, plural: mice}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {size: {type: integer, x-kubernetes-permission-verb: size, x-kubernetes-permission-excluded: true}}}}}]}",
		}, []string{"example.com: mice"}},
		"body of a subresource": {[]string{permissionSchema("autoscaling", "Scale", ".spec.replicas", "scale", "excluded: true"), permissionSchema("apps", "Deployment", ".spec.paused", "paused", "excluded: true")},
			[]string{"*: */scale", "apps: deployments"}},
		"set on a resource": {[]string{uncoveredSet("{uncoveredPermissions: ['granular:label(a)'], resources: [{apiGroups: [''], resources: [namespaces]}]}")},
			[]string{": namespaces", ": namespaces/finalize", ": namespaces/scale", ": namespaces/status"}},
		"set on a subresource": {[]string{uncoveredSet("{uncoveredPermissions: ['granular:scale'], resources: [{apiGroups: [apps], resources: [deployments/scale, '*/status']}]}")},
			[]string{"apps: */status", "apps: deployments/scale"}},
		"set on a group": {[]string{uncoveredSet("{uncoveredPermissions: ['granular:label(a)'], resources: [{apiGroups: [apps], resources: ['*']}]}"), permissionSchema("apps", "Deployment", ".spec.paused", "paused", "excluded: true")},
			[]string{"apps: *", "apps: */approval", "apps: */ephemeralcontainers", "apps: */finalize", "apps: */resize", "apps: */scale", "apps: */status"}},
		"set of everything on a resource": {[]string{uncoveredSet("{uncoveredPermissions: ['granular:*'], resources: [{apiGroups: [''], resources: [pods]}]}")},
			[]string{": pods", ": pods/*"}},
	} {
		t.Run(name, func(t *testing.T) {
			compiled, sets := compile(t, c.documents...)
			plurals := map[runtimeschema.GroupKind]string{{Group: "example.com", Kind: "Mouse"}: "mice"}
			got := lines(Uncovered(compiled, sets, plurals))
			want := append(slices.Clone(definitions), c.want...)
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("rules are %q, want %q", got, want)
			}
		})
	}
}

// A set without resources is for all, and leaves nothing to say of single ones.
func TestW2_UncoveredRulesOfEveryResource(t *testing.T) {
	for verb, want := range map[string][]string{
		"granular:label(a)": {"*: *", "*: */approval", "*: */ephemeralcontainers", "*: */finalize", "*: */resize", "*: */scale", "*: */status"},
		"granular:*":        {"*: */*"},
	} {
		compiled, sets := compile(t, uncoveredSet("{uncoveredPermissions: ['"+verb+"']}"))
		if got := lines(Uncovered(compiled, sets, nil)); !slices.Equal(got, want) {
			t.Errorf("%s: rules are %q, want %q", verb, got, want)
		}
	}
}

func lines(rules []v1alpha1.ResourceRule) []string {
	var out []string
	for _, rule := range rules {
		for _, resource := range rule.Resources {
			out = append(out, rule.APIGroups[0]+": "+resource)
		}
	}
	return out
}
