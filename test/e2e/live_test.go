//go:build integration

package e2e

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/test/corpus"
	"github.com/fieldperm/fieldperm/test/stack"
)

// kubectl runs kubectl as an administrator.
func kubectl(t *testing.T, s *stack.Stack, stdin string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	admin, err := s.User("admin", "system:masters")
	must(t, err)
	// Cleanups also call it, after the test's context has ended.
	return s.Kubectl(admin).Run(context.WithoutCancel(t.Context()), stdin, args...)
}

func mustKubectl(t *testing.T, s *stack.Stack, stdin string, args ...string) string {
	t.Helper()
	stdout, stderr, err := kubectl(t, s, stdin, args...)
	if err != nil {
		t.Fatalf("%v: %s", err, stderr)
	}
	return stdout
}

// definitions is the directory of the generated definitions of fieldperm's kinds.
const definitions = "../../config/crd"

// install makes the API server serve fieldperm's kinds, if it does not yet.
func install(t *testing.T, s *stack.Stack) {
	t.Helper()
	must(t, s.Apply(t.Context(), definitions))
	for _, resource := range []string{v1alpha1.PermissionSchemaResource, v1alpha1.UncoveredPermissionSetResource, v1alpha1.ConditionalPolicyResource, v1alpha1.PermissionObservationResource} {
		established(t, s, resource+"."+v1alpha1.GroupVersion.Group)
	}
}

func immutability(name, entry string) string {
	return "apiVersion: fieldperm.dev/v1alpha1\nkind: PermissionSchema\nmetadata: {name: " + name + "}\nspec:\n  kind: ConfigMap\n  permissions:\n  - " + entry + "\n"
}

// inForce repeats a request until it is answered with the code, and logs the time since the change.
func inForce(t *testing.T, what string, request func() *corpus.Answer, code int) *corpus.Answer {
	t.Helper()
	changed := time.Now()
	answer := eventually(t, request, code)
	t.Logf("%s: in force %s after kubectl returned", what, time.Since(changed).Round(time.Millisecond))
	return answer
}

// TestLive_PermissionSchema: an object takes effect as soon as it is created, changed and deleted, and no other write is refused meanwhile.
func TestLive_PermissionSchema(t *testing.T) {
	s := start(t)
	maps := []string{"configmaps"}
	grant(t, s, "live", rule("", maps, "granular", "granular:example.com/immutability"))
	grant(t, s, "bystander", rule("", maps, "granular", "granular:data"))
	mustKubectl(t, s, "", "create", "configmap", "live")
	remove(t, s, "configmap", "live")
	const one = "/api/v1/namespaces/default/configmaps/live"
	live, bystander := wire(t, s, "live"), wire(t, s, "bystander")
	change := func() *corpus.Answer {
		return send(t, live, http.MethodPatch, one, merge, fields(t, `{"immutable":true}`), "dryRun=All")
	}
	install(t, s)
	eventually(t, change, 403)

	var refusals, writes atomic.Int64
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			answer, err := bystander.Do(context.WithoutCancel(ctx), http.MethodPatch, one, nil, merge, map[string]any{"data": map[string]any{"k": time.Now().String()}})
			if writes.Add(1); err != nil || answer.Code != http.StatusOK {
				refusals.Add(1)
			}
		}
	}()

	remove(t, s, "permissionschema", "live")
	apply(t, s, immutability("live", "{path: .immutable, verb: example.com/immutability}"))
	inForce(t, "created", change, 200)
	mustKubectl(t, s, "", "patch", "permissionschema", "live", "--type=merge", "-p", `{"spec":{"permissions":[{"path":".immutable","verb":"example.com/other"}]}}`)
	answer := inForce(t, "patched", change, 403)
	if !strings.Contains(answer.Status.Message, "granular:example.com/other") {
		t.Errorf("message %q does not name the new verb", answer.Status.Message)
	}
	mustKubectl(t, s, "", "patch", "permschema", "live", "--type=json", "-p", `[{"op":"replace","path":"/spec/permissions/0/verb","value":"example.com/immutability"}]`)
	inForce(t, "patched back", change, 200)
	mustKubectl(t, s, "", "delete", "permissionschema", "live")
	inForce(t, "deleted", change, 403)

	cancel()
	<-done
	if refusals.Load() > 0 || writes.Load() == 0 {
		t.Errorf("%d of %d writes of another user were refused meanwhile", refusals.Load(), writes.Load())
	}
}

