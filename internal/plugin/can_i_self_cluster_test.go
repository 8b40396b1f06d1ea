//go:build integration

package plugin

import (
	"bytes"
	"context"
	"math/rand/v2"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/fieldperm/fieldperm/internal/anyvalue"
	"github.com/fieldperm/fieldperm/test/cluster"
)

const canISelfGrants = `
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: scaler}, rules: [{apiGroups: [apps], resources: [deployments], verbs: [get, granular, 'granular:scale']}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: scaler}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: scaler},
  subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: plain}, {apiGroup: rbac.authorization.k8s.io, kind: User, name: reader}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: reader}, rules: [
  {apiGroups: [apiextensions.k8s.io], resources: [customresourcedefinitions], verbs: [list]}, {apiGroups: [apiregistration.k8s.io], resources: [apiservices], verbs: [list]},
  {apiGroups: [fieldperm.dev], resources: [permissionschemas, uncoveredpermissionsets, conditionalpolicies], verbs: [list]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: reader}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reader},
  subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: reader}]}
`

// canI runs the command as a user. It returns its output and its standard error, or its error.
func canI(t *testing.T, user *cluster.User, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := NewCanICommand(genericiooptions.IOStreams{Out: &out, ErrOut: &errs})
	cmd.SetArgs(append(args, "--kubeconfig", user.Kubeconfig, "-n", "shop"))
	err := cmd.ExecuteContext(context.WithoutCancel(t.Context()))
	if err != nil {
		errs.WriteString(err.Error())
	}
	return ExitCode(err), out.String(), errs.String()
}

// TestCluster_CanIOfTheOwnUser: a user without permission to ask about others has an answer about itself. Without permission to read what may refuse a
// change, no answer is yes.
func TestCluster_CanIOfTheOwnUser(t *testing.T) {
	s := newCanIScene(t, rand.New(rand.NewPCG(3617, 2)))
	s.kubectl(canISelfGrants, "create", "-f", "-")
	must(t, s.stack.AwaitGrants(t.Context()))
	user := func(name string) *cluster.User {
		out, err := s.cluster.User(name)
		must(t, err)
		return out
	}
	for _, c := range []struct {
		user, args string
		code       int
		want       string
	}{
		{"reader", "patch deployments/web --field spec.replicas", 0, "yes\n"},
		{"reader", "patch deployments/web --field spec.replicas --value 7", 0, "yes\n"},
		{"reader", "patch deployments/web --field spec.paused", 1, "no - needs granular:suspension or granular:specification or granular:* or update or patch on deployments.apps\n"},
		{"reader", "patch deployments/web --list", 0, "FIELD           ANSWER  BY              WHY\n.spec.replicas  yes     granular:scale  -\n"},
		{"reader", "patch deployments/web --field spec.replicas --as alice", 2, "subjectaccessreviews"},
		{"reader", "patch statefulsets/db --field spec.replicas", 2, "allow get on statefulsets.apps, or give the object with -f"},
		{"reader", "patch deployments/none --field spec.replicas", 2, "correct the name, or give --namespace"},
		{"plain", "patch deployments/web --field spec.replicas", 2, "depends - granular:scale covers the field, unless verbs of PermissionSchemas, and barriers of UncoveredPermissionSets and conditions of ConditionalPolicies, which could not be read, refuse the change\n"},
		{"plain", "patch deployments/web --field spec.replicas", 2, "allow list on conditionalpolicies.fieldperm.dev"},
		{"plain", "patch deployments/web --field spec.replicas -o json", 2, `"answer": "depends"`},
		{"plain", "patch deployments/web --field spec.paused", 2, "no - needs granular:suspension"},
		{"plain", "patch gadgets/one --field spec.size", 2, "custom resources, and the verbs of their fields could not be read"},
	} {
		code, stdout, stderr := canI(t, user(c.user), strings.Fields(c.args)...)
		if code != c.code || !strings.Contains(stdout+stderr, c.want) || code < 2 && stderr != "" && code != 1 {
			t.Errorf("%s: %s: exit code %d, %q, %q, want %d, %q", c.user, c.args, code, stdout, stderr, c.code, c.want)
		}
	}
	s.listsAgree()
}

// listsAgree compares --list with the answers about single fields.
func (s *canIScene) listsAgree() {
	known, rows := map[string]*caller{}, 0
	for i, user := range s.users {
		for j := range drawnFields {
			if d := &drawnFields[j]; (i+j)%4 == 0 {
				o, in, f := s.about(known, user, "patch", d)
				list, err := o.listed(s.t.Context(), in)
				must(s.t, err)
				rows += len(list)
				single, err := in.judge.Field(s.t.Context(), f.Charged)
				must(s.t, err)
				if got, exact := nearest(list, f.Text()); single.Outcome == anyvalue.Yes && got != anyvalue.Yes || exact && got == anyvalue.Yes && single.Outcome == anyvalue.No {
					s.t.Errorf("%s: %s %s: %s, and in the list %s: %+v", user, d.target, d.field, single.Sentence("it"), got, list)
				}
			}
		}
	}
	if rows < 100 {
		s.t.Errorf("%d rows only", rows)
	}
}

// nearest returns the answer of the nearest row at or above a path, and whether the field has no row below it.
func nearest(rows []anyvalue.Row, path string) (out anyvalue.Outcome, exact bool) {
	best := -1
	exact = true
	for i := range rows {
		at := rows[i].Path
		if strings.HasPrefix(path, at) && len(at) > best {
			best, out = len(at), rows[i].Answer.Outcome
		}
		if len(at) > len(path) && strings.HasPrefix(at, path) {
			exact = false
		}
	}
	return out, exact
}
