//go:build integration

package plugin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/internal/tighten"
	"github.com/fieldperm/fieldperm/test/cluster"
	"github.com/fieldperm/fieldperm/test/e2e"
	"github.com/fieldperm/fieldperm/test/stack"
)

// tightened are the objects of the test. The operator has a ClusterRole of its own, a shared Role, and the aggregated ClusterRole edit.
const tightened = `
{apiVersion: v1, kind: Namespace, metadata: {name: ops}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: shop}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}, spec: {replicas: 1, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: web}]}}}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: operator, labels: {team: ops}}, rules: [{apiGroups: [apps], resources: [deployments, deployments/finalizers], verbs: [get, list, update, patch]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: operator}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: operator}, subjects: [{kind: ServiceAccount, namespace: ops, name: operator}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: settings, namespace: shop}, rules: [{apiGroups: [''], resources: [configmaps], resourceNames: [settings], verbs: ['*']}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: settings, namespace: shop}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: settings},
  subjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: jane}, {kind: ServiceAccount, namespace: ops, name: operator}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: edit, namespace: shop}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}, subjects: [{kind: ServiceAccount, namespace: ops, name: operator}]}
`

const (
	operator   = "system:serviceaccount:ops:operator"
	controller = "system:serviceaccount:kube-system:deployment-controller"
)

// tightenPlane is a control plane without fieldperm-webhook: the test writes the status of observations itself.
type tightenPlane struct {
	*plane
	api     kubernetes.Interface
	observe dynamic.ResourceInterface
	log     string
}

func newTightenPlane(t *testing.T) *tightenPlane {
	t.Helper()
	log := filepath.Join(t.TempDir(), "audit.log")
	c, err := cluster.Start(t.Context(), cluster.Config{Dir: t.TempDir(), AuditLog: log})
	must(t, err)
	t.Cleanup(func() { must(t, c.Stop()) })
	return tightenPlaneOf(t, c, log)
}

func tightenPlaneOf(t *testing.T, c *cluster.Cluster, log string) *tightenPlane {
	t.Helper()
	p := &tightenPlane{plane: &plane{t: t, cluster: c}, log: log}
	var err error
	p.admin, err = c.User("admin", "system:masters")
	must(t, err)
	p.api, err = kubernetes.NewForConfig(p.admin.Config)
	must(t, err)
	client, err := dynamic.NewForConfig(p.admin.Config)
	must(t, err)
	p.observe = client.Resource(v1alpha1.GroupVersion.WithResource(v1alpha1.PermissionObservationResource))
	p.kubectl("", "create", "-f", "../../config/crd")
	p.kubectl("", "wait", "--for=condition=Established", "--timeout=90s", "crd/permissionobservations.fieldperm.dev", "crd/permissionschemas.fieldperm.dev", "crd/uncoveredpermissionsets.fieldperm.dev", "crd/conditionalpolicies.fieldperm.dev")
	p.kubectl(tightened, "create", "-f", "-")
	return p
}

func (p *tightenPlane) run(args ...string) (string, error) {
	p.t.Helper()
	var out, errOut bytes.Buffer
	cmd := NewTightenCommand(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut})
	cmd.SetArgs(append([]string{"--kubeconfig", p.admin.Kubeconfig}, args...))
	err := cmd.ExecuteContext(p.t.Context())
	p.t.Logf("tighten %s: %v\n%s%s", strings.Join(args, " "), err, out.String(), errOut.String())
	return out.String() + errOut.String(), err
}

// objects returns all RBAC objects as JSON, without what only the API server writes.
func (p *tightenPlane) objects() string {
	p.t.Helper()
	known := &knownCluster{client: p.api}
	must(p.t, known.readObjects(p.t.Context()))
	strip := func(m *metav1.ObjectMeta) { m.ResourceVersion, m.Generation = "", 0 }
	for i := range known.objects.Roles {
		strip(&known.objects.Roles[i].ObjectMeta)
	}
	for i := range known.objects.ClusterRoles {
		strip(&known.objects.ClusterRoles[i].ObjectMeta)
	}
	for i := range known.objects.RoleBindings {
		strip(&known.objects.RoleBindings[i].ObjectMeta)
	}
	for i := range known.objects.ClusterRoleBindings {
		strip(&known.objects.ClusterRoleBindings[i].ObjectMeta)
	}
	text, err := json.MarshalIndent(known.objects, "", " ")
	must(p.t, err)
	return string(text)
}

