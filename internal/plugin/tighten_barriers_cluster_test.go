//go:build integration

package plugin

import (
	"errors"
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
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, barrier},
		{[]string{"--apply"}, barrier},
	} {
		out, err := p.run(append([]string{operator}, c.args...)...)
		if err == nil || !strings.Contains(out+err.Error(), c.want) || len(c.args) == 0 && !errors.Is(err, ErrIncomplete) {
			t.Errorf("%q: %v", c.args, err)
		}
	}
	if p.objects() != before {
		t.Error("an object was changed")
	}
	if _, err := p.run(operator, "--apply", "--allow-new"); err != nil {
		t.Error(err)
	}
	// What the first step added is not held without it.
	for _, args := range [][]string{{operator}, {operator, "--apply", "--force-unproven"}} {
		if out, err := p.run(args...); err == nil || !strings.Contains(out+err.Error(), barrier) {
			t.Errorf("after the first step, %q: %v", args, err)
		}
	}
}
