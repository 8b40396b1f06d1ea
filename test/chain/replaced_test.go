//go:build integration

package chain

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
)

// anyImage takes image(x) from containers and gives them another verb.
const anyImage = `apiVersion: fieldperm.dev/v1alpha1
kind: PermissionSchema
metadata: {name: any-image}
spec:
  group: apps
  kind: Deployment
  permissions:
  - {path: '.spec.template.spec.containers[*].image', verb: example.com/anyImage}
`

// TestF4_ReplacingAVerbNamesItsHolders: an administrator that replaces a verb gets a warning with the users that hold it, at most five. If
// RBAC is not evaluated in process, the warning says that the users are not known.
func TestF4_ReplacingAVerbNamesItsHolders(t *testing.T) {
	apply := func(s *scene, document string) string {
		t.Helper()
		admin, err := s.User("admin", "system:masters")
		must(t, err)
		kubectl := s.Kubectl(admin)
		_, stderr, err := kubectl.Run(t.Context(), "", "apply", "--server-side", "-f", "../../config/crd")
		if err != nil {
			t.Fatal(stderr)
		}
		if _, stderr, err = kubectl.Run(t.Context(), "", "wait", "--for=condition=Established", "--timeout=20s", "-f", "../../config/crd"); err != nil {
			t.Fatal(stderr)
		}
		_, stderr, err = kubectl.Run(t.Context(), document, "apply", "--dry-run=server", "-f", "-")
		if err != nil {
			t.Fatal(stderr)
		}
		return stderr
	}
	s := on(t, withRBAC)
	user := func(name string) rbacv1.Subject {
		return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}
	}
	must(t, s.grant(t.Context(), "imager-1", user("ann"), rule("apps", "deployments", "granular", "granular:image(web)")))
	must(t, s.grant(t.Context(), "imager-2", user("bob"), rule("apps", "deployments", "granular:image")))
	for _, name := range []string{"v", "w", "x", "y", "z"} {
		must(t, s.grant(t.Context(), "imager-"+name, user(name), rule("apps", "deployments", "granular:image(web)")))
	}
	got := ""
	for range 50 { // fieldperm receives grants by a watch, with a delay.
		if got = apply(s, anyImage); strings.Contains(got, "and 2 more") {
			break
		}
	}
	for _, want := range []string{"Warning: granular:image writes .spec.template.spec.containers[*].image no more: held by User ann (ClusterRole", "User bob (", "and 2 more"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q does not say %q", got, want)
		}
	}
	if got := apply(s, strings.ReplaceAll(anyImage, "any-image", "other")+"  - {path: .spec.minReadySeconds, verb: example.com/ready}\n"); strings.Contains(got, "minReadySeconds") {
		t.Errorf("nobody holds a verb of that field: %s", got)
	}
	for _, name := range []string{"1", "2", "v", "w", "x", "y", "z"} {
		must(t, s.revoke(t.Context(), "imager-"+name))
	}
	if got := apply(on(t, healthy), anyImage); !strings.Contains(got, "who holds it is not known here (no authorizer of type RBAC") {
		t.Errorf("%q does not say that holders are not known", got)
	}
}
