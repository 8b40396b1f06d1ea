package plugin

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// owners grants alice the verb of a field of an atomic value, and bob that of the list of these values.
const owners = `
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: block}, rules: [{apiGroups: [""], resources: [configmaps], verbs: [get, granular, "granular:deletionBlock"]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: own}, rules: [{apiGroups: [""], resources: [configmaps], verbs: [get, granular, "granular:ownerReferences"]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: block}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: block}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: alice}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: own}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: own}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: bob}]}
`

// TestD4_TheVerbOfAPartOfAnAtomicValueIsNotEnough: the answer for any value, the decision on a value, and the list agree.
func TestD4_TheVerbOfAPartOfAnAtomicValueIsNotEnough(t *testing.T) {
	dir := t.TempDir()
	object, grants := filepath.Join(dir, "object.yaml"), filepath.Join(dir, "grants.yaml")
	for file, text := range map[string]string{
		object: `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop, ownerReferences: [{apiVersion: v1, kind: Pod, name: p, uid: k, blockOwnerDeletion: true}]}}`,
		grants: owners,
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const field = `.metadata.ownerReferences[uid="k"].blockOwnerDeletion`
	for _, c := range []struct {
		user string
		args []string
		want string
	}{
		{"alice", []string{"--field", field}, "no - needs granular:ownerReferences or granular:metadata or "},
		{"alice", []string{"--field", field, "--value", "false"}, "no - "},
		{"alice", []string{"--list"}, ""},
		{"bob", []string{"--field", field}, "yes"},
		{"bob", []string{"--field", field, "--value", "false"}, "yes"},
		{"bob", []string{"--list"}, ".metadata.ownerReferences"},
	} {
		var out, errs bytes.Buffer
		command := NewCanICommand(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errs})
		command.SetArgs(append([]string{"patch", "configmaps/c", "-f", object, "--grants", grants, "--as", c.user, "-o", "text"}, c.args...))
		err := command.ExecuteContext(t.Context())
		if got := out.String(); !strings.Contains(got, c.want) || c.want == "" && strings.Contains(got, "ownerReferences") {
			t.Errorf("%s %q: %q %q %v, want %q", c.user, c.args, got, errs.String(), err, c.want)
		}
	}
}
