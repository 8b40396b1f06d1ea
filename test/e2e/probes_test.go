//go:build integration

package e2e

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/test/cluster"
	"github.com/fieldperm/fieldperm/test/stack"
)

// uncoveredSet is a set with one verb for one resource.
func uncoveredSet(name, verb, group, resource string) string {
	return "apiVersion: fieldperm.dev/v1alpha1\nkind: UncoveredPermissionSet\nmetadata: {name: " + name + "}\nspec:\n  uncoveredPermissions: ['" + verb +
		"']\n  resources: [{apiGroups: ['" + group + "'], resources: [" + resource + "]}]\n"
}

// enforced waits until the condition Enforced of an object has a status and a reason, and all parts in its message.
func enforced(t *testing.T, s *stack.Stack, resource, name, want string, parts ...string) {
	t.Helper()
	const path = `jsonpath={.status.conditions[?(@.type=="Enforced")]['status','reason','message']}`
	deadline := time.Now().Add(20 * time.Second)
	for {
		is := mustKubectl(t, s, "", "get", resource, name, "-o", path)
		if strings.HasPrefix(is, want+" ") && !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(is, part) }) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s %s: %q, want %q and %q\n%s", resource, name, is, want, parts, s.WebhookLogTail())
		}
		time.Sleep(pause)
	}
}

func says(t *testing.T, message string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(message, part) {
			t.Errorf("message %q does not say %q", message, part)
		}
	}
}

// TestA6_W2_EnforcedIsProbed: Enforced is True if a dry-run write through each endpoint was refused. Its message names the endpoints that
// were not probed.
func TestA6_W2_EnforcedIsProbed(t *testing.T) {
	t.Parallel()
	for name, topology := range map[string]stack.Topology{"Static": stack.Static, "REST": stack.REST} {
		t.Run(name, func(t *testing.T) {
			s := startOwn(t, stack.Config{Topology: topology})
			install(t, s)
			t.Run("Subresources", func(t *testing.T) { subresourcesAreProbed(t, s) })
			t.Run("Bindings", func(t *testing.T) { bindingsAreProbed(t, s) })
			t.Run("Schemas", func(t *testing.T) { schemasAreProbed(t, s) })
			t.Run("WithoutItsVerb", func(t *testing.T) { aSetWithoutItsVerbIsNotEnforced(t, s) })
			t.Run("MatchConditions", func(t *testing.T) { matchConditionsDoNotKeepProbesOut(t, s) })
			t.Run("Policies", func(t *testing.T) { policiesAreProbed(t, s) })
		})
	}
}

// subresourcesAreProbed: an endpoint of an object is probed as soon as an object exists.
func subresourcesAreProbed(t *testing.T, s *stack.Stack) {
	t.Helper()
	grant(t, s, "deployer", rule("apps", []string{"deployments"}, "create", "update", "patch"))
	remove(t, s, "uncoveredpermissionset", "probed")
	apply(t, s, uncoveredSet("probed", "granular:scale", "apps", "deployments"))
	enforced(t, s, "uncoveredpermissionset", "probed", "Unknown NotProbed", "deployments/scale.apps: not probed, because it takes an object that exists", "refused through deployments.apps")

	// kube-apiserver asks the webhook about a Deployment. From then on fieldperm can probe with it.
	mustKubectl(t, s, "", "create", "deployment", "probed", "--image=x")
	remove(t, s, "deployment", "probed")
	expect(t, send(t, wire(t, s, "deployer"), http.MethodPatch, "/apis/apps/v1/namespaces/default/deployments/probed", merge, fields(t, `{"metadata":{"labels":{"a":"b"}}}`), "dryRun=All"), 200)
	enforced(t, s, "uncoveredpermissionset", "probed", "True Enforced", "refused through deployments.apps, deployments/scale.apps")
	if got := mustKubectl(t, s, "", "get", "deployments,pods", "-A", "-o", "name"); got != "deployment.apps/probed\n" {
		t.Errorf("probes left something:\n%s", got)
	}
}

