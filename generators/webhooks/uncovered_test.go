package webhooks

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/load"
	"github.com/fieldperm/fieldperm/schema/sets"
	"github.com/fieldperm/fieldperm/test/schematest"
)

// compile compiles the built-in kinds and documents.
func compile(t *testing.T, documents ...string) (*schema.Schema, []sets.Document) {
	t.Helper()
	docs := schematest.Documents(t, documents...)
	return schematest.Compile(t, docs), docs.Uncovered
}

func permissionSchema(group, kind, path, verb, barrier string) string {
	return schematest.PermissionSchema("x", group, kind, "{path: "+path+", verb: "+verb+", "+barrier+"}")
}

func uncoveredSet(spec string) string { return schematest.UncoveredSet("x", spec) }

func TestW2_UncoveredRules(t *testing.T) {
	// Every compile has the barrier on the annotation of CustomResourceDefinitions.
	definitions := []string{"apiextensions.k8s.io: customresourcedefinitions", "apiextensions.k8s.io: customresourcedefinitions/status"}
	for name, c := range map[string]struct {
		documents []string
		want      []string
	}{
		"catalogue alone": {nil, nil},
		"spec":            {[]string{permissionSchema("apps", "Deployment", ".spec.paused", "paused", "excluded: true")}, []string{"apps: deployments"}},
		"replicas":        {[]string{permissionSchema("apps", "Deployment", ".spec.replicas", "scale", "excluded: true")}, []string{"apps: deployments", "apps: deployments/scale"}},
		"condition":       {[]string{permissionSchema("apps", "Deployment", ".spec.paused", "paused", "excludedWhen: 'self == true'")}, []string{"apps: deployments"}},
		"no barrier":      {[]string{permissionSchema("apps", "Deployment", ".spec.paused", "paused", "excluded: false")}, nil},
		"status":          {[]string{permissionSchema("apps", "Deployment", ".status", "status", "excluded: true")}, []string{"apps: deployments", "apps: deployments/status"}},
		"metadata":        {[]string{permissionSchema("", "Namespace", ".metadata.labels.a", "a", "excluded: true")}, []string{": namespaces", ": namespaces/finalize", ": namespaces/status"}},
		"data":            {[]string{permissionSchema("", "ConfigMap", ".data.a", "a", "excluded: true")}, []string{": configmaps"}},
		"plural guessed":  {[]string{permissionSchema("networking.k8s.io", "NetworkPolicy", ".metadata.labels.a", "a", "excluded: true"), permissionSchema("", "Endpoints", ".subsets", "subsets", "excluded: true")}, []string{": endpoints", "networking.k8s.io: networkpolicies"}},
		"pods":            {[]string{permissionSchema("", "Pod", ".spec.nodeName", "nodeAssignment", "excluded: true")}, []string{": bindings", ": pods", ": pods/binding", ": pods/ephemeralcontainers", ": pods/resize"}},
		"labels of pods":  {[]string{permissionSchema("", "Pod", ".metadata.labels.a", "a", "excluded: true")}, []string{": bindings", ": pods", ": pods/binding", ": pods/ephemeralcontainers", ": pods/resize", ": pods/status"}},
		"resources":       {[]string{permissionSchema("", "Pod", ".spec.containers", "containers", "excluded: true")}, []string{": pods", ": pods/ephemeralcontainers", ": pods/resize"}},
		"a fragment": {[]string{strings.Replace(permissionSchema("", "X", ".hostNetwork", "hostNamespaces", "excluded: true"), "group: '', kind: X", "fragment: podSpec", 1)}, []string{
			": podtemplates", ": pods", ": pods/ephemeralcontainers", ": pods/resize", ": replicationcontrollers", "apps: controllerrevisions", "apps: daemonsets", "apps: deployments", "apps: replicasets", "apps: statefulsets",
			"batch: cronjobs", "batch: jobs", "extensions: daemonsets", "extensions: deployments", "extensions: replicasets",
		}},
		// Neither endpoint writes the field; both change its owners.
		"owners": {[]string{permissionSchema("", "Pod", ".spec.tolerations", "tolerations", "excluded: true")}, []string{": pods", ": pods/ephemeralcontainers", ": pods/resize"}},
		// The recorder found no value that ingresses/status accepts.
		"only refused values": {[]string{permissionSchema("networking.k8s.io", "Ingress", ".status", "status", "excluded: true")}, []string{"networking.k8s.io: ingresses", "networking.k8s.io: ingresses/status"}},
		"two groups":          {[]string{permissionSchema("", "Event", ".message", "message", "excluded: true")}, []string{": events", "events.k8s.io: events"}},
		"custom": {[]string{
			"apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: mice.example.com}\nspec: {group: example.com, scope: Cluster, names: {kind: Mouse, plural: mice}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {size: {type: integer, x-kubernetes-permission-verb: size, x-kubernetes-permission-excluded: true}}}}}]}",
		}, []string{"example.com: mice"}},
		"body of a subresource": {[]string{permissionSchema("autoscaling", "Scale", ".spec.replicas", "scale", "excluded: true"), permissionSchema("apps", "Deployment", ".spec.paused", "paused", "excluded: true")},
			[]string{"*: */scale", "apps: deployments"}},
		"set on a resource": {[]string{uncoveredSet("{uncoveredPermissions: ['granular:label(a)'], resources: [{apiGroups: [''], resources: [namespaces]}]}")},
			[]string{": namespaces", ": namespaces/finalize", ": namespaces/status"}},
		"set on an object of two groups": {[]string{uncoveredSet("{uncoveredPermissions: ['granular:reason'], resources: [{apiGroups: ['events.k8s.io'], resources: [events]}]}")},
			[]string{": events", "events.k8s.io: events"}},
		"set on pods": {[]string{uncoveredSet("{uncoveredPermissions: ['granular:nodeAssignment'], resources: [{apiGroups: [''], resources: [pods]}]}")},
			[]string{": bindings", ": pods", ": pods/binding", ": pods/ephemeralcontainers", ": pods/resize"}},
		"set on a binding": {[]string{uncoveredSet("{uncoveredPermissions: ['granular:label(a)'], resources: [{apiGroups: [''], resources: [pods/binding]}]}")},
			[]string{": bindings", ": pods/binding"}},
		"set on a part of an object": {[]string{uncoveredSet("{uncoveredPermissions: ['granular:resources'], resources: [{apiGroups: [''], resources: [pods/resize]}]}")},
			[]string{": pods", ": pods/ephemeralcontainers", ": pods/resize"}},
		"set on that of any resource": {[]string{uncoveredSet("{uncoveredPermissions: ['granular:resources'], resources: [{apiGroups: [''], resources: ['*/resize']}]}")},
			[]string{": */resize", ": pods", ": pods/ephemeralcontainers"}},
		"set on a subresource": {[]string{uncoveredSet("{uncoveredPermissions: ['granular:scale'], resources: [{apiGroups: [apps], resources: [deployments/scale, '*/status']}]}")},
			[]string{"apps: *", "apps: */status", "apps: deployments/scale"}},
		"set on a group": {[]string{uncoveredSet("{uncoveredPermissions: ['granular:label(a)'], resources: [{apiGroups: [apps], resources: ['*']}]}"), permissionSchema("apps", "Deployment", ".spec.paused", "paused", "excluded: true")},
			[]string{"apps: *", "apps: */status"}},
		"set of everything on a resource": {[]string{uncoveredSet("{uncoveredPermissions: ['granular:*'], resources: [{apiGroups: [''], resources: [pods]}]}")},
			[]string{": bindings", ": pods", ": pods/*"}},
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

// A set without resources applies to all of them, so single resources add nothing.
func TestW2_UncoveredRulesOfEveryResource(t *testing.T) {
	for verb, want := range map[string][]string{
		"granular:label(a)": {"*: *", "*: */approval", "*: */binding", "*: */ephemeralcontainers", "*: */finalize", "*: */resize", "*: */status"},
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

// ruleLines is lines with the operations, if they are not writes.
func ruleLines(rules []Rule) []string {
	var out []string
	for _, rule := range rules {
		for _, line := range lines([]v1alpha1.ResourceRule{rule.ResourceRule}) {
			if rule.Operations != Writes {
				line = string(rule.Operations) + " of " + line
			}
			out = append(out, line)
		}
	}
	return out
}

func TestW2_UnionAndSubtract(t *testing.T) {
	parse := func(list []string) []Rule {
		var out []Rule
		for _, one := range list {
			operations, name := Writes, one
			if of, rest, ok := strings.Cut(one, " of "); ok {
				operations, name = Operations(of), rest
			}
			group, resource, _ := strings.Cut(name, ": ")
			out = append(out, operations.On([]v1alpha1.ResourceRule{{APIGroups: []string{group}, Resources: []string{resource}}})...)
		}
		return out
	}
	for name, c := range map[string]struct{ a, b, union, difference []string }{
		"nothing":             {nil, nil, nil, nil},
		"same":                {[]string{": pods"}, []string{": pods"}, []string{": pods"}, nil},
		"more":                {[]string{": pods", "apps: deployments"}, []string{": pods"}, []string{": pods", "apps: deployments"}, []string{"apps: deployments"}},
		"fewer":               {[]string{": pods"}, []string{": pods", "apps: deployments"}, []string{": pods", "apps: deployments"}, nil},
		"wildcard covers":     {[]string{"apps: deployments", "apps: deployments/scale"}, []string{"apps: *"}, []string{"apps: *", "apps: deployments/scale"}, []string{"apps: deployments/scale"}},
		"of every group":      {[]string{"apps: deployments/scale"}, []string{"*: */scale"}, []string{"*: */scale"}, nil},
		"everything":          {[]string{"apps: deployments", ": pods/*"}, []string{"*: */*"}, []string{"*: */*"}, nil},
		"one group is no all": {[]string{"*: pods"}, []string{": pods"}, []string{"*: pods"}, []string{"*: pods"}},
		"other operations":    {[]string{"deletions of : pods"}, []string{"*: */*"}, []string{"*: */*", "deletions of : pods"}, []string{"deletions of : pods"}},
		"same operations":     {[]string{"deletions of : pods"}, []string{"deletions of *: *"}, []string{"deletions of *: *"}, nil},
		"unknown operations":  {[]string{"reads of : pods"}, []string{": pods"}, []string{": pods"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ruleLines(Union(parse(c.a), parse(c.b))); !slices.Equal(got, c.union) {
				t.Errorf("union is %q, want %q", got, c.union)
			}
			if got := ruleLines(Subtract(parse(c.a), parse(c.b))); !slices.Equal(got, c.difference) {
				t.Errorf("difference is %q, want %q", got, c.difference)
			}
		})
	}
}

func TestW2_UncoveredOfOneDocument(t *testing.T) {
	compiled, sets := compile(t, permissionSchema("apps", "Deployment", ".spec.paused", "paused", "excluded: true"),
		uncoveredSet("{uncoveredPermissions: ['granular:*'], resources: [{apiGroups: [''], resources: [pods]}]}"))
	if got, want := lines(UncoveredKind(compiled, runtimeschema.GroupKind{Group: "apps", Kind: "Deployment"}, nil)), []string{"apps: deployments"}; !slices.Equal(got, want) {
		t.Errorf("kind: rules are %q, want %q", got, want)
	}
	if got := UncoveredKind(compiled, runtimeschema.GroupKind{Group: "apps", Kind: "DaemonSet"}, nil); len(got) != 0 {
		t.Errorf("kind without barriers: rules are %q", lines(got))
	}
	if got, want := lines(UncoveredSet(compiled, &sets[0].Set.Spec, nil)), []string{": bindings", ": pods", ": pods/*"}; !slices.Equal(got, want) {
		t.Errorf("set: rules are %q, want %q", got, want)
	}
}

// W2: a set about the status needs the webhook for writes of the object, which may store the status (C2) and change its owners (D8).
func TestW2_C2_ASetAboutTheStatusIsAskedForTheObject(t *testing.T) {
	s, _ := compile(t)
	for resources, want := range map[string]string{
		"{apiGroups: [example.com], resources: [things/status]}": "example.com: things",
		"{apiGroups: [example.com], resources: ['*/status']}":    "example.com: *",
		"{apiGroups: ['*'], resources: [things/status]}":         "*: things",
		"{apiGroups: ['*'], resources: ['*/status']}":            "*: *",
		"{apiGroups: [''], resources: [nodes/status]}":           ": nodes",
	} {
		docs, errs := load.Decode("set", []byte(uncoveredSet("{uncoveredPermissions: ['granular:x'], resources: ["+resources+"]}")))
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		var got []string
		for _, rule := range UncoveredSet(s, &docs.Uncovered[0].Set.Spec, nil) {
			for _, resource := range rule.Resources {
				got = append(got, rule.APIGroups[0]+": "+resource)
			}
		}
		if !slices.Contains(got, want) {
			t.Errorf("%s: %q, want %q too", resources, got, want)
		}
	}
}

// W2: sets that do not refuse writes have rules of their own, and none in the webhook that refuses.
func TestW2_RulesOfSetsThatDoNotDeny(t *testing.T) {
	s, sets := compile(t,
		uncoveredSet(`{uncoveredPermissions: ['granular:scale'], resources: [{apiGroups: [apps], resources: [deployments]}], validationActions: [Warn]}`),
		uncoveredSet(`{uncoveredPermissions: ['granular:data'], resources: [{apiGroups: [''], resources: [configmaps]}], validationActions: [Deny, Audit]}`))
	enforced := Subtract(Writes.On(Uncovered(s, sets, nil)), Writes.On(Uncovered(s, nil, nil)))
	if got := ruleLines(enforced); !slices.Equal(got, []string{": configmaps"}) {
		t.Errorf("refuses: %s", got)
	}
	if got := fmt.Sprint(Tried(s, sets, nil)); got != "[{[apps] [deployments deployments/scale]}]" {
		t.Errorf("lets pass: %s", got)
	}
}
