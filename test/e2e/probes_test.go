//go:build integration

package e2e

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fieldperm/fieldperm/test/cluster"
	"github.com/fieldperm/fieldperm/test/stack"
)

// uncoveredSet is a set of one verb on one resource.
func uncoveredSet(name, verb, group, resource string) string {
	return "apiVersion: fieldperm.dev/v1alpha1\nkind: UncoveredPermissionSet\nmetadata: {name: " + name + "}\nspec:\n  uncoveredPermissions: ['" + verb +
		"']\n  resources: [{apiGroups: ['" + group + "'], resources: [" + resource + "]}]\n"
}

// enforced waits until the condition Enforced of an object has a status and a reason, and returns its message.
func enforced(t *testing.T, s *stack.Stack, resource, name, want string) string {
	t.Helper()
	const path = `jsonpath={.status.conditions[?(@.type=="Enforced")]['status','reason','message']}`
	deadline := time.Now().Add(20 * time.Second)
	for {
		is := mustKubectl(t, s, "", "get", resource, name, "-o", path)
		if message, ok := strings.CutPrefix(is, want+" "); ok {
			return message
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s %s: %q, want %q\n%s", resource, name, is, want, s.WebhookLogTail())
		}
		time.Sleep(50 * time.Millisecond)
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

// TestA6_W2_EnforcedIsProbed: Enforced is True when a dry-run write through each endpoint was refused, and says of which
// endpoint that is not known.
func TestA6_W2_EnforcedIsProbed(t *testing.T) {
	for name, start := range map[string]func(*testing.T) *stack.Stack{"Static": start, "REST": startREST} {
		t.Run(name, func(t *testing.T) {
			s := start(t)
			install(t, s)
			t.Run("Subresources", func(t *testing.T) { subresourcesAreProbed(t, s) })
			t.Run("Bindings", func(t *testing.T) { bindingsAreProbed(t, s) })
			t.Run("Schemas", func(t *testing.T) { schemasAreProbed(t, s) })
		})
	}
}

func startREST(t *testing.T) *stack.Stack {
	t.Helper()
	bin, err := Build(t.Context())
	must(t, err)
	s, err := stack.Start(t.Context(), stack.Config{Bin: bin, Topology: stack.REST})
	must(t, err)
	t.Cleanup(func() { must(t, s.Stop()) })
	return s
}

// subresourcesAreProbed: an endpoint that takes an object is probed once there is one.
func subresourcesAreProbed(t *testing.T, s *stack.Stack) {
	t.Helper()
	grant(t, s, "deployer", rule("apps", []string{"deployments"}, "create", "update", "patch"))
	remove(t, s, "uncoveredpermissionset", "probed")
	mustKubectl(t, s, uncoveredSet("probed", "granular:scale", "apps", "deployments"), "apply", "-f", "-")
	says(t, enforced(t, s, "uncoveredpermissionset", "probed", "Unknown NotProbed"),
		"deployments/scale.apps: not probed, because it takes an object that exists", "refused through deployments.apps")

	// The webhook is asked about a Deployment. From then on there is one to probe with.
	mustKubectl(t, s, "", "create", "deployment", "probed", "--image=x")
	remove(t, s, "deployment", "probed")
	expect(t, send(t, wire(t, s, "deployer"), http.MethodPatch, "/apis/apps/v1/namespaces/default/deployments/probed", merge, fields(t, `{"metadata":{"labels":{"a":"b"}}}`), "dryRun=All"), 200)
	says(t, enforced(t, s, "uncoveredpermissionset", "probed", "True Enforced"), "refused through deployments.apps, deployments/scale.apps")
	if got := mustKubectl(t, s, "", "get", "deployments,pods", "-A", "-o", "name"); got != "deployment.apps/probed\n" {
		t.Errorf("probes left something:\n%s", got)
	}
}

// bindingsAreProbed: a Binding writes into Pods, and both endpoints of it are probed without a Pod.
func bindingsAreProbed(t *testing.T, s *stack.Stack) {
	t.Helper()
	remove(t, s, "uncoveredpermissionset", "placed")
	mustKubectl(t, s, uncoveredSet("placed", "granular:nodeAssignment", "", "pods"), "apply", "-f", "-")
	message := enforced(t, s, "uncoveredpermissionset", "placed", "True Enforced")
	says(t, message, "bindings", "pods", "pods/binding")
}

// schemasAreProbed: what a PermissionSchema excludes is probed as a set is.
func schemasAreProbed(t *testing.T, s *stack.Stack) {
	t.Helper()
	remove(t, s, "permissionschema", "probed")
	mustKubectl(t, s, immutability("probed", "{path: .immutable, verb: example.com/immutability, excluded: true}"), "apply", "-f", "-")
	says(t, enforced(t, s, "permissionschema", "probed", "True Enforced"), "refused through configmaps")
}

// TestA6_W2_MatchConditionsDoNotKeepProbesOut: the user of the probes matches no condition, and the barrier is probed.
func TestA6_W2_MatchConditionsDoNotKeepProbesOut(t *testing.T) {
	s := start(t)
	install(t, s)
	remove(t, s, "uncoveredpermissionset", "conditional")
	mustKubectl(t, s, uncoveredSet("conditional", "granular:data", "", "configmaps")+
		"  matchConditions: [{name: one, expression: \"request.userInfo.username == 'somebody' && request.namespace == 'nowhere'\"}]\n", "apply", "-f", "-")
	says(t, enforced(t, s, "uncoveredpermissionset", "conditional", "True Enforced"), "refused through configmaps")
}

// TestA6_W2_AServerThatDoesNotAsk: what is read of the configuration is right, but one kube-apiserver asks nobody. The
// barrier is not enforced, and the message says where and what to do.
func TestA6_W2_AServerThatDoesNotAsk(t *testing.T) {
	address, err := cluster.PublicAddress()
	must(t, err)
	if address == "" {
		t.Skip("this machine has loopback addresses only, which the API server refuses in EndpointSlices: give an interface an address")
	}
	bin, err := Build(t.Context())
	must(t, err)
	s, err := stack.Start(t.Context(), stack.Config{Bin: bin, Topology: stack.REST, Address: address})
	must(t, err)
	t.Cleanup(func() { must(t, s.Stop()) })
	install(t, s)
	mustKubectl(t, s, uncoveredSet("bared", "granular:data", "", "configmaps"), "apply", "-f", "-")
	enforced(t, s, "uncoveredpermissionset", "bared", "True Enforced")
	bare := s.ServerConfig()
	bare.ExtraArgs["disable-admission-plugins"] = []string{"ServiceAccount", "ValidatingAdmissionWebhook"}
	must(t, s.AddAPIServer(t.Context(), "bare", bare))
	must(t, s.Publish(t.Context(), cluster.APIServer, "bare"))
	says(t, enforced(t, s, "uncoveredpermissionset", "bared", "False NotRefused"),
		"kube-apiserver "+address, "of configmaps: was not refused", "ValidatingAdmissionWebhook is on")
	must(t, s.Publish(t.Context(), cluster.APIServer))
	enforced(t, s, "uncoveredpermissionset", "bared", "True Enforced")
}