// observation writes the status of an observation, with rows of what the subject wrote.
func (p *tightenPlane) observation(name string, rows ...any) {
	p.t.Helper()
	ctx := p.t.Context()
	// A running fieldperm writes the status too.
	must(p.t, retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		o, err := p.observe.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		now := metav1.Now().UTC().Format(time.RFC3339)
		o.Object["status"] = map[string]any{
			"observedGeneration": o.GetGeneration(), "writes": int64(len(rows)), "since": now, "updated": now, "resources": rows,
			"conditions": []any{map[string]any{"type": "Observing", "status": "True", "reason": "Observing", "message": "", "lastTransitionTime": now}},
		}
		_, err = p.observe.UpdateStatus(ctx, o, metav1.UpdateOptions{})
		return err
	}))
}

func row(user, group, resource, namespace, name string, verbs ...string) any {
	var used []any
	for _, verb := range verbs {
		used = append(used, map[string]any{"verb": verb, "count": int64(1), "firstTime": "2026-11-23T10:00:00Z", "lastTime": "2026-11-23T10:00:00Z",
			"example": map[string]any{"namespace": namespace, "name": name}, "namespaces": []any{namespace}})
	}
	return map[string]any{"user": user, "group": group, "resource": resource, "writes": int64(len(verbs)), "verbs": used}
}

// may asks kube-apiserver.
func (p *tightenPlane) may(user, verb, resource, namespace string) bool {
	p.t.Helper()
	group := ""
	if resource != "configmaps" {
		group = "apps"
	}
	answer, err := p.api.AuthorizationV1().SubjectAccessReviews().Create(p.t.Context(), &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user, ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: verb, Group: group, Version: "v1", Resource: resource, Namespace: namespace},
	}}, metav1.CreateOptions{})
	must(p.t, err)
	return answer.Status.Allowed
}

// shell runs a command that tighten has printed, as the administrator. It may have parts, which are divided by &&.
func (p *tightenPlane) shell(command string) (string, error) {
	p.t.Helper()
	var all strings.Builder
	for part := range strings.SplitSeq(command, " && ") {
		out, stderr, err := p.cluster.Kubectl(p.admin).Run(p.t.Context(), "", strings.Fields(part)[1:]...)
		p.t.Logf("%s: %v\n%s%s", part, err, out, stderr)
		all.WriteString(out + stderr)
		if err != nil {
			return all.String(), err
		}
	}
	return all.String(), nil
}

// commands returns the commands at the end of the output of tighten: both steps and the way back.
func (p *tightenPlane) commands(out string) (add, remove, undo string) {
	p.t.Helper()
	var all []string
	for line := range strings.Lines(out) {
		if command, ok := strings.CutPrefix(line, "  kubectl "); ok {
			all = append(all, "kubectl "+strings.TrimSpace(command))
		}
	}
	if len(all) != 3 {
		p.t.Fatalf("the commands are %q", all)
	}
	return all[0], all[1], all[2]
}

// does runs a command that has to succeed.
func (p *tightenPlane) does(command string) {
	p.t.Helper()
	if out, err := p.shell(command); err != nil {
		p.t.Fatalf("%s: %v\n%s", command, err, out)
	}
}

