//go:build integration

package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/test/cluster"
)

// The objects of the cluster in addition to the grants: namespaces, users that ask, and a custom kind whose permission verbs are in
// the annotation, because an API server accepts them only there.
const clusterObjects = `
{apiVersion: v1, kind: Namespace, metadata: {name: shop}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: asks}
rules:
- {apiGroups: [authorization.k8s.io], resources: [subjectaccessreviews], verbs: [create]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: reads-schemas}
rules:
- {apiGroups: [apiextensions.k8s.io], resources: [customresourcedefinitions], verbs: [get, list]}
- {apiGroups: [apiregistration.k8s.io], resources: [apiservices], verbs: [list]}
- {apiGroups: [fieldperm.dev], resources: [permissionschemas, uncoveredpermissionsets, conditionalpolicies], verbs: [list]}
- {nonResourceURLs: ["/openapi/v3", "/openapi/v3/*"], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: asks}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: asks}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: askers}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: reads-schemas}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reads-schemas}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: auditor}, {apiGroup: rbac.authorization.k8s.io, kind: User, name: reader}]
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: gadgetry.example.com
  annotations:
    fieldperm.dev/permission-verbs: '{"v1": [{"path": ".spec", "verb": "specification"}, {"path": ".spec.size", "verb": "example.com/size"}]}'
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Gadget, plural: gadgetry, singular: gadget, listKind: GadgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: gadgets}
rules: [{apiGroups: [example.com], resources: [gadgetry], verbs: [get, granular, "granular:example.com/size"]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: gadgets}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: gadgets}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: greta}]
`

// The rules that the aggregation controller would write. The controller does not run here.
const aggregated = `{"rules": [
{"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["granular", "granular:scale"]},
{"apiGroups": ["example.com"], "resources": ["widgetry"], "verbs": ["granular", "granular:example.com/size", "create"]}]}`

