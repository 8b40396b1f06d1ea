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

// workloads are the kinds that Pods are made from, with the place of the template.
var workloads = map[runtimeschema.GroupVersionKind]string{
	gvk("apps", "v1", "Deployment"):           ".spec.template",
	gvk("apps", "v1", "ReplicaSet"):           ".spec.template",
	gvk("apps", "v1", "StatefulSet"):          ".spec.template",
	gvk("apps", "v1", "DaemonSet"):            ".spec.template",
	gvk("apps", "v1", "ControllerRevision"):   ".data.spec.template",
	gvk("batch", "v1", "Job"):                 ".spec.template",
	gvk("batch", "v1", "CronJob"):             ".spec.jobTemplate.spec.template",
	gvk("", "v1", "ReplicationController"):    ".spec.template",
	gvk("", "v1", "PodTemplate"):              ".template",
	gvk("extensions", "v1beta1", "DaemonSet"): ".spec.template",
}

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

// TestC8_ABarrierOfAPodSchemaHoldsInTemplates: what a user may not create as a Pod, a controller does not create for the user.
func TestC8_ABarrierOfAPodSchemaHoldsInTemplates(t *testing.T) {
	for name, c := range map[string]struct {
		path, verb, more string
		at, want         string
	}{
		"a field without a verb of its own": {".spec.shareProcessNamespace", "example.com/sharing", "excludedWhen: self == true", ".spec.shareProcessNamespace", "EXAMPLE.COM/SHARING"},
		"the verb of the field":             {".spec.nodeName", "nodeAssignment", "excluded: true", ".spec.nodeName", "NODEASSIGNMENT"},
		"another verb":                      {".spec.nodeName", "example.com/node", "excluded: true", ".spec.nodeName", "nodeAssignment EXAMPLE.COM/NODE"},
		"with a parameter":                  {".spec.containers[*].image", "example.com/picture", "parameterizedBy: containerName, excluded: true", ".spec.containers[*].image", "image(containerName) EXAMPLE.COM/PICTURE(CONTAINERNAME)"},
		"a label":                           {".metadata.labels.tier", "example.com/tier", "excluded: true", ".metadata.labels.tier", "templateLabel(prefix of labelKey) EXAMPLE.COM/TIER"},
		"the verb of labels":                {".metadata.labels", "labels", "parameterSource: labelKey, excluded: true", ".metadata.labels", "TEMPLATELABELS"},
		"the verb of finalizers":            {".metadata.finalizers", "finalizers", "excluded: true", ".metadata.finalizers", "TEMPLATEFINALIZERS"},
		"the whole specification":           {".spec", "specification", "excluded: true", ".spec", "SPECIFICATION"},
		"no barrier":                        {".spec.nodeName", "example.com/node", "excluded: false", ".spec.nodeName", "nodeAssignment"},
	} {
		t.Run(name, func(t *testing.T) {
			s := compileWorkloads(t, barrier("", "Pod", c.path, c.verb, c.more))
			for kind, template := range workloads {
				want := c.want
				if kind.Kind == "ControllerRevision" {
					want = strings.NewReplacer("(containerName)", "", "(CONTAINERNAME)", "").Replace(want)
				}
				if got := verbsAt(t, s, kind, template+c.at); got != want {
					t.Errorf("%s: %s has %q, want %q", kind.Kind, c.at, got, want)
				}
				if k, err := s.Kind(kind); err != nil || k.MayBar() != (c.more != "excluded: false") {
					t.Errorf("%s: %v, or it does not know of the barrier", kind.Kind, err)
				}
			}
		})
	}
	// Only barriers, only of Pods, and only in what a template has.
	for _, document := range []string{
		barrier("", "Pod", ".status.phase", "phase", "excluded: true"),
		barrier("apps", "ReplicaSet", ".spec.template.spec.nodeName", "nodeAssignment", "excluded: true"),
	} {
		s := compileWorkloads(t, document)
		if k, err := s.Kind(gvk("apps", "v1", "Deployment")); err != nil || k.MayBar() {
			t.Errorf("%s: a barrier in Deployments, or %v", document, err)
		}
	}
}

// TestC8_AFaultyPodSchemaFailsTheTemplates: where the barriers of Pods are not known, those of templates are not known either, whatever the
// fault, and whether or not its entry could be read.
func TestC8_AFaultyPodSchemaFailsTheTemplates(t *testing.T) {
	for name, entries := range map[string]string{
		"a condition with the verb of the field": "{path: .spec.nodeName, verb: nodeAssignment, excludedWhen: 'self =='}",
		"a condition with another verb":          "{path: .spec.hostNetwork, verb: example.com/host, excludedWhen: 'self =='}",
		"a parameter expression":                 "{path: '.spec.containers[*].image', verb: example.com/img, parameterizedBy: containerName, parameterExpression: 'self +', excluded: true}",
		"a path twice":                           "{path: .spec.hostNetwork, verb: other}, {path: .spec.hostNetwork, verb: hostNamespaces, excluded: true}",
		"no verb name":                           "{path: .spec.hostNetwork, verb: Host_Network, excluded: true}",
		"no path":                                "{path: 'spec..hostNetwork', verb: hostNamespaces, excluded: true}",
		"a barrier without a verb":               "{path: .spec.hostNetwork, excluded: true}",
	} {
		t.Run(name, func(t *testing.T) {
			s, errs := compileFragments(t, permissionSchema("x", "", "Pod", entries))
			if len(errs) == 0 {
				t.Fatal("no fault")
			}
			for _, kind := range []string{"Deployment", "StatefulSet"} {
				if _, err := s.Kind(gvk("apps", "v1", kind)); err == nil {
					t.Errorf("%s: no error", kind)
				}
			}
			if _, err := s.Kind(gvk("", "v1", "ConfigMap")); err != nil {
				t.Errorf("a ConfigMap has no template: %v", err)
			}
		})
	}
}

