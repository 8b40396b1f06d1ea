//go:build integration

package plugin

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/internal/tighten"
)

// TestCluster_TightenWithHostileOthers: other users of the cluster plant a record, delete an added Role, and bind themselves to a Role.
// They get no rights from an administrator's --undo, and do not keep the operator from its own.
func TestCluster_TightenWithHostileOthers(t *testing.T) {
	p := newTightenPlane(t)
	p.kubectl("", "delete", "rolebinding", "edit", "settings", "-n", "shop")
	p.kubectl("", "create", "role", "own", "-n", "shop", "--verb=get,update", "--resource=secrets")
	p.kubectl("", "create", "rolebinding", "own", "-n", "shop", "--role=own", "--serviceaccount=ops:operator")
	s, err := tighten.ParseSubject(operator)
	must(t, err)

	// Oscar may write PermissionObservations, and nothing else.
	before := p.objects()
	planted := fmt.Sprintf(`{"metadata": {"annotations": {"fieldperm.dev/tighten-record": %q}}}`,
		`{"subject":"`+operator+`","changed":[{"kind":"ClusterRoleBinding","name":"cluster-admin","subjects":[{"kind":"User","name":"oscar"}]}]}`)
	p.kubectl(observationOf(s.ObservationName(), s), "create", "-f", "-")
	p.kubectl("", "patch", "permissionobservation", s.ObservationName(), "--type=merge", "-p", planted)
	if _, err := p.run(operator, "--undo"); err == nil || !strings.Contains(err.Error(), "was not made by --apply") {
		t.Errorf("--undo with a planted observation: %v", err)
	}
	p.observation(s.ObservationName(), row(operator, "apps", "deployments", "shop", "web", "granular:scale"))
	if _, err := p.run(operator, "--apply"); err == nil || !strings.Contains(err.Error(), "was not made by --apply") {
		t.Errorf("--apply with a planted observation: %v", err)
	}
	if p.objects() != before {
		t.Fatal("a planted observation changes RBAC")
	}
	p.kubectl("", "delete", "permissionobservation", s.ObservationName())

	// Pat holds an aggregated ClusterRole that takes in every ClusterRole without a label.
	p.kubectl(observationOf("first", s), "create", "-f", "-")
	p.observation("first", row(operator, "apps", "deployments", "shop", "web", "granular:scale"), row(operator, "", "secrets", "shop", "own", "granular:datum(a)"))
	p.kubectl(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: platform}
aggregationRule: {clusterRoleSelectors: [{matchExpressions: [{key: restricted, operator: DoesNotExist}]}]}
`, "create", "-f", "-")
	before = p.objects()
	if _, err := p.run(operator, "--apply"); err == nil || !strings.Contains(err.Error(), "ClusterRole platform") {
		t.Errorf("an added ClusterRole that another takes in: %v", err)
	}
	if p.objects() != before {
		t.Fatal("a refused --apply changes RBAC")
	}
	p.kubectl("", "delete", "clusterrole", "platform")
	before = p.objects()

	for _, force := range [][]string{nil, {"--force-unproven"}} {
		if force != nil {
			p.observation(s.ObservationName(), row(operator, "apps", "deployments", "shop", "web", "granular:scale"))
		}
		if _, err := p.run(append([]string{operator, "--apply"}, force...)...); err != nil {
			t.Fatal(err)
		}
	}
	// Kim administers a namespace. kube-apiserver lets her bind herself to a Role of which she holds the rules that are left.
	p.kubectl("", "create", "rolebinding", "kim", "-n", "shop", "--role=own", "--user=kim")
	p.kubectl("", "delete", "role", "-n", "shop", "-l", tighten.SubjectLabel+"="+s.ID())
	for _, flags := range [][]string{nil, {"--force-overwrite"}} {
		if _, err := p.run(append([]string{operator, "--undo"}, flags...)...); err == nil || !strings.Contains(err.Error(), "Role shop/own") {
			t.Errorf("--undo %q restores what others would get: %v", flags, err)
		}
		p.await("kube-apiserver knows what was given back", func(context.Context) (bool, error) { return p.may(operator, "update", "deployments", "shop"), nil })
		if p.may("kim", "update", "secrets", "shop") {
			t.Errorf("--undo %q gives rights to another user", flags)
		}
	}
	p.kubectl("", "delete", "rolebinding", "kim", "-n", "shop")
	if _, err := p.run(operator, "--undo", "--force-overwrite"); err != nil {
		t.Errorf("without the other user: %v", err)
	}
	if after := p.objects(); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}