// TestCluster_TightenWritesFilesForKubectl runs the printed commands on a real kube-apiserver. After the way back every RBAC object is as before, byte
// for byte, except for what only the API server writes. The second subject has a default role of Kubernetes.
func TestCluster_TightenWritesFilesForKubectl(t *testing.T) {
	p := newTightenPlane(t)
	p.await("the aggregated ClusterRole edit is written by the test", func(ctx context.Context) (bool, error) { return true, p.aggregateEdit(ctx) })
	for _, subject := range []struct {
		name, namespace string
		rows            []any
	}{
		{operator, "shop", []any{row(operator, "apps", "deployments", "shop", "web", "granular:scale"), row(operator, "", "configmaps", "shop", "settings", "granular:dataKey(a)")}},
		{controller, "shop", []any{row(controller, "apps", "replicasets", "shop", "web", "granular:scale")}},
	} {
		t.Run(subject.name, func(t *testing.T) {
			p := *p
			p.plane = &plane{t: t, cluster: p.cluster, admin: p.admin}
			before, dir := p.objects(), filepath.Join(t.TempDir(), "files")
			s, err := tighten.ParseSubject(subject.name)
			must(t, err)
			p.kubectl(observationOf("first", s), "create", "-f", "-")
			if _, err := p.run(subject.name, "--out", dir); err == nil || !strings.Contains(err.Error(), "has no status") {
				t.Fatalf("an observation without a status: %v", err)
			}
			p.observation("first", subject.rows...)
			out, err := p.run(subject.name, "--out", dir, "--allow-read")
			if err != nil || p.objects() != before {
				t.Fatalf("the command changes objects: %v", err)
			}
			add, _, _ := p.commands(out)
			p.does(add)
			resource := firstResource(subject.rows)
			p.await("the subject has both", func(context.Context) (bool, error) {
				return p.may(subject.name, "update", "deployments", subject.namespace) && p.may(subject.name, "granular", resource, subject.namespace), nil
			})
			again, err := p.run(subject.name, "--out", dir, "--allow-read")
			must(t, err)
			if out, err := p.shell(add); err != nil || strings.Count(out, "\n") != strings.Count(out, " unchanged\n") {
				t.Errorf("after the first step it has more to add: %v: %s", err, out)
			}
			_, remove, undo := p.commands(again)
			p.does(remove)
			p.await("kube-apiserver knows that update is taken away", func(context.Context) (bool, error) {
				return !p.may(subject.name, "update", resource, subject.namespace) && !p.may(subject.name, "patch", resource, subject.namespace), nil
			})
			for _, verb := range []string{"granular", "granular:scale", "get"} {
				if !p.may(subject.name, verb, resource, subject.namespace) {
					t.Errorf("the subject has lost %s", verb)
				}
			}
			if out, err := p.run(subject.name, "--out", dir); err != nil || !strings.Contains(out, "No files were written") {
				t.Errorf("again: %v", err)
			}
			p.does(undo)
			if after := p.objects(); after != before {
				t.Fatalf("before:\n%s\nafter:\n%s", before, after)
			}
			p.kubectl("", "delete", "permissionobservation", "first")
			p.await("kube-apiserver knows that update is back", func(context.Context) (bool, error) {
				return p.may(subject.name, "update", resource, subject.namespace) && !p.may(subject.name, "granular", resource, subject.namespace), nil
			})
		})
	}
}

// TestCluster_TightenOverwritesNoRoleThatWasChangedSince: the second step is a conflict, and gives nothing back that was revoked.
func TestCluster_TightenOverwritesNoRoleThatWasChangedSince(t *testing.T) {
	p := newTightenPlane(t)
	s, err := tighten.ParseSubject(operator)
	must(t, err)
	p.kubectl(observationOf("first", s), "create", "-f", "-")
	p.observation("first", row(operator, "apps", "deployments", "shop", "web", "granular:scale"))
	p.kubectl("", "delete", "rolebinding", "edit", "settings", "-n", "shop")
	dir := filepath.Join(t.TempDir(), "files")
	out, err := p.run(operator, "--out", dir)
	must(t, err)
	_, remove, _ := p.commands(out)
	p.kubectl("", "patch", "clusterrole", "operator", "--type=json", "-p", `[{"op": "replace", "path": "/rules/0/verbs", "value": ["get", "update"]}]`)
	changed := p.objects()
	if out, err := p.shell(remove); err == nil || !strings.Contains(out, "the object has been modified") || p.objects() != changed {
		t.Fatalf("%v: %s", err, out)
	}
	if _, err := p.run(operator, "--out", dir); err == nil || !strings.Contains(err.Error(), "restores ClusterRole operator") {
		t.Errorf("undo.yaml that gives back what was revoked is overwritten: %v", err)
	}
	out, err = p.run(operator, "--out", filepath.Join(t.TempDir(), "other"))
	must(t, err)
	_, remove, _ = p.commands(out)
	p.does(remove)
	p.await("kube-apiserver knows that update is taken away", func(context.Context) (bool, error) { return !p.may(operator, "update", "deployments", "shop"), nil })
}

