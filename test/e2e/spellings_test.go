//go:build integration

package e2e

import (
	"encoding/json"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fieldperm/fieldperm/test/corpus"
	"github.com/fieldperm/fieldperm/test/stack"
	"github.com/fieldperm/fieldperm/test/store"
)

// spelled has barriers below names that a custom resource may have in several spellings.
const spelled = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: raws.spelled.io
  annotations: {fieldperm.dev/permission-verbs: '{"v1":[{"path":".spec.template","include":"podTemplate"}]}'}
spec:
  group: spelled.io
  scope: Namespaced
  names: {kind: Raw, plural: raws}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {template: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}}}
---
apiVersion: fieldperm.dev/v1alpha1
kind: PermissionSchema
metadata: {name: of-templates}
spec:
  fragment: podTemplate
  permissions:
  - {path: '.spec.initContainers[*]', verb: spelled.io/init, excluded: true}
  - {path: '.metadata.labels["plain"]', verb: spelled.io/plain, excluded: true}
---
apiVersion: fieldperm.dev/v1alpha1
kind: PermissionSchema
metadata: {name: of-raws}
spec:
  group: spelled.io
  kind: Raw
  permissions:
  - {path: '.spec.settings.limits["max"]', verb: spelled.io/max, excluded: true}
`

// TestC2_AnotherSpellingHidesNothingThatIsGuarded: the user has update and no verb of a barrier. What encoding/json reads from the object in etcd
// must keep the guarded fields, whatever the user writes beside them.
func TestC2_AnotherSpellingHidesNothingThatIsGuarded(t *testing.T) {
	bin, err := Build()
	must(t, err)
	s := startOwn(t, stack.Config{Bin: bin, Arguments: []string{"--decision-cache-ttl=500ms"}})
	install(t, s)
	grant(t, s, "updater", rule("spelled.io", []string{"raws"}, "get", "update", "patch"))
	put(t, s, spelled)
	etcd, err := store.Open(t.Context(), s.EtcdURL())
	must(t, err)
	defer func() { must(t, etcd.Close()) }()
	o := &thing{s, "spelled.io/v1", "raws", "Raw", "one"}
	eventually(t, func() *corpus.Answer {
		return send(t, o.admin(t), http.MethodPost, o.collection(), "application/json", o.document(t,
			`{"spec":{"template":{"metadata":{"labels":{"plain":"x"}},"spec":{"initContainers":[{"name":"guard"}]}},"settings":{"limits":{"max":"1"}}}}`))
	}, 201)
	user := wire(t, s, "updater")
	for _, direct := range []string{`{"spec":{"template":{"spec":{"initContainers":[]}}}}`, `{"spec":{"template":{"metadata":{"labels":null}}}}`, `{"spec":{"settings":null}}`} {
		inForce(t, direct, func() *corpus.Answer {
			return send(t, user, http.MethodPatch, o.path(), merge, fields(t, direct), "dryRun=All")
		}, 403)
	}
	for name, c := range map[string]struct {
		value any
		path  []string
		code  int
	}{
		"items of a list":       {[]any{}, []string{"spec", "template", "spec", "initContainerſ"}, 403},
		"a label":               {nil, []string{"spec", "template", "metadata", "labelſ"}, 403},
		"through the spec":      {map[string]any{"initContainers": nil}, []string{"spec", "template", "ſpec"}, 403},
		"unknown fields":        {nil, []string{"spec", "settingſ"}, 403},
		"unknown fields, below": {nil, []string{"spec", "settings", "limitſ"}, 403},
		"another name":          {"x", []string{"spec", "setting"}, 200},
	} {
		t.Run(name, func(t *testing.T) {
			expect(t, o.put(t, user, func(object map[string]any) { must(t, unstructured.SetNestedField(object, c.value, c.path...)) }), c.code)
			entry, err := etcd.Get(t.Context(), store.Prefix+"spelled.io/raws/default/one", 0)
			must(t, err)
			var read struct {
				Spec struct {
					Template corev1.PodTemplateSpec
					Settings struct{ Limits map[string]string }
				}
			}
			must(t, json.Unmarshal(entry.Value, &read))
			if pod := read.Spec.Template; len(pod.Spec.InitContainers) != 1 || pod.Labels["plain"] != "x" || read.Spec.Settings.Limits["max"] != "1" {
				t.Errorf("a guarded field is lost in %s", entry.Value)
			}
		})
	}
}