// TestLive_UncoveredPermissionSet: a set refuses users with the generic permission as soon as it is created. The webhook rules already
// contain namespaces.
func TestLive_UncoveredPermissionSet(t *testing.T) {
	s := start(t)
	grant(t, s, "owner", rule("", []string{"namespaces"}, "update", "patch"))
	owner := wire(t, s, "owner")
	change := func() *corpus.Answer {
		return send(t, owner, http.MethodPatch, "/api/v1/namespaces/default", merge, fields(t, `{"metadata":{"annotations":{"live.example.com/a":"b"}}}`), "dryRun=All")
	}
	install(t, s)
	expect(t, change(), 200)
	set := func(domain string) string {
		return "apiVersion: fieldperm.dev/v1alpha1\nkind: UncoveredPermissionSet\nmetadata: {name: live}\nspec:\n  uncoveredPermissions: ['granular:annotation(" + domain + ")']\n  resources: [{apiGroups: [''], resources: [namespaces]}]\n"
	}
	remove(t, s, "uncoveredpermissionset", "live")
	apply(t, s, set("live.example.com"))
	inForce(t, "created", change, 403)
	apply(t, s, set("other.example.com"))
	inForce(t, "applied", change, 200)
	apply(t, s, set("live.example.com"))
	inForce(t, "applied again", change, 403)
	mustKubectl(t, s, "", "delete", "uncoveredpermissionset", "live")
	inForce(t, "deleted", change, 200)
}