// TestCluster_TightenWithFieldperm: the subject still makes the writes of the evidence and no others, until the way back.
func TestCluster_TightenWithFieldperm(t *testing.T) {
	bin, err := e2e.Build()
	must(t, err)
	s, err := stack.Start(t.Context(), stack.Config{Bin: bin, Audit: true})
	must(t, err)
	t.Cleanup(func() { must(t, s.Stop()) })
	p := tightenPlaneOf(t, s.Cluster, s.AuditLog())
	user, err := s.User(operator, "system:serviceaccounts", "system:serviceaccounts:ops")
	must(t, err)
	patch := func(patch string) error {
		_, stderr, err := p.cluster.Kubectl(user).Run(t.Context(), "", "patch", "deployment", "web", "-n", "shop", "-p", patch)
		t.Logf("%s: %v %s", patch, err, stderr)
		return err
	}
	const image = `{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"other%d"}]}}}}`
	must(t, s.AwaitGrants(t.Context()))
	must(t, patch(`{"spec":{"replicas":2}}`))
	must(t, patch(fmt.Sprintf(image, 1)))

	subject, err := tighten.ParseSubject(operator)
	must(t, err)
	p.kubectl(observationOf("first", subject), "create", "-f", "-")
	p.observation("first", row(operator, "apps", "deployments", "shop", "web", "granular:scale"))
	out, err := p.run(operator, "--out", filepath.Join(t.TempDir(), "files"))
	must(t, err)
	add, remove, undo := p.commands(out)
	p.does(add)
	must(t, s.AwaitGrants(t.Context()))
	p.does(remove)
	must(t, s.AwaitGrants(t.Context()))
	must(t, patch(`{"spec":{"replicas":3}}`))
	if err := patch(fmt.Sprintf(image, 2)); err == nil {
		t.Error("the subject still changes the image")
	}
	p.does(undo)
	must(t, s.AwaitGrants(t.Context()))
	must(t, patch(fmt.Sprintf(image, 3)))
}

// TestCluster_TightenReadsAuditLogs: the log of kube-apiserver without fieldperm has no verbs, and is known as a log of this cluster.
func TestCluster_TightenReadsAuditLogs(t *testing.T) {
	p := newTightenPlane(t)
	user, err := p.cluster.User(operator, "system:serviceaccounts", "system:serviceaccounts:ops")
	must(t, err)
	get, stderr, err := p.cluster.Kubectl(user).Run(t.Context(), "", "get", "deployment", "web", "-n", "shop", "-o", "json")
	if err != nil {
		t.Fatal(stderr)
	}
	if _, stderr, err := p.cluster.Kubectl(user).Run(t.Context(), strings.Replace(get, `"replicas": 1`, `"replicas": 2`, 1), "replace", "--field-manager=operator", "-f", "-"); err != nil {
		t.Fatal(stderr)
	}
	out, err := p.run(operator, "--audit-log", p.log, "--managed-fields", "operator")
	if !errors.Is(err, ErrIncomplete) || !strings.Contains(out, "deployments.apps: 1 writes were not observed") || strings.Contains(out, "another cluster") {
		t.Errorf("%v", err)
	}
	if !strings.Contains(out, "Hints by managedFields") || !strings.Contains(out, "granular:scale") {
		t.Error("the hint is missing")
	}
	if out, err := p.run(operator, "--audit-log", p.log, "--managed-fields", "operator", "--include-hints"); !errors.Is(err, ErrIncomplete) || !strings.Contains(out, "- granular:scale") {
		t.Errorf("with hints: %v", err)
	}
	object, err := p.api.AppsV1().Deployments("shop").Get(t.Context(), "web", metav1.GetOptions{})
	must(t, err)
	log, err := os.ReadFile(p.log)
	must(t, err)
	other := filepath.Join(t.TempDir(), "other.log")
	must(t, os.WriteFile(other, bytes.ReplaceAll(log, []byte(object.UID), []byte("00000000-0000-4000-8000-000000000000")), 0o600))
	if out, err := p.run(operator, "--audit-log", other); !errors.Is(err, ErrIncomplete) || !strings.Contains(out, "seems to be of another cluster") {
		t.Errorf("the log of another cluster: %v", err)
	}
}

