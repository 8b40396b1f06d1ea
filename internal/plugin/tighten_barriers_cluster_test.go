//go:build integration

package plugin

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/internal/tighten"
)

// inProd is a set that only audits, and only in a namespace in which the operator was not seen to write.
const inProd = `
apiVersion: fieldperm.dev/v1alpha1
kind: UncoveredPermissionSet
metadata: {name: images}
spec:
  uncoveredPermissions: ["granular:image"]
  resources: [{apiGroups: [apps], resources: [deployments]}]
  matchConditions: [{name: prod, expression: "request.namespace == 'prod'"}]
  validationActions: [Audit]
`

// TestCluster_TightenFindsNewAccess: the operator holds update and patch, no create, and would pass the barrier of the cluster.
func TestCluster_TightenFindsNewAccess(t *testing.T) {
	p := newTightenPlane(t)
	p.kubectl("", "delete", "rolebinding", "edit", "-n", "shop")
	p.kubectl(inProd, "create", "-f", "-")
	s, err := tighten.ParseSubject(operator)
	must(t, err)
	p.kubectl(observationOf("first", s), "create", "-f", "-")
	p.observation("first", row(operator, "apps", "deployments", "shop", "web", "granular:image(web)", "granular:scale"))
	before := p.objects()
	const barrier = `granular:image(web) on deployments.apps: it may pass the barrier granular:image of UncoveredPermissionSet images`
	finds := func(when string) {
		t.Helper()
		if out, err := p.run(operator); !errors.Is(err, ErrIncomplete) || !strings.Contains(out, barrier) {
			t.Errorf("%s: %v", when, err)
		}
	}
	finds("before")
	dir := filepath.Join(t.TempDir(), "files")
	out, err := p.run(operator, "--allow-new", "--out", dir)
	if !errors.Is(err, ErrIncomplete) || p.objects() != before {
		t.Errorf("an object was changed, or new access is no fault: %v", err)
	}
	add, _, _ := p.commands(out)
	if text, err := os.ReadFile(filepath.Join(dir, addFile)); err != nil || !strings.Contains(string(text), "\n# - new access: ") || !strings.Contains(string(text), barrier) {
		t.Errorf("the file does not say what passes a barrier: %s", text)
	}
	p.does(add)
	finds("after the first step, whose verbs are not held without it")
}