// TestLive_FaultyObjectsAreRefused: the schema of the kind refuses a faulty object with its message, or the compiler does.
func TestLive_FaultyObjectsAreRefused(t *testing.T) {
	s := start(t)
	install(t, s)
	set := func(spec string) string {
		return "apiVersion: fieldperm.dev/v1alpha1\nkind: UncoveredPermissionSet\nmetadata: {name: faulty}\nspec: " + spec + "\n"
	}
	for name, c := range map[string]struct{ document, says string }{
		"unknown path":             {immutability("faulty", "{path: .nope, verb: data}"), `path ".nope" does not exist`},
		"parameter from nowhere":   {immutability("faulty", "{path: .immutable, verb: data, parameterizedBy: nobody}"), `nothing on the path emits parameter "nobody"`},
		"CEL":                      {immutability("faulty", "{path: .immutable, verb: data, excludedWhen: 'self =='}"), "does not compile"},
		"bad path":                 {immutability("faulty", "{path: immutable, verb: data}"), "begin it with a dot"},
		"bad verb":                 {immutability("faulty", "{path: .immutable, verb: Data}"), "lowerCamelCase"},
		"bad domain":               {immutability("faulty", "{path: .immutable, verb: Example.com/data}"), "lowerCamelCase"},
		"says nothing":             {immutability("faulty", "{path: .immutable}"), "add a verb, a parameterSource or an include"},
		"excluded without a verb":  {immutability("faulty", "{path: .data, parameterSource: key, excluded: true}"), "add a verb"},
		"treatment of nothing":     {immutability("faulty", "{path: .data, verb: data, parameterTreatment: slash-delimited-prefix}"), "add parameterizedBy"},
		"treatment and expression": {immutability("faulty", "{path: '.data[*]', verb: datum, parameterizedBy: key, parameterTreatment: slash-delimited-prefix, parameterExpression: self}"), "keep one of parameterTreatment and parameterExpression"},
		"excluded twice":           {immutability("faulty", "{path: .immutable, verb: data, excluded: true, excludedWhen: 'self == true'}"), "keep one of excluded and excludedWhen"},
		"twice the same path":      {immutability("faulty", "{path: .immutable, verb: data}\n  - {path: .immutable, verb: datum}"), "Duplicate value"},
		"any kind":                 {strings.Replace(immutability("faulty", "{path: .immutable, verb: data}"), "ConfigMap", `"*"`, 1), "name one kind"},
		"empty set":                {set("{uncoveredPermissions: []}"), "should have at least 1 items"},
		"no granular verb":         {set("{uncoveredPermissions: [update]}"), "write the whole verb"},
		"the marker":               {set("{uncoveredPermissions: [granular]}"), "write the whole verb"},
		"bad granular verb":        {set("{uncoveredPermissions: ['granular:Scale']}"), "lowerCamelCase"},
		"bad condition":            {set("{uncoveredPermissions: ['granular:scale'], matchConditions: [{name: a, expression: '1'}]}"), "make it yield bool"},
		"rule without resources":   {set("{uncoveredPermissions: ['granular:scale'], resources: [{apiGroups: [apps], resources: []}]}"), "should have at least 1 items"},
	} {
		t.Run(name, func(t *testing.T) {
			stdout, stderr, err := kubectl(t, s, c.document, "apply", "--dry-run=server", "-f", "-")
			if err == nil || !strings.Contains(stderr, c.says) {
				t.Errorf("not refused with %q: %v %s %s", c.says, err, stdout, stderr)
			}
		})
	}
	remove(t, s, "permissionschema", "good")
	apply(t, s, immutability("good", "{path: .immutable, verb: example.com/immutability}"))
	_, stderr, err := kubectl(t, s, "", "patch", "permissionschema", "good", "--type=merge", "-p", `{"spec":{"permissions":[{"path":".nope","verb":"data"}]}}`)
	if err == nil || !strings.Contains(stderr, `"good" is invalid: /spec/permissions/0: path ".nope" does not exist`) {
		t.Errorf("an update that makes it faulty is not refused: %v %s", err, stderr)
	}
	// A kind that does not exist yet may be installed later, so that its name causes only a warning.
	_, stderr, err = kubectl(t, s, strings.Replace(immutability("later", "{path: .immutable, verb: example.com/a}"), "ConfigMap", "Later", 1), "apply", "--dry-run=server", "-f", "-")
	if err != nil || !strings.Contains(stderr, `Warning: PermissionSchema later:/spec/kind: kind "Later"`) {
		t.Errorf("%v %s", err, stderr)
	}
}

// row waits until "kubectl get" prints the columns of an object, and returns the output.
func row(t *testing.T, s *stack.Stack, resource, name string, columns ...string) string {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		out := mustKubectl(t, s, "", "get", resource, name, "-o", "wide")
		for line := range strings.Lines(out) {
			if is := strings.Fields(line); len(is) >= len(columns)+1 && is[0] == name && strings.Join(is[1:len(columns)+1], " ") == strings.Join(columns, " ") {
				return out
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s %s does not show %q:\n%s\n%s", resource, name, columns, out, s.WebhookLogTail())
		}
		time.Sleep(pause)
	}
}

