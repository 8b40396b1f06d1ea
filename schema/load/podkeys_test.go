package load

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/schema"
)

// permissionSchema returns a PermissionSchema with entries in the flow style of YAML.
func permissionSchema(name, group, kind, entries string) string {
	return fmt.Sprintf("apiVersion: fieldperm.dev/v1alpha1\nkind: PermissionSchema\nmetadata: {name: %s}\nspec: {group: %q, kind: %s, permissions: [%s]}\n", name, group, kind, entries)
}

// setAboutPods returns an UncoveredPermissionSet that names a verb and resources.
func setAboutPods(verb, resources string) string {
	return "apiVersion: fieldperm.dev/v1alpha1\nkind: UncoveredPermissionSet\nmetadata: {name: x}\nspec: {uncoveredPermissions: ['granular:" + verb + "'], resources: " + resources + "}\n"
}

// barriersOfSet returns the verbs that sets make barriers of Deployments.
func barriersOfSet(t *testing.T, s *schema.Schema) string {
	t.Helper()
	got, err := s.Uncovered(t.Context(), schema.ResourceRef{Group: "apps", Version: "v1", Resource: "deployments"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for v := range got {
		names = append(names, strings.TrimPrefix(v.String(), "granular:"))
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// TestC8_ABarrierOnAPrefixOfPodsHoldsForEveryKeyOfTemplates, whatever verb the template gives to the key. Only an administrator's entry
// for the key of Pods takes it out, as it does on Pods.
func TestC8_ABarrierOnAPrefixOfPodsHoldsForEveryKeyOfTemplates(t *testing.T) {
	const a, restarted, container = `["example.com/a"]`, `["kubectl.kubernetes.io/restartedAt"]`, `["kubectl.kubernetes.io/default-container"]`
	prefix := `{path: '.metadata.annotations["example.com/"]', verb: example.com/x, excluded: true}`
	kubectl := `{path: '.metadata.annotations["kubectl.kubernetes.io/"]', verb: example.com/x, excluded: true}`
	for name, c := range map[string]struct{ pods, key, onPods, inTemplates string }{
		"a key of an administrator": {prefix, a, "annotation(prefix of annotationKey) EXAMPLE.COM/X", "templateAnnotation(prefix of annotationKey) example.com/y EXAMPLE.COM/X"},
		"a key of the catalogue":    {kubectl, restarted, "annotation(prefix of annotationKey) EXAMPLE.COM/X", "templateAnnotation(prefix of annotationKey) restart EXAMPLE.COM/X"},
		"a key of both catalogues":  {kubectl, container, "annotation(prefix of annotationKey) EXAMPLE.COM/X defaultContainer", "templateAnnotation(prefix of annotationKey) defaultContainer EXAMPLE.COM/X"},
		"an entry of the key":       {prefix + `, {path: '.metadata.annotations` + a + `', verb: example.com/z}`, a, "annotation(prefix of annotationKey) example.com/z", "templateAnnotation(prefix of annotationKey) example.com/y"},
		"a barrier on the key":      {prefix + `, {path: '.metadata.annotations` + a + `', verb: example.com/z, excluded: true}`, a, "annotation(prefix of annotationKey) EXAMPLE.COM/Z", "templateAnnotation(prefix of annotationKey) example.com/y EXAMPLE.COM/Z"},
		"another prefix":            {kubectl, a, "annotation(prefix of annotationKey)", "templateAnnotation(prefix of annotationKey) example.com/y"},
	} {
		t.Run(name, func(t *testing.T) {
			s := compileWorkloads(t, permissionSchema("a", "", "Pod", c.pods), permissionSchema("b", "apps", "Deployment", `{path: '.spec.template.metadata.annotations`+a+`', verb: example.com/y}`))
			if got := verbsAt(t, s, gvk("", "v1", "Pod"), ".metadata.annotations"+c.key); got != c.onPods {
				t.Errorf("Pods: %q, want %q", got, c.onPods)
			}
			if got := verbsAt(t, s, gvk("apps", "v1", "Deployment"), ".spec.template.metadata.annotations"+c.key); got != c.inTemplates {
				t.Errorf("templates: %q, want %q", got, c.inTemplates)
			}
		})
	}
}

// TestC2_ABarrierOnAPrefixHoldsForKeysOfLowerDocuments: the catalogue's verb of a key does not take it out of an administrator's barrier.
func TestC2_ABarrierOnAPrefixHoldsForKeysOfLowerDocuments(t *testing.T) {
	const key = `.spec.template.metadata.annotations["kubectl.kubernetes.io/restartedAt"]`
	prefix := `{path: '.spec.template.metadata.annotations["kubectl.kubernetes.io/"]', verb: example.com/x, excluded: true}`
	for own, want := range map[string]string{
		"": "templateAnnotation(prefix of annotationKey) EXAMPLE.COM/X restart",
		", {path: '" + key + "', verb: example.com/y}": "templateAnnotation(prefix of annotationKey) example.com/y",
	} {
		s := compileWorkloads(t, permissionSchema("a", "apps", "Deployment", prefix+own))
		if got := verbsAt(t, s, gvk("apps", "v1", "Deployment"), key); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestC8_BarriersOfPodsAndOfTheTemplateAreBothNeeded: the barrier of Pods has a tree of its own, so that its verb does not pass a barrier
// of the template, and no verb of the template passes it.
func TestC8_BarriersOfPodsAndOfTheTemplateAreBothNeeded(t *testing.T) {
	s := compileWorkloads(t,
		permissionSchema("a", "", "Pod", `{path: '.spec.nodeName', verb: example.com/pods, excluded: true}, {path: '.metadata.labels[*]', verb: example.com/labels, excluded: true}, {path: '.metadata.labels.tier', verb: example.com/tier, excluded: true}`),
		permissionSchema("b", "apps", "Deployment", `{path: '.spec.template.spec.nodeName', verb: example.com/template, excluded: true}`))
	k, err := s.Kind(gvk("apps", "v1", "Deployment"))
	if err != nil {
		t.Fatal(err)
	}
	template := k.Root.Map().Child("spec").Map().Child("template")
	for path, c := range map[string]struct {
		node *schema.Node
		want string
	}{
		"nodeName": {template.Map().Child("spec").Map().Child("nodeName"), "[[granular:example.com/template] [granular:example.com/template granular:example.com/pods]]"},
		// The last barrier of a tree counts, which is the most specific one.
		"tier": {template.Map().Child("metadata").Map().Child("labels").Map().Child("tier"), "[[granular:templateLabel] [granular:templateLabel granular:example.com/labels granular:example.com/tier]]"},
	} {
		var trees [][]string
		for _, tree := range c.node.Trees() {
			var verbs []string
			for _, p := range tree {
				verbs = append(verbs, p.Base().String())
			}
			trees = append(trees, verbs)
		}
		if got := fmt.Sprint(trees); got != c.want {
			t.Errorf("%s: trees %s, want %s", path, got, c.want)
		}
	}
}

// TestC8_ASetAboutPodsHoldsForEveryKeyWithItsVerb, on Pods and in templates.
func TestC8_ASetAboutPodsHoldsForEveryKeyWithItsVerb(t *testing.T) {
	const pods, all = "[{apiGroups: [''], resources: [pods]}]", "[{apiGroups: ['', apps], resources: [pods, deployments]}]"
	keys := func(path string) string {
		return `{path: '` + path + `["foo.com/a"]', verb: example.com/special}, {path: '` + path + `["bar.com/b"]', verb: example.com/special}`
	}
	values := func(path, more string) string {
		return `{path: '` + path + `[*]', verb: example.com/tlabel, ` + more + `}`
	}
	const labels, templateLabels, image = ".metadata.labels", ".spec.template.metadata.labels", ".spec.template.spec.containers[*].image"
	for name, c := range map[string]struct{ pods, template, set, want string }{
		"two keys of Pods":             {keys(labels), "", setAboutPods("example.com/special", pods), "templateLabel(bar.com) templateLabel(foo.com)"},
		"two keys of templates":        {"", keys(templateLabels), setAboutPods("label", pods), "example.com/special nodeAssignment templateLabel"},
		"a prefix of one key":          {"", keys(templateLabels), setAboutPods("label(foo.com)", pods), "example.com/special templateLabel(foo.com)"},
		"a key of another prefix":      {"", `{path: '` + templateLabels + `["bar.com/b"]', verb: example.com/special}`, setAboutPods("label(foo.com)", pods), "templateLabel(foo.com)"},
		"another treatment":            {"", values(templateLabels, "parameterizedBy: labelKey"), setAboutPods("label(foo.com)", pods), "example.com/tlabel"},
		"an expression":                {"", `{path: '` + image + `', verb: example.com/img, parameterizedBy: containerName, parameterExpression: "'c-'+self"}`, setAboutPods("image(web)", pods), "example.com/img(c-web) image(web)"},
		"the value of the key":         {values(labels, "parameterizedBy: labelKey"), "", setAboutPods("example.com/tlabel(foo.com/x)", pods), "templateLabel(foo.com)"},
		"a prefix and a whole key":     {`{path: '` + labels + `["foo.com/"]', verb: example.com/special}`, values(templateLabels, "parameterizedBy: labelKey"), setAboutPods("example.com/special", pods), "example.com/tlabel"},
		"the verb of Pods, other keys": {"", `{path: '` + templateLabels + `[*]', verb: label, parameterizedBy: labelKey}`, setAboutPods("label(foo.com)", all), "label label(foo.com)"},
		"the verb of Pods, same keys":  {"", `{path: '` + templateLabels + `[*]', verb: label, parameterizedBy: labelKey, parameterTreatment: slash-delimited-prefix}`, setAboutPods("label(foo.com)", all), "label(foo.com)"},
	} {
		t.Run(name, func(t *testing.T) {
			var documents []string
			for kind, entries := range map[string]string{"Pod": c.pods, "Deployment": c.template} {
				if group := map[string]string{"Deployment": "apps"}[kind]; entries != "" {
					documents = append(documents, permissionSchema(strings.ToLower(kind), group, kind, entries))
				}
			}
			if got := barriersOfSet(t, compileWorkloads(t, append(documents, c.set)...)); got != c.want {
				t.Errorf("barriers %q, want %q", got, c.want)
			}
		})
	}
}
