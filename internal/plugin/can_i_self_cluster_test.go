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
  subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: plain}]}
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
	user, err := s.cluster.User("plain")
	must(t, err)
	ask := func(args string, code int, want string) {
		t.Helper()
		got, stdout, stderr := canI(t, user, strings.Fields(args)...)
		if got != code || !strings.Contains(stdout+stderr, want) || got < 2 && stderr != "" && got != 1 || strings.Count(stderr, "warning: ") > 1 {
			t.Errorf("%s: exit code %d, %q, %q, want %d, %q", args, got, stdout, stderr, code, want)
		}
	}
	ask("patch deployments/web --field spec.replicas", 0, "yes\n")
	ask("patch deployments/web --field spec.replicas --value 7", 0, "yes\n")
	ask("patch deployments/web --field spec.paused", 1, "no - needs granular:suspension or granular:specification or granular:* or update or patch on deployments.apps\n")
	ask("patch deployments/web --list", 0, "FIELD           ANSWER  BY              WHY\n.spec.replicas  yes     granular:scale  -\n")
	ask("patch deployments/web --field spec.replicas --as alice", 2, "subjectaccessreviews")
	ask("patch statefulsets/db --field spec.replicas", 2, "allow get on statefulsets.apps, or give the object with -f")
	ask("patch deployments/none --field spec.replicas", 2, "correct the name, or give --namespace")

	// Where an administrator keeps the rules to himself.
	s.kubectl("", "delete", "clusterrolebinding", "fieldperm-rules-viewer")
	s.await("the rules cannot be read", func(context.Context) (bool, error) {
		out, _, _ := s.cluster.Kubectl(user).Run(t.Context(), "", "auth", "can-i", "list", "uncoveredpermissionsets.fieldperm.dev")
		return strings.HasPrefix(out, "no"), nil
	})
	ask("patch deployments/web --field spec.replicas", 2, "depends - granular:scale covers the field, unless verbs of PermissionSchemas, and barriers of UncoveredPermissionSets and conditions of ConditionalPolicies, which could not be read, refuse the change\n")
	ask("patch deployments/web --field spec.replicas", 2, "which you may not read: an administrator binds the ClusterRole fieldperm-rules-viewer to you")
	ask("patch deployments/web --field spec.replicas -o json", 2, `"answer": "depends"`)
	ask("patch deployments/web --field spec.paused", 2, "no - needs granular:suspension")
	ask("patch gadgets/one --field spec.size", 2, "custom resources, and the verbs of their fields could not be read")
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
