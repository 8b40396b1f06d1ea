//go:build integration

package plugin

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/discovery"

	"github.com/fieldperm/fieldperm/internal/audit"
	"github.com/fieldperm/fieldperm/schema/endpoint"
	"github.com/fieldperm/fieldperm/test/cluster"
	"github.com/fieldperm/fieldperm/test/e2e"
	"github.com/fieldperm/fieldperm/test/stack"
)

// audited are the objects of the cluster: one with each fault, and clean ones beside them.
const audited = `
{apiVersion: fieldperm.dev/v1alpha1, kind: UncoveredPermissionSet, metadata: {name: nobody-holds}, spec: {uncoveredPermissions: ["granular:tolerations"], resources: [{apiGroups: [apps], resources: [statefulsets]}]}}
---
{apiVersion: fieldperm.dev/v1alpha1, kind: UncoveredPermissionSet, metadata: {name: all-hold}, spec: {uncoveredPermissions: ["granular:suspension"], resources: [{apiGroups: [batch], resources: [cronjobs]}]}}
---
{apiVersion: fieldperm.dev/v1alpha1, kind: UncoveredPermissionSet, metadata: {name: tried}, spec: {uncoveredPermissions: ["granular:parallelism"], resources: [{apiGroups: [batch], resources: [jobs]}], validationActions: [Warn]}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: clean, namespace: default}, rules: [
  {apiGroups: [apps], resources: [deployments, deployments/scale], verbs: [get, granular, "granular:scale"]},
  {apiGroups: [example.com], resources: [gadgets, gadgets/scale], verbs: [update, "granular:example.com/danger", "granular:example.com/size"]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: names, namespace: default}, rules: [
  {apiGroups: [apps], resources: [deployments], verbs: [granluar, "granular:Scale"]},
  {apiGroups: [apps], resources: [deployments, deployments/scale], verbs: [granular, "granular:scal", "granular:taints", "granular:scale", get]},
  {apiGroups: [""], resources: [deployments], verbs: [granular, get]},
  {apiGroups: [""], resources: [nodes], verbs: [granular, get]},
  {apiGroups: [apps], resources: [statefulsets], verbs: [granular, "granular:condition(Ready)", "granular:scale", get]},
  {apiGroups: [""], resources: [pods], verbs: [granular, "granular:label(example.com/x)", "granular:annotations", get]},
  {apiGroups: [""], resources: [pods/exec, pods], verbs: [granular, get]},
  {apiGroups: [""], resources: [configmaps], verbs: [create], resourceNames: [x]},
  {apiGroups: [apps], resources: [daemonsets], verbs: [granular, "granular:*", get]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: wild, namespace: default}, rules: [{apiGroups: [batch], resources: [cronjobs], verbs: ["*"]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: verb-alone, namespace: default}, rules: [{apiGroups: [apps], resources: [replicasets], verbs: ["granular:metadata"]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: marker-alone, namespace: default}, rules: [{apiGroups: [""], resources: [services], verbs: [granular, get]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: idle, namespace: default}, rules: [
  {apiGroups: [""], resources: [endpoints], verbs: [granular, "granular:metadata", get]}, {apiGroups: [""], resources: [endpoints], verbs: [patch]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: secrets, namespace: default}, rules: [{apiGroups: [""], resources: [secrets], verbs: [granular, "granular:annotations"]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: powers}, rules: [{apiGroups: [apps], resources: [daemonsets], verbs: [granular, "granular:image", get]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: powers}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: powers}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: "system:authenticated"}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: suspends}, rules: [{apiGroups: [batch], resources: [cronjobs], verbs: [granular, "granular:suspension", get]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: suspends}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: suspends}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: "system:serviceaccounts"}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: administrator}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: jane}]}
`

// bound are the Roles that are bound, each to a ServiceAccount of its name.
var boundRoles = []string{"clean", "names", "verb-alone", "marker-alone", "idle", "secrets"}