// bindingsAreProbed: a Binding writes into Pods. Both endpoints for bindings are probed without a Pod. The subresources that change owners
// need a Pod.
func bindingsAreProbed(t *testing.T, s *stack.Stack) {
	t.Helper()
	grant(t, s, "placer", rule("", []string{"pods"}, "create", "update", "patch"))
	remove(t, s, "uncoveredpermissionset", "placed")
	apply(t, s, uncoveredSet("placed", "granular:nodeAssignment", "", "pods"))
	enforced(t, s, "uncoveredpermissionset", "placed", "Unknown NotProbed", "pods/ephemeralcontainers: not probed", "pods/resize: not probed", "refused through bindings, pods, pods/binding")

	put(t, s, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"placed"},"spec":{"automountServiceAccountToken":false,"containers":[{"name":"web","image":"x"}]}}`)
	remove(t, s, "pod", "placed")
	expect(t, send(t, wire(t, s, "placer"), http.MethodPatch, "/api/v1/namespaces/default/pods/placed", merge, fields(t, `{"metadata":{"labels":{"a":"b"}}}`), "dryRun=All"), 200)
	enforced(t, s, "uncoveredpermissionset", "placed", "True Enforced", "refused through bindings, pods, pods/binding, pods/ephemeralcontainers, pods/resize")
}

// schemasAreProbed: the barriers of a PermissionSchema are probed like the barriers of a set.
func schemasAreProbed(t *testing.T, s *stack.Stack) {
	t.Helper()
	remove(t, s, "permissionschema", "probed")
	apply(t, s, immutability("probed", "{path: .immutable, verb: example.com/immutability, excluded: true}"))
	enforced(t, s, "permissionschema", "probed", "True Enforced", "refused through configmaps")
}

// aSetWithoutItsVerbIsNotEnforced: the verb of a set disappears with the PermissionSchema that defines it, while the endpoint still has rules.
func aSetWithoutItsVerbIsNotEnforced(t *testing.T, s *stack.Stack) {
	t.Helper()
	remove(t, s, "permissionschema", "gives")
	remove(t, s, "uncoveredpermissionset", "bars")
	apply(t, s, immutability("gives", `{path: '.data["gives"]', verb: example.com/gives}`))
	apply(t, s, uncoveredSet("bars", "granular:example.com/gives", "", "configmaps"))
	enforced(t, s, "uncoveredpermissionset", "bars", "True Enforced", "refused through configmaps")
	mustKubectl(t, s, "", "delete", "permissionschema", "gives")
	enforced(t, s, "uncoveredpermissionset", "bars", "False NothingGuarded", "no field of a known kind has one of its verbs")
}

// matchConditionsDoNotKeepProbesOut: the user of the probes fulfils no condition, and the barrier is probed.
func matchConditionsDoNotKeepProbesOut(t *testing.T, s *stack.Stack) {
	t.Helper()
	remove(t, s, "uncoveredpermissionset", "conditional")
	mustKubectl(t, s, uncoveredSet("conditional", "granular:data", "", "configmaps")+
		"  matchConditions: [{name: one, expression: \"request.userInfo.username == 'unknown' && request.namespace == 'nowhere'\"}]\n", "apply", "-f", "-")
	enforced(t, s, "uncoveredpermissionset", "conditional", "True Enforced", "refused through configmaps")
}

// TestA6_W2_AServerThatDoesNotAsk: the configuration that fieldperm reads is correct, but one kube-apiserver does not call the webhook. The
// barrier is not enforced, and the message says where and what to do.
func TestA6_W2_AServerThatDoesNotAsk(t *testing.T) {
	address, err := cluster.PublicAddress()
	must(t, err)
	if address == "" {
		t.Skip("this machine has loopback addresses only, which the API server refuses in EndpointSlices: give an interface an address")
	}
	s := startOwn(t, stack.Config{Topology: stack.REST, Address: address})
	install(t, s)
	apply(t, s, uncoveredSet("bared", "granular:data", "", "configmaps"))
	enforced(t, s, "uncoveredpermissionset", "bared", "True Enforced")
	bare := s.ServerConfig()
	bare.ExtraArgs["disable-admission-plugins"] = []string{"ServiceAccount", "ValidatingAdmissionWebhook"}
	must(t, s.AddAPIServer(t.Context(), "bare", bare))
	must(t, s.Publish(t.Context(), cluster.APIServer, "bare"))
	enforced(t, s, "uncoveredpermissionset", "bared", "False NotRefused", "kube-apiserver "+address, "of configmaps: was not refused", "ValidatingAdmissionWebhook is on")
	must(t, s.Publish(t.Context(), cluster.APIServer))
	enforced(t, s, "uncoveredpermissionset", "bared", "True Enforced")
}

// TestA6_F5_ASetWithoutEffectIsRefused: kubectl, check-config and fieldperm-gen refuse such an object with the same message, which has the
// nearest correct name.
func TestA6_F5_ASetWithoutEffectIsRefused(t *testing.T) {
	s := start(t)
	install(t, s)
	set := func(group, resource, verb, more string) string {
		return strings.Replace(uncoveredSet("faulty", verb, group, resource), "spec:\n", "spec:\n"+more, 1)
	}
	for name, c := range map[string]struct{ document, says string }{
		"resource":                              {set("apps", "deployment", "granular:scale", ""), `resource "deployment" does not exist: write "deployments"`},
		"resource of the core group":            {set("", "namespace", "granular:labels", ""), `resource "namespace" does not exist: write "namespaces"`},
		"group":                                 {set("app", "deployments", "granular:scale", ""), `resource "deployments" is not in the groups of this rule: it is in group "apps"`},
		"subresource":                           {set("apps", "deployments/scales", "granular:scale", ""), `resource "deployments" has no subresource "scales"`},
		"verb":                                  {set("apps", "deployments", "granular:scaled", ""), `the nearest verb that does is "granular:scale"`},
		"verb that the resource lacks":          {set("", "pods", "granular:taints", ""), `verb "granular:taints" guards no field of "pods": it guards fields of "devicetaintrules.resource.k8s.io", "nodes"`},
		"parameter that is no prefix":           {set("", "namespaces", "granular:label(pod-security.kubernetes.io/enforce)", ""), `write "granular:label(pod-security.kubernetes.io)"`},
		"parameter where none is":               {set("apps", "deployments", "granular:scale(x)", ""), `never has a parameter: write "granular:scale"`},
		"verb of a field that is never charged": {set("", "pods", "granular:identity", ""), "granular:identity"},
		"field of a match condition":            {set("apps", "deployments", "granular:scale", "  matchConditions: [{name: a, expression: \"request.userinfo.username == 'x'\"}]\n"), "undefined field 'userinfo'"},
		"type of a match condition":             {set("apps", "deployments", "granular:scale", "  matchConditions: [{name: a, expression: \"request.userInfo.username == 1\"}]\n"), "no matching overload"},
		"parameter that is emitted no more": {
			"apiVersion: fieldperm.dev/v1alpha1\nkind: PermissionSchema\nmetadata: {name: faulty}\nspec: {kind: Namespace, permissions: [{path: .metadata.labels, verb: example.com/labels, parameterSource: other}]}\n",
			"add parameterSource: labelKey",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, stderr, err := kubectl(t, s, c.document, "apply", "--dry-run=server", "-f", "-")
			if err == nil || !strings.Contains(stderr, c.says) {
				t.Errorf("kubectl does not refuse it with %q: %v %s", c.says, err, stderr)
			}
			file := filepath.Join(t.TempDir(), "faulty.yaml")
			must(t, os.WriteFile(file, []byte(c.document), 0o600))
			out, err := exec.CommandContext(t.Context(), command(t, "fieldperm-webhook"), "check-config", "--permission-schemas", file).CombinedOutput()
			if err == nil || !strings.Contains(string(out), c.says) {
				t.Errorf("check-config does not refuse it with %q: %v %s", c.says, err, out)
			}
			_, err = s.Generate(t.Context(), "manifests", "--out", t.TempDir(), "--config-dir", "/x", "--url", "https://127.0.0.1:1", "--ca-file", filepath.Join(s.Dir(), "config", "ca.crt"), "--rest", "--write-uncovered", "--permission-schemas", file)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("fieldperm-gen manifests does not refuse it with %q: %v", c.says, err)
			}
		})
	}
}

// TestA6_F6_StatusNamesTheGuardedFields: the status has the number of fields of each resource, and the resources that are not known yet.
func TestA6_F6_StatusNamesTheGuardedFields(t *testing.T) {
	s := startOwn(t, stack.Config{})
	install(t, s)
	remove(t, s, "uncoveredpermissionset", "bearing")
	const rules = "  resources: [{apiGroups: [apps], resources: [deployments]}, {apiGroups: [''], resources: [pods, configmaps]}, {apiGroups: [tocome.example.com], resources: [comings]}]\n"
	document := "apiVersion: fieldperm.dev/v1alpha1\nkind: UncoveredPermissionSet\nmetadata: {name: bearing}\nspec:\n  uncoveredPermissions: ['granular:image(web)', 'granular:data']\n" + rules
	_, stderr, err := kubectl(t, s, document, "apply", "-f", "-")
	if err != nil || !strings.Contains(stderr, `Warning: UncoveredPermissionSet bearing:/spec/resources/2/resources/0: resource "comings" of group "tocome.example.com" is not known`) {
		t.Errorf("%v %s", err, stderr)
	}
	row(t, s, "uncoveredpermissionsets", "bearing", `["granular:image(web)","granular:data"]`, "True")
	for path, want := range map[string]string{
		`{range .status.guardedFields[*]}{.resource}={.fields} {end}`: "deployments=3 pods=3 configmaps=2 ",
		`{.status.conditions[?(@.type=="Compiled")].reason}`:          "Unmatched",
	} {
		if got := mustKubectl(t, s, "", "get", "uncoveredpermissionset", "bearing", "-o", "jsonpath="+path); got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
	says(t, mustKubectl(t, s, "", "get", "uncoveredpermissionset", "bearing", "-o", `jsonpath={.status.conditions[?(@.type=="Compiled")].message}`), `"comings"`, "install its definition first")
}

// policiesAreProbed: a Deny is Enforced if kube-apiserver asks the webhook for each operation that it denies. A deletion takes an object, which
// a dry run shows.
func policiesAreProbed(t *testing.T, s *stack.Stack) {
	t.Helper()
	const kind = v1alpha1.ConditionalPolicyResource
	apply := func(name, verbs, resources string) {
		t.Helper()
		remove(t, s, kind, name)
		mustKubectl(t, s, `{"apiVersion":"fieldperm.dev/v1alpha1","kind":"ConditionalPolicy","metadata":{"name":"`+name+`"},"spec":{"subjects":[{"kind":"User","name":"nobody"}],"verbs":[`+verbs+
			`],"resources":[{"apiGroups":[""],"resources":[`+resources+`]}],"effect":"Deny","condition":"request.name == 'x'"}}`, "apply", "-f", "-")
	}
	apply("probed-all", `"create","update","patch","delete","deletecollection"`, `"configmaps","pods/exec"`)
	enforced(t, s, kind, "probed-all", "True Enforced", "refused through", "configmaps", "deletions of configmaps", "connections by pods/exec")
	apply("probed-namespaces", `"delete"`, `"namespaces"`)
	enforced(t, s, kind, "probed-namespaces", "Unknown NotProbed", "deletions of namespaces: not probed, because it takes an object that exists")
	grant(t, s, "ender", rule("", []string{"namespaces"}, "delete"))
	create(t, s, map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "to-be-probed"}})
	expect(t, send(t, wire(t, s, "ender"), http.MethodDelete, "/api/v1/namespaces/to-be-probed", "", nil, "dryRun=All"), 200)
	enforced(t, s, kind, "probed-namespaces", "True Enforced", "refused through deletions of namespaces")
	mustKubectl(t, s, "", "get", "namespace", "to-be-probed")
	mustKubectl(t, s, "", "get", "configmap", "-n", "kube-system", "extension-apiserver-authentication")
	apply("probed-evictions", `"create"`, `"pods/eviction"`)
	enforced(t, s, kind, "probed-evictions", "True Enforced", "takes no probe")
}