// unreachable is an aggregated API whose server does not exist, and a role that updates its resources.
const unreachable = `
{apiVersion: v1, kind: Service, metadata: {name: gone, namespace: ops}, spec: {ports: [{port: 443}]}}
---
{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.gone.example.com}, spec: {group: gone.example.com, version: v1, groupPriorityMinimum: 100, versionPriority: 10, insecureSkipTLSVerify: true, service: {namespace: ops, name: gone}}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: remote}, rules: [{apiGroups: [gone.example.com], resources: [things], verbs: [update]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: remote}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: remote}, subjects: [{kind: ServiceAccount, namespace: ops, name: operator}]}
`

// TestCluster_TightenKeepsUpdateWhereDiscoveryFails: the command cannot know if fieldperm decides on resources of a group that is not discovered.
func TestCluster_TightenKeepsUpdateWhereDiscoveryFails(t *testing.T) {
	p := newTightenPlane(t)
	p.kubectl(unreachable, "create", "-f", "-")
	s, err := tighten.ParseSubject(operator)
	must(t, err)
	p.kubectl(observationOf("first", s), "create", "-f", "-")
	p.observation("first", row(operator, "apps", "deployments", "shop", "web", "granular:scale"))
	out, err := p.run(operator)
	must(t, err)
	if !strings.Contains(out, `group "gone.example.com" cannot be discovered, so update and patch on it stay`) ||
		!strings.Contains(out, "ClusterRole remote keeps update on things.gone.example.com: fieldperm does not decide on its writes") {
		t.Error("the command does not say that update stays")
	}
	if !strings.Contains(out, "+++ (proposed) ClusterRole operator") || strings.Contains(out, "+++ (proposed) ClusterRole remote") {
		t.Error("the proposal changes the role of the unknown group, or not the other")
	}
}

// aggregateEdit writes the rules of edit, as the controller of aggregated ClusterRoles would.
func (p *tightenPlane) aggregateEdit(ctx context.Context) error {
	edit, err := p.api.RbacV1().ClusterRoles().Get(ctx, "edit", metav1.GetOptions{})
	if err != nil {
		return err
	}
	from, err := p.api.RbacV1().ClusterRoles().Get(ctx, "system:aggregate-to-edit", metav1.GetOptions{})
	if err != nil {
		return err
	}
	edit.Rules = append([]rbacv1.PolicyRule{}, from.Rules...)
	_, err = p.api.RbacV1().ClusterRoles().Update(ctx, edit, metav1.UpdateOptions{})
	return err
}

func firstResource(rows []any) string {
	name, _, _ := unstructured.NestedString(rows[0].(map[string]any), "resource")
	return name
}

func observationOf(name string, s tighten.Subject) string {
	text, _ := json.Marshal(map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": v1alpha1.PermissionObservationKind, "metadata": map[string]any{"name": name},
		"spec": map[string]any{"subjects": []any{map[string]any{"kind": s.Kind, "namespace": s.Namespace, "name": s.Name}}, "resources": []any{map[string]any{"apiGroups": []any{"*"}, "resources": []any{"*"}}}},
	})
	return string(text)
}