// faults are the findings about them, and no others: rule, object and path.
var faultsOfAudited = []string{
	"barrier-held-by-everybody ClusterRoleBinding suspends subjects[0]",
	"barrier-not-enforced UncoveredPermissionSet all-hold status.conditions",
	"barrier-not-enforced UncoveredPermissionSet nobody-holds status.conditions",
	"barrier-not-enforced UncoveredPermissionSet tried status.conditions",
	"cluster-scoped-resource-in-role Role default/names rules[3].resources[0]",
	"create-with-resource-names Role default/names rules[7].verbs[0]",
	"enforcement-not-proven",
	"generic-permission-makes-verb-idle Role default/idle rules[0].verbs[1]",
	"granular-verb-without-marker Role default/verb-alone rules[0].verbs[0]",
	"invalid-verb Role default/names rules[0].verbs[1]",
	"marker-without-effect Role default/names rules[6].resources[0]",
	"marker-without-get Role default/secrets rules[0].verbs[0]",
	"marker-without-granular-verb Role default/marker-alone rules[0].verbs[0]",
	"misspelt-marker Role default/names rules[0].verbs[0]",
	"parameter-never-matches Role default/names rules[5].verbs[1]",
	"power-held-by-many ClusterRoleBinding powers subjects[0]",
	"power-held-by-many ClusterRoleBinding suspends subjects[0]",
	"scale-not-granted Role default/names rules[4].verbs[2]",
	"unknown-resource Role default/names rules[2].resources[0]",
	"unknown-verb Role default/names rules[1].verbs[1]",
	"verb-covers-all-fields Role default/names rules[8].verbs[1]",
	"verb-needs-subresource Role default/names rules[4].verbs[1]",
	"verb-not-on-resource Role default/names rules[1].verbs[2]",
	"wildcard-satisfies-barrier ClusterRole cluster-admin",
	"wildcard-satisfies-barrier ClusterRoleBinding administrator subjects[0]",
	"wildcard-satisfies-barrier Role default/wild rules[0].verbs[0]",
}

// auditOf runs the command as a user.
func auditOf(t *testing.T, u *cluster.User, args ...string) (code int, stdout, problems string) {
	t.Helper()
	var out, warnings bytes.Buffer
	cmd := NewAuditCommand(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &warnings})
	cmd.SetArgs(append(args, "--kubeconfig", u.Kubeconfig, "--cache-dir", t.TempDir()))
	err := cmd.ExecuteContext(t.Context())
	if err != nil {
		warnings.WriteString(err.Error())
	}
	return ExitCode(err), out.String(), warnings.String()
}

func auditAnswerOf(t *testing.T, stdout string) auditAnswer {
	t.Helper()
	var out auditAnswer
	if err := json.Unmarshal([]byte(stdout), &out); err != nil {
		t.Fatalf("%v: %s", err, stdout)
	}
	return out
}

