//go:build integration

package contrib

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// otherVersions: what a user sees whose definitions are of another version than the catalogue. A PermissionSchema with a path that its kind
// does not have is refused, and so is a definition that no longer has a path of a PermissionSchema. Both messages name the path.
func (c *plane) otherVersions(t *testing.T) {
	const name = "kustomizations.kustomize.toolkit.fluxcd.io"
	catalogue := filepath.Join(directory, "flux.yaml")
	drop := []string{"patch", "crd", name, "--type=json", "-p", `[{"op":"remove","path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/force"}]`}

	refused(t, c, `PermissionSchema contrib.`+name+`:/spec/permissions/`, drop...)
	refused(t, c, `path ".spec.force" does not exist`, drop...)
	c.kubectl(t, "", "delete", "permissionschema", "contrib."+name)
	c.repeat(t, true, drop...)

	// Until fieldperm has read the new definition it compiles the object with the old one.
	c.repeat(t, false, "apply", "--server-side", "--dry-run=server", "-f", catalogue)
	refused(t, c, `"contrib.`+name+`" is invalid`, "apply", "--server-side", "-f", catalogue)
	refused(t, c, `path ".spec.force" does not exist`, "apply", "--server-side", "-f", catalogue)
	// The other objects of the file are applied.
	for _, other := range []string{"helmreleases.helm.toolkit.fluxcd.io", "receivers.notification.toolkit.fluxcd.io"} {
		c.kubectl(t, "", "get", "permissionschema", "contrib."+other)
	}
}

// refused checks that a command fails with a text.
func refused(t *testing.T, c *plane, text string, args ...string) {
	t.Helper()
	_, stderr, err := c.run(t, args...)
	if err == nil || !strings.Contains(stderr, text) {
		t.Errorf("kubectl %s: error %v and %q, want %q", strings.Join(args, " "), err, stderr, text)
	}
}

// repeat repeats a command until fieldperm has learned what lets it succeed or fail.
func (c *plane) repeat(t *testing.T, succeeds bool, args ...string) {
	t.Helper()
	var last string
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
		_, stderr, err := c.run(t, args...)
		last = stderr
		return (err == nil) == succeeds, nil
	})
	if err != nil {
		t.Fatal(err, last)
	}
}