// TestC8_ASetAboutPodsHoldsInTemplates: the barrier is at the verb that the field has in the template.
func TestC8_ASetAboutPodsHoldsInTemplates(t *testing.T) {
	const pods = "[{apiGroups: [''], resources: [pods]}]"
	for name, c := range map[string]struct{ verbs, resources, more, want string }{
		"the same verb":           {"granular:nodeAssignment", pods, "", "nodeAssignment"},
		"a verb of one container": {"granular:image(web)", pods, "", "image(web)"},
		"labels":                  {"granular:label(example.com)', 'granular:labels", pods, "", "nodeAssignment templateLabel(example.com) templateLabels"},
		"metadata":                {"granular:metadata", pods, "", "nodeAssignment templateMetadata"},
		"finalizers":              {"granular:finalizer(example.com)", pods, "", "templateFinalizer(example.com)"},
		"a key that stands apart": {"granular:applySet", pods, "", "templateAnnotation(applyset.kubernetes.io) templateLabel(applyset.kubernetes.io)"},
		"the specification":       {"granular:specification", pods, "", "confinement template"},
		"everything":              {"granular:*", pods, "", "template templateMetadata"},
		"the status":              {"granular:condition", pods, "", ""},
		"owner references":        {"granular:ownerReferences", pods, "", ""},
		"a subresource":           {"granular:nodeAssignment", "[{apiGroups: [''], resources: [pods/binding]}]", "", ""},
		"another resource":        {"granular:nodeAssignment", "[{apiGroups: [''], resources: [pods/binding, replicationcontrollers]}]", "", ""},
		"both named":              {"granular:image', 'granular:label", "[{apiGroups: ['', apps], resources: [pods, deployments]}]", "", "image label nodeAssignment templateLabel"},
		"every resource":          {"granular:*", "[{apiGroups: ['*'], resources: ['*']}]", "", "*"},
		"no resource named":       {"granular:label", "[]", "", "label nodeAssignment templateLabel"},
		"a condition that holds":  {"granular:image", pods, "request.userInfo.username != 'controller'", "image"},
		"one that does not":       {"granular:image", pods, "request.userInfo.username == 'controller'", ""},
		"one on the request":      {"granular:image", pods, "request.resource.resource == 'pods'", ""},
	} {
		t.Run(name, func(t *testing.T) {
			spec := "{uncoveredPermissions: ['" + c.verbs + "'], resources: " + c.resources
			if c.more != "" {
				spec += `, matchConditions: [{name: c, expression: "` + c.more + `"}]`
			}
			s := compileWorkloads(t, "apiVersion: fieldperm.dev/v1alpha1\nkind: UncoveredPermissionSet\nmetadata: {name: x}\nspec: "+spec+"}\n")
			request := func() (map[string]any, error) {
				return map[string]any{"userInfo": map[string]any{"username": "ann"}, "resource": map[string]any{"resource": "deployments"}}, nil
			}
			got, err := s.Uncovered(t.Context(), schema.ResourceRef{Group: "apps", Version: "v1", Resource: "deployments"}, request)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for v := range got.ForValues() {
				names = append(names, strings.TrimPrefix(v.String(), "granular:"))
			}
			slices.Sort(names)
			if text := strings.Join(names, " "); text != c.want {
				t.Errorf("barriers %q, want %q", text, c.want)
			}
		})
	}
}

// TestC8_ASetFollowsTheVerbOfTheTemplate: a PermissionSchema that gives the field of a template another verb does not open it.
func TestC8_ASetFollowsTheVerbOfTheTemplate(t *testing.T) {
	s := compileWorkloads(t, barrier("apps", "Deployment", ".spec.template.spec.nodeName", "example.com/node", "excluded: false"),
		"apiVersion: fieldperm.dev/v1alpha1\nkind: UncoveredPermissionSet\nmetadata: {name: x}\nspec: {uncoveredPermissions: ['granular:nodeAssignment'], resources: [{apiGroups: [''], resources: [pods]}]}\n")
	for resource, want := range map[string]string{"deployments": "granular:example.com/node", "daemonsets": "granular:nodeAssignment"} {
		got, err := s.Uncovered(t.Context(), schema.ResourceRef{Group: "apps", Version: "v1", Resource: resource}, nil)
		if text := fmt.Sprint(got); err != nil || !strings.Contains(text, want) {
			t.Errorf("%s: %s, %v; want %s", resource, text, err, want)
		}
	}
}