// TestCluster_AuditFindsEachFaultAndNoOther: a cluster with one of each fault that it can have without a faulty document.
func TestCluster_AuditFindsEachFaultAndNoOther(t *testing.T) {
	p := newPlane(t)
	objects := audited
	for _, name := range boundRoles {
		objects += "---\n{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: " + name + ", namespace: default}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: " + name +
			"}, subjects: [{kind: ServiceAccount, name: " + name + "}]}\n"
	}
	p.kubectl(objects, "create", "-f", "-")
	p.await("fieldperm-webhook has compiled the sets", func(context.Context) (bool, error) {
		_, stdout, _ := auditOf(t, p.admin, "-o", "json")
		return !strings.Contains(stdout, "fieldperm-webhook has not said"), nil
	})

	code, stdout, problems := auditOf(t, p.admin, "-o", "json")
	a := auditAnswerOf(t, stdout)
	var got []string
	for _, f := range a.Findings {
		text := f.Rule + " " + f.Object.String()
		if f.Path != "" {
			text += " " + f.Path
		}
		if f.Rule == "enforcement-not-proven" {
			text = f.Rule
		}
		got = append(got, text)
	}
	slices.Sort(got)
	for _, f := range faultsOfAudited {
		if !slices.Contains(got, f) {
			t.Errorf("not found: %s", f)
		}
	}
	for _, f := range got {
		if !slices.Contains(faultsOfAudited, f) {
			t.Errorf("found and no fault: %s", f)
		}
	}
	if t.Failed() {
		_, text, _ := auditOf(t, p.admin)
		t.Log(text)
	}
	if code != 1 || len(a.Missing) > 0 {
		t.Errorf("exit code %d, missing %+v, %s", code, a.Missing, problems)
	}
	if a.Summary.Objects["ClusterRole"] < 50 || a.Summary.Objects["Role"] < 10 {
		t.Errorf("read %+v", a.Summary.Objects)
	}

	t.Run("no subject passes a barrier", func(t *testing.T) {
		p.kubectl("", "delete", "clusterrolebinding", "administrator")
		_, stdout, _ := auditOf(t, p.admin, "-o", "json")
		var got []string
		for _, f := range auditAnswerOf(t, stdout).Findings {
			if f.Rule == "barrier-without-holder" {
				got = append(got, f.Object.String())
			}
		}
		slices.Sort(got)
		// The other two are verbs of the aggregated API server.
		const document = "OpenAPI openapi/v3/apis/sea.example.com/v1"
		if want := []string{document, document, "UncoveredPermissionSet nobody-holds"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
	t.Run("the namespace limits it", func(t *testing.T) {
		code, stdout, problems := auditOf(t, p.admin, "-n", "kube-public", "-o", "json")
		if a := auditAnswerOf(t, stdout); code != 0 || strings.Contains(problems, "lacks") || len(a.Findings) != 0 {
			t.Errorf("exit code %d, %s, %+v", code, problems, a.Findings)
		}
	})
	t.Run("the user may not list bindings", func(t *testing.T) {
		p.kubectl(`
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: reads-roles}, rules: [{apiGroups: [rbac.authorization.k8s.io], resources: [roles, clusterroles], verbs: [list]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: reads-roles}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reads-roles}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: asker}]}
`, "create", "-f", "-")
		p.await("the role is in force", func(context.Context) (bool, error) {
			out, _, _ := p.cluster.Kubectl(p.admin).Run(t.Context(), "", "auth", "can-i", "list", "clusterroles.rbac.authorization.k8s.io", "--as=asker")
			return strings.HasPrefix(out, "yes"), nil
		})
		code, stdout, problems := auditOf(t, p.asker, "-o", "json")
		a := auditAnswerOf(t, stdout)
		for _, want := range []string{"allow list on rolebindings.rbac.authorization.k8s.io", "allow list on clusterrolebindings.rbac.authorization.k8s.io"} {
			if !strings.Contains(problems, want) || !strings.Contains(stdout, want) {
				t.Errorf("lacks %q: %s", want, problems)
			}
		}
		has := func(rule string) bool {
			return slices.ContainsFunc(a.Findings, func(f audit.Finding) bool { return f.Rule == rule })
		}
		if code != 2 || !has("unknown-verb") || has("granular-verb-without-marker") || has("barrier-without-holder") {
			t.Errorf("exit code %d: %s", code, stdout)
		}
	})
	t.Run("the resources without a namespace are those of the API server", func(t *testing.T) {
		client, err := discovery.NewDiscoveryClientForConfig(p.admin.Config)
		must(t, err)
		lists, err := client.ServerPreferredResources()
		must(t, err)
		for _, list := range lists {
			group, _, found := strings.Cut(list.GroupVersion, "/")
			if !found {
				group = ""
			}
			for i := range list.APIResources {
				r := &list.APIResources[i]
				if !strings.HasSuffix(group, "example.com") && !strings.Contains(r.Name, "thieves") && r.Namespaced == endpoint.ClusterScoped(group, r.Name) {
					t.Errorf("%s of %s: namespaced %v", r.Name, list.GroupVersion, r.Namespaced)
				}
			}
		}
	})
}

// TestCluster_AuditBelievesAProof: where fieldperm is enforced, a holder of the marker is let in, and the audit reports nothing.
func TestCluster_AuditBelievesAProof(t *testing.T) {
	bin, err := e2e.Build()
	must(t, err)
	s, err := stack.Start(t.Context(), stack.Config{Bin: bin})
	must(t, err)
	t.Cleanup(func() { must(t, s.Stop()) })
	admin, err := s.User("admin", "system:masters")
	must(t, err)
	p := &plane{t: t, cluster: s.Cluster, admin: admin}
	p.kubectl(`
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: scaler}, rules: [{apiGroups: [apps], resources: [deployments, deployments/scale], verbs: [granular, "granular:scale", get]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: scaler, namespace: default}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: scaler}, subjects: [{kind: ServiceAccount, name: scaler}]}
`, "create", "-f", "-")
	must(t, s.AwaitGrants(t.Context()))
	findings := func() []audit.Finding {
		_, stdout, problems := auditOf(t, admin, "-n", "default", "-o", "json")
		a := auditAnswerOf(t, stdout)
		if len(a.Missing) > 0 {
			t.Fatal(problems)
		}
		return a.Findings
	}
	p.await("enforcement is proven", func(context.Context) (bool, error) {
		return !slices.ContainsFunc(findings(), func(f audit.Finding) bool { return f.Rule == "enforcement-not-proven" }), nil
	})
	for _, f := range findings() {
		t.Errorf("%+v", f)
	}
	// fieldperm's own objects have no faults.
	_, stdout, _ := auditOf(t, admin, "-o", "json")
	for _, f := range auditAnswerOf(t, stdout).Findings {
		if strings.HasPrefix(f.Object.Name, "fieldperm") {
			t.Errorf("%+v", f)
		}
	}
}