// TestLive_StatusColumnsShowTheConditions: kubectl prints the status, and a dumped object can be loaded as a file.
func TestLive_StatusColumnsShowTheConditions(t *testing.T) {
	s := start(t)
	install(t, s)
	for _, name := range []string{"plain", "barrier"} {
		remove(t, s, "permissionschema", name)
	}
	remove(t, s, "uncoveredpermissionset", "live")
	apply(t, s, immutability("plain", "{path: .immutable, verb: example.com/immutability}"))
	apply(t, s, "apiVersion: fieldperm.dev/v1alpha1\nkind: PermissionSchema\nmetadata: {name: barrier}\nspec: {group: apps, kind: Deployment, permissions: [{path: .spec.paused, verb: example.com/pause, excluded: true}]}\n")
	apply(t, s, "apiVersion: fieldperm.dev/v1alpha1\nkind: UncoveredPermissionSet\nmetadata: {name: live}\nspec: {uncoveredPermissions: ['granular:annotation(live.example.com)', 'granular:example.com/toCome'], resources: [{apiGroups: [''], resources: [namespaces]}, {apiGroups: [tocome.example.com], resources: [comings]}]}\n")

	out := row(t, s, "permissionschemas", "plain", "ConfigMap", "True", "True")
	if header := strings.Join(strings.Fields(strings.Split(out, "\n")[0]), " "); header != "NAME GROUP KIND FRAGMENT COMPILED ENFORCED AGE MESSAGE" {
		t.Errorf("header %q", header)
	}
	row(t, s, "permissionschemas", "barrier", "apps", "Deployment", "True", "True")
	out = row(t, s, "uncovered", "live", `["granular:annotation(live.example.com)","granular:example.com/toCome"]`, "True", "True")
	if !strings.Contains(out, "guards no field of any known kind") {
		t.Errorf("the unknown resource is not named:\n%s", out)
	}
	if out := mustKubectl(t, s, "", "get", "fieldperm", "-o", "name"); strings.Count(out, "\n") != 3 {
		t.Errorf("category fieldperm has:\n%s", out)
	}
	for path, want := range map[string]string{
		`{.status.observedGeneration} {.metadata.generation}`:           "1 1",
		`{.status.conditions[?(@.type=="Enforced")].reason}`:            "Enforced",
		`{.status.conditions[?(@.type=="Compiled")].reason}`:            "Compiled",
		`{.metadata.managedFields[?(@.subresource=="status")].manager}`: "fieldperm",
	} {
		if got := mustKubectl(t, s, "", "get", "permissionschema", "barrier", "--show-managed-fields", "-o", "jsonpath="+path); got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
	mustKubectl(t, s, "", "patch", "permissionschema", "barrier", "--type=merge", "-p", `{"spec":{"permissions":[{"path":".spec.paused","verb":"example.com/pause"}]}}`)
	row(t, s, "permissionschemas", "barrier", "apps", "Deployment", "True", "True")

	dump := filepath.Join(t.TempDir(), "dump.yaml")
	must(t, os.WriteFile(dump, []byte(mustKubectl(t, s, "", "get", "permissionschemas", "-o", "yaml", "--show-managed-fields")), 0o600))
	if _, err := s.Generate(t.Context(), "manifests", "--out", t.TempDir(), "--config-dir", "/x", "--url", "https://127.0.0.1:1", "--ca-file", filepath.Join(s.Dir(), "config", "ca.crt"), "--rest", "--write-uncovered", "--permission-schemas", dump); err != nil {
		t.Errorf("what kubectl dumps cannot be loaded: %v", err)
	}
}

// TestLive_FaultyObjectThatLanded: while fieldperm is down no webhook refuses a faulty object. After the start there is no last good
// content. So writes of its kind by users with the marker are refused, and its status says why. All other kinds are not affected.
func TestLive_FaultyObjectThatLanded(t *testing.T) {
	s := start(t)
	grant(t, s, "landed", rule("", []string{"configmaps", "secrets"}, "granular", "granular:data"))
	for _, resource := range []string{"configmap", "secret"} {
		kind := []string{"create", resource}
		if resource == "secret" {
			kind = append(kind, "generic")
		}
		mustKubectl(t, s, "", append(kind, "landed")...)
		remove(t, s, resource, "landed")
	}
	change := func(resource string) func() *corpus.Answer {
		return func() *corpus.Answer {
			return send(t, wire(t, s, "landed"), http.MethodPatch, "/api/v1/namespaces/default/"+resource+"/landed", merge, fields(t, `{"data":{"k":"dg=="}}`), "dryRun=All")
		}
	}
	install(t, s)
	expect(t, change("configmaps")(), 200)
	stop(t, s)
	remove(t, s, "permissionschema", "landed")
	apply(t, s, immutability("landed", "{path: .nope, verb: example.com/nope, excluded: true}"))
	must(t, s.StartWebhook(t.Context()))
	eventually(t, change("secrets"), 200)
	answer := change("configmaps")()
	if answer.Code < 400 || !strings.Contains(answer.Status.Message, ".nope") {
		t.Errorf("got %d: %s", answer.Code, answer.Body)
	}
	out := row(t, s, "permissionschemas", "landed", "ConfigMap", "False")
	if !strings.Contains(out, `path ".nope" does not exist`) {
		t.Errorf("the status does not say why:\n%s", out)
	}
	mustKubectl(t, s, "", "delete", "permissionschema", "landed")
	inForce(t, "deleted", change("configmaps"), 200)
}

// TestLive_LastGoodStays: an object becomes faulty while fieldperm is frozen and cannot refuse the change. Its earlier content stays in
// force.
func TestLive_LastGoodStays(t *testing.T) {
	s := start(t)
	grant(t, s, "keeper", rule("", []string{"configmaps"}, "granular", "granular:example.com/kept"))
	mustKubectl(t, s, "", "create", "configmap", "kept")
	remove(t, s, "configmap", "kept")
	change := func() *corpus.Answer {
		return send(t, wire(t, s, "keeper"), http.MethodPatch, "/api/v1/namespaces/default/configmaps/kept", merge, fields(t, `{"immutable":true}`), "dryRun=All")
	}
	install(t, s)
	remove(t, s, "permissionschema", "kept")
	apply(t, s, immutability("kept", "{path: .immutable, verb: example.com/kept}"))
	inForce(t, "created", change, 200)

	must(t, s.SignalReplica(0, syscall.SIGSTOP))
	_, stderr, err := kubectl(t, s, "", "patch", "permissionschema", "kept", "--type=merge", "-p", `{"spec":{"permissions":[{"path":".nope","verb":"example.com/kept"}]}}`)
	must(t, s.SignalReplica(0, syscall.SIGCONT))
	if err != nil {
		t.Fatalf("%v: %s", err, stderr)
	}
	row(t, s, "permissionschemas", "kept", "ConfigMap", "False")
	eventually(t, change, 200)
	if got := mustKubectl(t, s, "", "get", "permissionschema", "kept", "-o", "jsonpath={.status.observedGeneration}"); got != "2" {
		t.Errorf("observedGeneration %q", got)
	}
	mustKubectl(t, s, "", "delete", "permissionschema", "kept")
	inForce(t, "deleted", change, 403)
}

// TestLive_DeletedKinds: an administrator that deletes the definitions deletes the objects too, and fieldperm logs no errors.
func TestLive_DeletedKinds(t *testing.T) {
	s := start(t)
	grant(t, s, "orphan", rule("", []string{"configmaps"}, "granular", "granular:example.com/gone"))
	mustKubectl(t, s, "", "create", "configmap", "gone")
	remove(t, s, "configmap", "gone")
	change := func() *corpus.Answer {
		return send(t, wire(t, s, "orphan"), http.MethodPatch, "/api/v1/namespaces/default/configmaps/gone", merge, fields(t, `{"immutable":true}`), "dryRun=All")
	}
	install(t, s)
	apply(t, s, immutability("gone", "{path: .immutable, verb: example.com/gone}"))
	eventually(t, change, 200)
	mustKubectl(t, s, "", "delete", "-f", definitions)
	inForce(t, "deleted with its definition", change, 403)
	before := strings.Count(s.WebhookLogTail(), "permissionschemas")
	time.Sleep(3 * time.Second) // A reflector that was not stopped would try again in this time.
	if log := s.WebhookLogTail(); strings.Count(log, "permissionschemas") > before {
		t.Errorf("it still asks for deleted kinds:\n%s", log)
	}
}