func TestReviewAsksTheCluster(t *testing.T) {
	c, err := cluster.Start(t.Context(), cluster.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	t.Chdir("testdata")
	admin := user(t, c, "admin", "system:masters")
	kubectl := func(stdin string, args ...string) {
		t.Helper()
		if _, stderr, err := c.Kubectl(admin).Run(t.Context(), stdin, args...); err != nil {
			t.Fatalf("%v: %s", err, stderr)
		}
	}
	kubectl(clusterObjects, "create", "-f", "-")
	kubectl("", "create", "-f", "grants.yaml")
	kubectl("", "patch", "clusterrole", "operator", "--type=merge", "-p", aggregated)
	kubectl("", "wait", "--for=condition=Established", "crd/gadgetry.example.com")

	kubectl("", "create", "-f", "../../../config/crd")
	kubectl("", "wait", "--for=condition=Established", "-f", "../../../config/crd")
	lists := map[string]string{
		"noservices": "apiservices", "nodefinitions": "customresourcedefinitions",
		"noschemas": "permissionschemas", "nosets": "uncoveredpermissionsets", "nopolicies": "conditionalpolicies",
	}
	for asker, lacks := range lists {
		var rest []string
		for _, resource := range lists {
			if resource != lacks {
				rest = append(rest, resource)
			}
		}
		kubectl("", "create", "clusterrole", asker, "--verb=list", "--resource="+strings.Join(rest, ","))
		kubectl("", "create", "clusterrolebinding", asker, "--clusterrole="+asker, "--user="+asker)
	}

	cache := t.TempDir()
	review := func(asker, args string) (int, string, string) {
		t.Helper()
		var groups []string
		if asker != "reader" {
			groups = []string{"askers"}
		}
		words := []string{"review", "--kubeconfig", user(t, c, asker, groups...).Kubeconfig, "--cache-dir", cache}
		return execute(t, "", append(words, strings.Fields(args)...)...)
	}
	write := func(content string) string {
		file := filepath.Join(t.TempDir(), "file.yaml")
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	gadget := write("{apiVersion: example.com/v1, kind: Gadget, metadata: {name: g, namespace: shop}, spec: {size: 1}}\n")
	bigger := write("{apiVersion: example.com/v1, kind: Gadget, metadata: {name: g, namespace: shop}, spec: {size: 2}}\n")

	// Files and cluster give the same decisions, check by check.
	for _, test := range goldenCases {
		t.Run(test.name, func(t *testing.T) {
			code, stdout, stderr := review("auditor", test.args+" -o json")
			if code != test.code || stderr != "" {
				t.Errorf("got exit code %d, want %d; stderr %q", code, test.code, stderr)
			}
			if !*update {
				golden(t, filepath.Join("golden", test.name+".json"), stdout)
			}
		})
	}
	t.Run("SchemaAndResourceOfTheCluster", func(t *testing.T) {
		code, stdout, stderr := review("auditor", "--old "+gadget+" --new "+bigger+" --as greta")
		if code != 0 || stderr != "" || !strings.Contains(stdout, "granular:example.com/size") {
			t.Errorf("exit code %d, stdout %q, stderr %q", code, stdout, stderr)
		}
	})
	t.Run("WhatMayNotBeReadIsNamedAndNothingIsDecided", func(t *testing.T) {
		for asker, want := range map[string][]string{
			"blind": {
				`error: API services: cannot be read: `, `: allow list on apiservices.apiregistration.k8s.io`,
				`error: custom resource definitions: cannot be read: `, `: allow list on customresourcedefinitions.apiextensions.k8s.io`,
			},
			"noservices": {`error: API services: cannot be read: `, `: allow list on apiservices.apiregistration.k8s.io`},
			"nodefinitions": {
				`error: custom resource definitions: cannot be read: `, `: allow list on customresourcedefinitions.apiextensions.k8s.io`,
			},
			"noschemas":  {`error: permissionschemas.fieldperm.dev: cannot be read: `, `: allow list on permissionschemas.fieldperm.dev`},
			"nosets":     {`error: uncoveredpermissionsets.fieldperm.dev: cannot be read: `, `: allow list on uncoveredpermissionsets.fieldperm.dev`},
			"nopolicies": {`error: conditionalpolicies.fieldperm.dev: cannot be read: `, `: allow list on conditionalpolicies.fieldperm.dev`},
		} {
			code, stdout, stderr := review(asker, "--old deployment.yaml --new scaled.yaml --as alice")
			if lines := len(want) / 2; code != 2 || stdout != "" || strings.Count(stderr, "\n") != lines {
				t.Errorf("%s: exit code %d, stdout %q, stderr %q", asker, code, stdout, stderr)
			}
			for _, part := range want {
				if !strings.Contains(stderr, part) {
					t.Errorf("%s: stderr %q has no %q", asker, stderr, part)
				}
			}
		}
	})
	t.Run("PermissionSchemasAndSetsOfTheCluster", func(t *testing.T) {
		kubectl(`
{apiVersion: fieldperm.dev/v1alpha1, kind: PermissionSchema, metadata: {name: replicas}, spec: {group: apps, kind: Deployment, permissions: [{path: .spec.replicas, verb: example.com/size, excluded: true}]}}
---
{apiVersion: fieldperm.dev/v1alpha1, kind: UncoveredPermissionSet, metadata: {name: pod-security}, spec: {uncoveredPermissions: ['granular:label(pod-security.kubernetes.io)'], resources: [{apiGroups: [''], resources: [namespaces]}]}}
`, "create", "-f", "-")
		code, stdout, stderr := review("auditor", "--old deployment.yaml --new scaled.yaml --as bob")
		if code != 1 || stderr != "" || !strings.Contains(stdout, "needs granular:example.com/size") {
			t.Errorf("PermissionSchema: exit code %d, stdout %q, stderr %q", code, stdout, stderr)
		}
		code, stdout, stderr = review("auditor", "--old namespace.yaml --new namespace-privileged.yaml --as olga")
		if code != 1 || stderr != "" || !strings.Contains(stdout, "granular:label(pod-security.kubernetes.io) (barrier)") {
			t.Errorf("set: exit code %d, stdout %q, stderr %q", code, stdout, stderr)
		}
		// A file replaces the object with the same name.
		file := write("apiVersion: fieldperm.dev/v1alpha1\nkind: PermissionSchema\nmetadata: {name: replicas}\nspec: {group: apps, kind: Deployment, permissions: [{path: .spec.replicas, verb: example.com/size}]}\n")
		if code, stdout, stderr = review("auditor", "--old deployment.yaml --new scaled.yaml --as bob --permissions "+file); code != 0 || stderr != "" {
			t.Errorf("a file in its place: exit code %d, stdout %q, stderr %q", code, stdout, stderr)
		}
		kubectl("", "delete", "permissionschema/replicas", "uncoveredpermissionset/pod-security")
	})
	t.Run("AFaultyDocumentLeavesItsKindUndecided", func(t *testing.T) {
		kubectl("{apiVersion: fieldperm.dev/v1alpha1, kind: PermissionSchema, metadata: {name: faulty}, spec: {group: apps, kind: Deployment, permissions: [{path: .spec.nosuch, verb: example.com/size, excluded: true}]}}\n", "create", "-f", "-")
		code, stdout, stderr := review("auditor", "--old deployment.yaml --new scaled.yaml --as alice")
		if code != 2 || stdout != "" || !strings.Contains(stderr, "error: permission schema of apps/v1, Kind=Deployment: PermissionSchema faulty:/spec/permissions/0: ") {
			t.Errorf("its kind: exit code %d, stdout %q, stderr %q", code, stdout, stderr)
		}
		code, _, stderr = review("auditor", "--old namespace.yaml --new namespace-team.yaml --as olga")
		if code != 0 || !strings.Contains(stderr, "warning: PermissionSchema faulty:/spec/permissions/0: ") {
			t.Errorf("another kind: exit code %d, stderr %q", code, stderr)
		}
		kubectl("", "delete", "permissionschema/faulty")
	})
	t.Run("WhoMayNotAskGetsAnErrorAndNoDenial", func(t *testing.T) {
		code, stdout, stderr := review("reader", "--old deployment.yaml --new scaled.yaml --as alice")
		if code != 2 || stdout != "" || !strings.Contains(stderr, `error: `) || !strings.Contains(stderr, "subjectaccessreviews") {
			t.Errorf("exit code %d, stdout %q, stderr %q", code, stdout, stderr)
		}
	})
	t.Run("FileWithAFaultIsAnError", func(t *testing.T) {
		file := write("apiVersion: fieldperm.dev/v1alpha1\nkind: PermissionSchema\nmetadata: {name: x}\nspec: {group: apps, kind: Deployment, permissions: [{path: .spec.nosuch, verb: scale}]}\n")
		code, stdout, stderr := review("auditor", "--old deployment.yaml --new scaled.yaml --as alice --permissions "+file)
		if code != 2 || stdout != "" || !strings.Contains(stderr, "error: "+file) {
			t.Errorf("exit code %d, stdout %q, stderr %q", code, stdout, stderr)
		}
	})
	t.Run("UnknownKind", func(t *testing.T) {
		code, _, stderr := review("auditor", "--old widget.yaml --as bob")
		if code != 2 || !strings.Contains(stderr, "install the kind, or give --resource") {
			t.Errorf("exit code %d, stderr %q", code, stderr)
		}
	})
	t.Run("WithoutTheOpenAPINothingIsDecided", func(t *testing.T) {
		// All users may read discovery until this binding is deleted.
		kubectl("", "delete", "clusterrolebinding", "system:discovery")
		kubectl("", "create", "clusterrole", "reads-index", "--verb=get", "--non-resource-url=/openapi/v3")
		kubectl("", "create", "clusterrolebinding", "reads-index", "--clusterrole=reads-index", "--user=nodocuments")
		kubectl("", "create", "clusterrole", "lists", "--verb=list", "--resource="+strings.Join(slices.Collect(maps.Values(lists)), ","))
		kubectl("", "create", "clusterrolebinding", "lists", "--clusterrole=lists", "--user=noindex", "--user=nodocuments")
		for asker, want := range map[string]string{"noindex": ": allow get on the path /openapi/v3\n", "nodocuments": ": allow get on the path /openapi/v3/*\n"} {
			code, stdout, stderr := review(asker, "--old deployment.yaml --new scaled.yaml --as alice --resource apps/v1/deployments")
			if code != 2 || stdout != "" || !strings.HasPrefix(stderr, "error: OpenAPI v3 of ") || !strings.HasSuffix(stderr, want) || strings.Count(stderr, "\n") != 1 {
				t.Errorf("%s: exit code %d, stdout %q, stderr %q", asker, code, stdout, stderr)
			}
		}
	})
}

func user(t *testing.T, c *cluster.Cluster, name string, groups ...string) *cluster.User {
	t.Helper()
	u, err := c.User(name, groups...)
	if err != nil {
		t.Fatal(err)
	}
	return u
}
