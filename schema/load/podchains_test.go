package load

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/fieldperm"
)

// TestC8_EachBarrierThatMeetsAtAFieldIsNeeded: on Pods they are barriers of several fields, each of which needs its own verb.
func TestC8_EachBarrierThatMeetsAtAFieldIsNeeded(t *testing.T) {
	entry := func(path, verb string) string {
		return "{path: '" + path + "', verb: example.com/" + verb + ", excluded: true}"
	}
	const (
		zone    = `.metadata.labels["topology.kubernetes.io/zone"]`
		profile = ".spec.containers[*].securityContext.appArmorProfile"
		web     = "container.apparmor.security.beta.kubernetes.io/web"
	)
	for name, c := range map[string]struct {
		onPods, onDeployments []string
		// old and new are templates. want are the verbs that each requirement may be covered by.
		old, new string
		want     []string
	}{
		"the own one and a derived one": {
			[]string{entry(".spec.nodeName", "own"), entry(zone, "zone")}, nil, `{"spec":{}}`, `{"spec":{"nodeName":"a"}}`, []string{"own", "zone"},
		},
		"the template's and a derived one": {
			[]string{entry(zone, "zone")}, []string{entry(".spec.template.spec.nodeName", "template")}, `{"spec":{}}`, `{"spec":{"nodeName":"a"}}`, []string{"template", "zone"},
		},
		"two derived ones": {
			[]string{entry(".spec.imagePullSecrets", "secrets"), entry(".spec.volumes", "volumes")}, nil,
			`{"spec":{}}`, `{"spec":{"serviceAccountName":"a"}}`, []string{"secrets", "volumes granular:volume"},
		},
		"a derived one and what has it": {
			[]string{entry(".spec.containers[*].ports", "ports"), entry(".spec.containers[*].ports[*].hostPort", "port")}, nil,
			`{"spec":{}}`, `{"spec":{"hostNetwork":true}}`, []string{"port"},
		},
		"what has it, where a barrier is below": {
			[]string{entry(".spec.resources", "all"), entry(".spec.resources.requests.cpu", "one")}, nil,
			`{"spec":{"containers":[{"name":"a"}]}}`, `{"spec":{"containers":[{"name":"a","resources":{"limits":{"memory":"1Gi"}}}]}}`, []string{"all", "one"},
		},
		"a barrier above both, and a more specific one": {
			[]string{entry(".spec", "spec"), entry(".spec.priorityClassName", "class")}, nil,
			`{"spec":{}}`, `{"spec":{"priorityClassName":"a"}}`, []string{"class", "spec granular:preemptionPolicy", "spec granular:priority"},
		},
		"a barrier above both, and a more specific verb": {
			[]string{entry(".spec", "spec")}, nil, `{"spec":{}}`, `{"spec":{"hostNetwork":true}}`,
			[]string{"spec granular:containers granular:container granular:ports", "spec granular:hostNamespaces", "spec granular:initContainers granular:container granular:ports"},
		},
		"verbs of the template below": {
			[]string{entry(".spec.containers[*].resources.requests", "requests")},
			[]string{"{path: '.spec.template.spec.containers[*].resources.limits.cpu', verb: example.com/cpu}"},
			`{"spec":{"containers":[{"name":"a"}]}}`, `{"spec":{"containers":[{"name":"a","resources":{"limits":{"cpu":"1"}}}]}}`, []string{"requests"},
		},
		"a verb that only the template has": {
			[]string{entry(".spec", "spec")}, []string{"{path: '.spec.template.spec.containers[*].image', verb: example.com/w}"},
			`{"spec":{"containers":[{"name":"a"}]}}`, `{"spec":{"containers":[{"name":"a","image":"b"}]}}`,
			[]string{"spec granular:containers granular:container granular:container(a)"},
		},
		"a barrier that only the template has": {
			[]string{entry(".spec", "spec")}, []string{entry(".spec.template.spec.containers[*].image", "w")},
			`{"spec":{"containers":[{"name":"a"}]}}`, `{"spec":{"containers":[{"name":"a","image":"b"}]}}`,
			[]string{"spec granular:containers granular:container granular:container(a)", "w"},
		},
		"a verb that Pods have too": {
			[]string{entry(".spec", "spec")}, nil,
			`{"spec":{"containers":[{"name":"a"}]}}`, `{"spec":{"containers":[{"name":"a","image":"b"}]}}`,
			[]string{"spec granular:containers granular:container granular:container(a) granular:image granular:image(a)"},
		},
		"a key that only the template has": {
			[]string{"{path: '.metadata.annotations', verb: example.com/annotations, excluded: true, parameterSource: annotationKey}"}, nil,
			`{"metadata":{"annotations":{}}}`, `{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"a"}}}`,
			[]string{"annotations granular:templateAnnotation granular:templateAnnotation(kubectl.kubernetes.io)"},
		},
		"a field in an atomic value": {
			[]string{entry(".spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[*].labelSelector", "selector")}, nil,
			`{"spec":{"affinity":{"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"a"}]}}}}`,
			`{"spec":{"affinity":{"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"a","matchLabelKeys":["b"]}]}}}}`,
			[]string{"selector"},
		},
		"a key that its document frees": {
			[]string{entry(profile, "profile"), entry(`.metadata.annotations["container.apparmor.security.beta.kubernetes.io/"]`, "prefix"), `{path: '.metadata.annotations["` + web + `"]', verb: example.com/web}`}, nil,
			`{"metadata":{"annotations":{}}}`, `{"metadata":{"annotations":{"` + web + `":"unconfined"}}}`, []string{"profile"},
		},
		"keys of their own and a derived prefix": {
			[]string{entry(profile, "profile"), entry(`.metadata.annotations["`+web+`"]`, "web")}, nil,
			`{"metadata":{"annotations":{}}}`, `{"metadata":{"annotations":{"` + web + `":"unconfined"}}}`, []string{"profile", "web"},
		},
		"a key that is no barrier and a derived prefix": {
			[]string{entry(profile, "profile"), `{path: '.metadata.annotations["` + web + `"]', verb: example.com/web}`}, nil,
			`{"metadata":{"annotations":{}}}`, `{"metadata":{"annotations":{"` + web + `":"unconfined"}}}`, []string{"profile"},
		},
		"the whole template": {
			[]string{entry(".spec.nodeName", "own"), entry(zone, "zone"), entry(".spec.volumes", "volumes")}, nil,
			`null`, `{"spec":{"nodeName":"a","serviceAccountName":"b"}}`, []string{"own", "volumes granular:volume", "zone"},
		},
		"one verb for both": {
			[]string{entry(".spec.nodeName", "own"), entry(zone, "own")}, nil, `{"spec":{}}`, `{"spec":{"nodeName":"a"}}`, []string{"own"},
		},
		"a field without": {
			[]string{entry(".spec.nodeName", "own"), entry(zone, "zone")}, nil, `{"spec":{}}`, `{"spec":{"hostname":"a"}}`, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			documents := []string{permissionSchema("a", "", "Pod", strings.Join(c.onPods, ", "))}
			if len(c.onDeployments) > 0 {
				documents = append(documents, permissionSchema("b", "apps", "Deployment", strings.Join(c.onDeployments, ", ")))
			}
			k, err := compileWorkloads(t, documents...).Kind(gvk("apps", "v1", "Deployment"))
			if err != nil {
				t.Fatal(err)
			}
			object := func(template string) []byte { return []byte(`{"spec":{"template":` + template + `}}`) }
			required, err := fieldperm.Diff(t.Context(), object(c.old), object(c.new), k, nil)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for i := range required {
				if required[i].Barrier < 0 {
					continue
				}
				if text := strings.ReplaceAll(strings.Trim(fmt.Sprint(required[i].Candidates()), "[]"), "granular:example.com/", ""); !slices.Contains(got, text) {
					got = append(got, text)
				}
			}
			slices.Sort(got)
			if !slices.Equal(got, c.want) {
				t.Errorf("each of %q is needed, want %q", got, c.want)
			}
		})
	}
}
