package ui

import (
	"net/http"
	"strings"
	"testing"
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
`

// The page says that sets make barriers. It does not say what only readers of these objects and of the server's disk may know.
func TestUI_HidesSetsAndFiles(t *testing.T) {
	text := get(handlerOf(documents(t, private)).HTTP(), http.MethodGet).Body.String()
	for _, want := range []string{`"UncoveredPermissionSet 1"`, `"UncoveredPermissionSet 2"`, "the conditions of the set are true", "a file of fieldperm-webhook", "granular:example.com/pause"} {
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
