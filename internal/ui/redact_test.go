package ui

import (
	"net/http"
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/schema"
)

const private = `
apiVersion: fieldperm.dev/v1alpha1
kind: UncoveredPermissionSet
metadata: {name: breakglass-only}
spec:
  resources: [{apiGroups: [apps], resources: [deployments]}]
  uncoveredPermissions: ["granular:scale"]
  matchConditions:
  - {name: who, expression: 'request.userInfo.username != "breakglass"'}
  - {name: where, expression: 'request.namespace == "vault"'}
---
apiVersion: fieldperm.dev/v1alpha1
kind: UncoveredPermissionSet
metadata: {name: nobody-scales}
spec:
  resources: [{apiGroups: [apps], resources: [deployments]}]
  uncoveredPermissions: ["granular:scale"]
---
apiVersion: fieldperm.dev/v1alpha1
kind: PermissionSchema
metadata: {name: pausing}
spec: {group: apps, kind: Deployment, permissions: [{path: .spec.paused, verb: example.com/pause}]}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: widgets.example.com
  annotations: {fieldperm.dev/permission-verbs: '{"v1": [{"path": ".spec.size", "verb": "example.com/size"}]}'}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Widget, plural: widgets, singular: widget}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}}
`

// The page says that sets make barriers. It does not say what only readers of these objects and of the server's disk may know.
func TestUI_HidesSetsAndFiles(t *testing.T) {
	text := get(handlerOf(documents(t, private)).HTTP(), http.MethodGet).Body.String()
	for _, want := range []string{`"UncoveredPermissionSet 1"`, `"UncoveredPermissionSet 2"`, "the conditions of the set are true", "a file of fieldperm-webhook", "granular:example.com/pause", "granular:example.com/size"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	for _, lacks := range []string{"breakglass", "vault", "nobody-scales", "secret-place"} {
		if strings.Contains(text, lacks) {
			t.Errorf("the page has %s", lacks)
		}
	}
	// A set without conditions is not taken for one with conditions.
	if n := strings.Count(text, `"when":["the conditions of the set are true"]`); n != 1 {
		t.Errorf("%d sets have conditions, want 1", n)
	}
}

// A note about a kind with a fault has no text of the document.
func TestUI_HidesFaults(t *testing.T) {
	text := get(handlerOf(documents(t, strings.Replace(private, "verb: example.com/pause}", `verb: example.com/pause, excludedWhen: "self == 'vault' ="}`, 1))).HTTP(), http.MethodGet).Body.String()
	if !strings.Contains(text, "The page lacks apps/v1, Kind=Deployment: a document about the kind is faulty") {
		t.Error("the page does not say that it lacks Deployments")
	}
	for _, lacks := range []string{"breakglass", "vault", "secret-place"} {
		if strings.Contains(text, lacks) {
			t.Errorf("the page has %s", lacks)
		}
	}
}

// Sources in the cluster keep their names.
func TestUI_NamesSourcesInTheCluster(t *testing.T) {
	for from, want := range map[schema.Origin]bool{
		{Form: schema.FormCatalogue}: false, {Form: schema.FormOpenAPI, Source: "apis/metrics.k8s.io/v1"}: false,
		{Form: schema.FormPermissionSchema, Source: admission.DocumentSource("PermissionSchema", "pausing")}:               false,
		{Form: schema.FormAnnotation, Source: admission.DocumentSource("CustomResourceDefinition", "widgets.example.com")}: false,
		{Form: schema.FormPermissionSchema, Source: "/etc/fieldperm/x.yaml#1"}:                                             true, {Form: schema.FormAnnotation, Source: "x.yaml"}: true,
		{Form: schema.FormSchemaKeys, Source: "x.yaml"}: true, {Form: schema.FormScale, Source: "x.yaml"}: true,
	} {
		if got := isFile(from); got != want {
			t.Errorf("%+v: %t", from, got)
		}
	}
}
