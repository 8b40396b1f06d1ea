//go:build integration

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/generators/webhooks"
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

// TestA6_W2_EnforcedFollowsAtOnce: Enforced is True as soon as every kube-apiserver has the rules, also where no object exists: of subresources, of
// bindings, of schemas, and of policies that deny deletions and connections.
func TestA6_W2_EnforcedFollowsAtOnce(t *testing.T) {
	t.Parallel()
	const policy = v1alpha1.ConditionalPolicyResource
	denies := func(name, verbs, resources string) string {
		return `{"apiVersion":"fieldperm.dev/v1alpha1","kind":"ConditionalPolicy","metadata":{"name":"` + name + `"},"spec":{"subjects":[{"kind":"User","name":"nobody"}],"verbs":[` + verbs +
			`],"resources":[{"apiGroups":[""],"resources":[` + resources + `]}],"effect":"Deny","condition":"request.name == 'x'"}}`
	}
	for name, topology := range map[string]stack.Topology{"Static": stack.Static, "REST": stack.REST} {
		t.Run(name, func(t *testing.T) {
			s := startOwn(t, stack.Config{Topology: topology})
			install(t, s)
			for _, c := range []struct{ resource, name, document string }{
				{"uncoveredpermissionset", "scaled", uncoveredSet("scaled", "granular:scale", "apps", "deployments")},
				{"uncoveredpermissionset", "placed", uncoveredSet("placed", "granular:nodeAssignment", "", "pods")},
				{"uncoveredpermissionset", "conditional", uncoveredSet("conditional", "granular:data", "", "configmaps") +
					"  matchConditions: [{name: one, expression: \"request.userInfo.username == 'unknown' && request.namespace == 'nowhere'\"}]\n"},
				{"permissionschema", "immutable", immutability("immutable", "{path: .immutable, verb: example.com/immutability, excluded: true}")},
				{policy, "all", denies("all", `"create","update","patch","delete","deletecollection"`, `"configmaps","pods/exec"`)},
				{policy, "namespaces", denies("namespaces", `"delete"`, `"namespaces"`)},
				{policy, "evictions", denies("evictions", `"create"`, `"pods/eviction"`)},
			} {
				t.Run(c.name, func(t *testing.T) {
					remove(t, s, c.resource, c.name)
					mustKubectl(t, s, c.document, "apply", "-f", "-")
					mustKubectl(t, s, "", "wait", "--for=condition=Enforced", "--timeout=10s", c.resource, c.name)
					enforced(t, s, c.resource, c.name, "True Enforced", "all kube-apiservers (1) have loaded the rules")
				})
			}
			t.Run("WithoutItsVerb", func(t *testing.T) { aSetWithoutItsVerbIsNotEnforced(t, s) })
			t.Run("Edited", func(t *testing.T) { anEditIsPutRight(t, s) })
			if got := mustKubectl(t, s, "", "get", "deployments,pods,configmaps", "-n", "default", "-o", "name"); strings.Contains(got, "probe") {
				t.Errorf("probes left something:\n%s", got)
			}
		})
	}
}

// anEditIsPutRight: an administrator removes the rules, and leaves the path. The servers that have loaded that do not count as those that have the rules.
func anEditIsPutRight(t *testing.T, s *stack.Stack) {
	t.Helper()
	const probed = "jsonpath={.webhooks[?(@.name=='" + webhooks.ProbeWebhook + "')].clientConfig.url} {.webhooks[0].rules}"
	read := func() (path, rules string) {
		path, rules, _ = strings.Cut(mustKubectl(t, s, "", "get", "validatingwebhookconfiguration", webhooks.UncoveredName, "-o", probed), " ")
		return path, rules
	}
	remove(t, s, "uncoveredpermissionset", "edited")
	apply(t, s, uncoveredSet("edited", "granular:data", "", "configmaps"))
	enforced(t, s, "uncoveredpermissionset", "edited", "True Enforced")
	before, _ := read()
	mustKubectl(t, s, "", "delete", "validatingadmissionpolicybinding", webhooks.GuardName)
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(pause) {
		if _, _, err := kubectl(t, s, "", "patch", "validatingwebhookconfiguration", webhooks.UncoveredName, "--type=json", "-p", `[{"op":"replace","path":"/webhooks/0/rules/0/resources","value":["nothing"]}]`); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the guard still holds")
		}
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(pause) {
		after, rules := read()
		if strings.Contains(rules, `"configmaps"`) && after != before {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the path is %s, was %s; the rules are %s", after, before, rules)
		}
	}
	enforced(t, s, "uncoveredpermissionset", "edited", "True Enforced")
}

// aSetWithoutItsVerbIsNotEnforced: the verb of a set disappears with the PermissionSchema that defines it, while the endpoint still has rules.
func aSetWithoutItsVerbIsNotEnforced(t *testing.T, s *stack.Stack) {
	t.Helper()
	remove(t, s, "permissionschema", "gives")
	remove(t, s, "uncoveredpermissionset", "bars")
	apply(t, s, immutability("gives", `{path: '.data["gives"]', verb: example.com/gives}`))
	apply(t, s, uncoveredSet("bars", "granular:example.com/gives", "", "configmaps"))
	enforced(t, s, "uncoveredpermissionset", "bars", "True Enforced")
	mustKubectl(t, s, "", "delete", "permissionschema", "gives")
	enforced(t, s, "uncoveredpermissionset", "bars", "False NothingGuarded", "no field of a known kind has one of its verbs")
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
	// Kube-apiservers write one slice. What anybody adds beside it names no server.
	mustKubectl(t, s, `{"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSlice","metadata":{"name":"mine","labels":{"kubernetes.io/service-name":"kubernetes"}},"addressType":"IPv4","endpoints":[{"addresses":["192.0.2.1"]}],"ports":[{"port":6443}]}`, "apply", "-f", "-")
	apply(t, s, uncoveredSet("bared", "granular:data", "", "configmaps"))
	enforced(t, s, "uncoveredpermissionset", "bared", "True Enforced")
	bare := s.ServerConfig()
	bare.ExtraArgs["disable-admission-plugins"] = []string{"ServiceAccount", "ValidatingAdmissionWebhook"}
	must(t, s.AddAPIServer(t.Context(), "bare", bare))
	must(t, s.Publish(t.Context(), cluster.APIServer, "bare"))
	enforced(t, s, "uncoveredpermissionset", "bared", "False NotLoaded", "kube-apiserver "+address, "does not have the rules", "ValidatingAdmissionWebhook is on")
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
