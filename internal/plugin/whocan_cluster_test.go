//go:build integration

package plugin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/fieldperm/fieldperm/internal/access"
	"github.com/fieldperm/fieldperm/schema/endpoint"
	"github.com/fieldperm/fieldperm/test/cluster"
	"github.com/fieldperm/fieldperm/test/e2e"
	"github.com/fieldperm/fieldperm/test/stack"
)

// whoCanObjects are the objects whose fields are asked about, and barriers on two of them.
const whoCanObjects = `
{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {example.com/x: "0"}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: shop}, data: {x: "0"}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop, labels: {example.com/x: "0"}}, spec: {replicas: 0, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: web, image: "0"}]}}}}
---
{apiVersion: fieldperm.dev/v1alpha1, kind: UncoveredPermissionSet, metadata: {name: images}, spec: {uncoveredPermissions: ["granular:image"], resources: [{apiGroups: [apps], resources: [deployments]}]}}
---
{apiVersion: fieldperm.dev/v1alpha1, kind: UncoveredPermissionSet, metadata: {name: labels}, spec: {uncoveredPermissions: ["granular:label(example.com)"], resources: [{apiGroups: [""], resources: [namespaces]}]}}
`

// question is a field with a change of it.
type whoCanQuestion struct {
	resource    runtimeschema.GroupVersionResource
	subresource string
	namespace   string
	name, field string
	verbs       []string
	set         []string
	value       any
}

var deployments = runtimeschema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}

func whoCanQuestions() []whoCanQuestion {
	namespaces, maps := runtimeschema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, runtimeschema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	label := []string{"metadata", "labels", "example.com/x"}
	labels := []string{"granular:*", "granular:metadata", "granular:labels", "granular:label", "granular:label(example.com)", "granular:label(other)"}
	return []whoCanQuestion{
		{deployments, "", "shop", "web", ".spec.replicas", []string{"granular:*", "granular:specification", "granular:scale"}, []string{"spec", "replicas"}, int64(1)},
		{deployments, "", "shop", "web", `.spec.template.spec.containers[name="web"].image`, []string{"granular:*", "granular:container(web)", "granular:image", "granular:image(web)", "granular:image(other)"}, nil, "1"},
		{deployments, "", "shop", "web", `.metadata.labels["example.com/x"]`, labels, label, "1"},
		{deployments, "scale", "shop", "web", ".spec.replicas", []string{"granular:*", "granular:specification", "granular:scale"}, []string{"spec", "replicas"}, int64(1)},
		{namespaces, "", "", "shop", `.metadata.labels["example.com/x"]`, labels, label, "1"},
		{maps, "", "shop", "web", ".data.x", []string{"granular:*", "granular:data"}, []string{"data", "x"}, "1"},
	}
}

// whoCanPlane is a control plane with fieldperm.
type whoCanPlane struct {
	t      *testing.T
	stack  *stack.Stack
	admin  *cluster.User
	client kubernetes.Interface
}

func newWhoCanPlane(t *testing.T) *whoCanPlane {
	t.Helper()
	bin, err := e2e.Build()
	must(t, err)
	s, err := stack.Start(t.Context(), stack.Config{Bin: bin})
	must(t, err)
	t.Cleanup(func() { must(t, s.Stop()) })
	admin, err := s.User("admin", "system:masters")
	must(t, err)
	p := &whoCanPlane{t: t, stack: s, admin: admin}
	p.client, err = kubernetes.NewForConfig(admin.Config)
	must(t, err)
	kubectl := &plane{t: t, cluster: s.Cluster, admin: admin}
	kubectl.kubectl("", "apply", "--server-side", "-f", "../../config/crd")
	kubectl.kubectl("", "wait", "--for=condition=Established", "--timeout=90s", "crd/permissionschemas.fieldperm.dev", "crd/uncoveredpermissionsets.fieldperm.dev", "crd/conditionalpolicies.fieldperm.dev")
	kubectl.kubectl(whoCanObjects, "create", "-f", "-")
	must(t, s.AwaitGrants(t.Context()))
	must(t, s.AwaitKind(t.Context(), runtimeschema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, "ConfigMap"))
	must(t, s.AwaitBarrier(t.Context(), deployments, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "probe", "namespace": "shop"},
		"spec": map[string]any{
			"selector": map[string]any{"matchLabels": map[string]any{"a": "b"}},
			"template": map[string]any{"metadata": map[string]any{"labels": map[string]any{"a": "b"}}, "spec": map[string]any{"containers": []any{map[string]any{"name": "web", "image": "0"}}}},
		},
	}}))
	must(t, s.AwaitBarrier(t.Context(), runtimeschema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "probe", "labels": map[string]any{"example.com/x": "1"}},
	}}))
	return p
}

// ask runs the command as a user.
func (p *whoCanPlane) ask(u *cluster.User, args ...string) (code int, stdout, problems string) {
	p.t.Helper()
	var out, warnings bytes.Buffer
	cmd := NewWhoCanCommand(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &warnings})
	cmd.SetArgs(append(args, "--kubeconfig", u.Kubeconfig, "--cache-dir", p.t.TempDir()))
	err := cmd.ExecuteContext(p.t.Context())
	if err != nil {
		warnings.WriteString(err.Error())
	}
	return ExitCode(err), out.String(), warnings.String()
}

// answer asks about a field, as the administrator.
func (p *whoCanPlane) answer(q *whoCanQuestion) *whoCanAnswer {
	p.t.Helper()
	resource := q.resource.Resource
	args := []string{"update", resource + "/" + q.name, "--field", q.field, "--subresource", q.subresource, "-o", "json"}
	if q.namespace != "" {
		args = append(args, "-n", q.namespace)
	}
	code, stdout, problems := p.ask(p.admin, args...)
	if code != 0 {
		p.t.Fatalf("%v: exit code %d: %s", args, code, problems)
	}
	var out whoCanAnswer
	must(p.t, json.Unmarshal([]byte(stdout), &out))
	return &out
}

// may reports whether the API server lets a subject change the field, by a dry run.
func (p *whoCanPlane) may(q *whoCanQuestion, s access.Subject) bool {
	p.t.Helper()
	config := rest.CopyConfig(p.admin.Config)
	switch s.Kind {
	case rbacv1.ServiceAccountKind:
		config.Impersonate = rest.ImpersonationConfig{UserName: serviceaccount.MakeUsername(s.Namespace, s.Name)}
	case rbacv1.GroupKind:
		config.Impersonate = rest.ImpersonationConfig{UserName: "member-of-" + s.Name, Groups: []string{s.Name}}
	default:
		config.Impersonate = rest.ImpersonationConfig{UserName: s.Name}
	}
	one, err := dynamic.NewForConfig(config)
	must(p.t, err)
	all, err := dynamic.NewForConfig(p.admin.Config)
	must(p.t, err)
	var subresources []string
	if q.subresource != "" {
		subresources = []string{q.subresource}
	}
	object, err := all.Resource(q.resource).Namespace(q.namespace).Get(p.t.Context(), q.name, metav1.GetOptions{}, subresources...)
	must(p.t, err)
	if q.set == nil {
		containers, _, err := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
		must(p.t, err)
		containers[0].(map[string]any)["image"] = q.value
		must(p.t, unstructured.SetNestedSlice(object.Object, containers, "spec", "template", "spec", "containers"))
	} else {
		must(p.t, unstructured.SetNestedField(object.Object, q.value, q.set...))
	}
	_, err = one.Resource(q.resource).Namespace(q.namespace).Update(p.t.Context(), object, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}}, subresources...)
	if err != nil && !apierrors.IsForbidden(err) {
		p.t.Fatalf("%v of %v: %v", q, s, err)
	}
	return err == nil
}

// subjects are those of a round. Caches of decisions do not know them yet.
func whoCanSubjects(round int) []rbacv1.Subject {
	name := func(s string) string { return fmt.Sprintf("%s-%d", s, round) }
	return []rbacv1.Subject{
		{Kind: "User", APIGroup: rbacv1.GroupName, Name: name("ann")},
		{Kind: "User", APIGroup: rbacv1.GroupName, Name: name("bob")},
		{Kind: "Group", APIGroup: rbacv1.GroupName, Name: name("ops")},
		{Kind: "ServiceAccount", Namespace: "shop", Name: name("bot")},
		{Kind: "User", APIGroup: rbacv1.GroupName, Name: serviceaccount.MakeUsername("other", name("bot"))},
		{Kind: "Group", APIGroup: rbacv1.GroupName, Name: "system:serviceaccounts:shop"},
		{Kind: "Group", APIGroup: rbacv1.GroupName, Name: user.AllAuthenticated},
	}
}

// draw creates Roles and bindings of a round.
func (p *whoCanPlane) draw(r *rand.Rand, round int, q []whoCanQuestion) {
	p.t.Helper()
	ctx, api, options := p.t.Context(), p.client.RbacV1(), metav1.CreateOptions{}
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	subjects := whoCanSubjects(round)
	for i := range 40 {
		of := q[i%len(q)]
		resource := of.resource.Resource
		if of.subresource != "" {
			resource += "/" + of.subresource
		}
		rule := rbacv1.PolicyRule{APIGroups: []string{pick(of.resource.Group, of.resource.Group, "*")}, Resources: []string{pick(resource, resource, resource, "*", "*/scale")}}
		for range 1 + r.IntN(3) {
			rule.Verbs = append(rule.Verbs, pick(append([]string{"update", "patch", "granular", "granular", "granular", "get", "get", "get"}, of.verbs...)...))
		}
		if r.IntN(15) == 0 {
			rule.Verbs = []string{"*"}
		}
		if r.IntN(6) == 0 {
			rule.ResourceNames = []string{pick(of.name, "another")}
		}
		meta := metav1.ObjectMeta{Name: fmt.Sprintf("drawn-%d-%d", round, i), Labels: map[string]string{"drawn": "yes"}}
		// Everyone holds something only rarely.
		bound := []rbacv1.Subject{subjects[r.IntN(len(subjects)-2)]}
		if r.IntN(12) == 0 {
			bound = []rbacv1.Subject{subjects[len(subjects)-1-r.IntN(2)]}
			rule.Verbs = []string{pick(append([]string{"granular"}, of.verbs...)...)}
		}
		var err error
		switch r.IntN(3) {
		case 0:
			_, err1 := api.ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{rule}}, options)
			must(p.t, err1)
			_, err = api.ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: meta, Subjects: bound, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name}}, options)
		case 1:
			_, err1 := api.ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{rule}}, options)
			must(p.t, err1)
			_, err = api.RoleBindings(pick("shop", "shop", "default")).Create(ctx, &rbacv1.RoleBinding{ObjectMeta: meta, Subjects: bound, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name}}, options)
		default:
			_, err1 := api.Roles("shop").Create(ctx, &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{rule}}, options)
			must(p.t, err1)
			_, err = api.RoleBindings("shop").Create(ctx, &rbacv1.RoleBinding{ObjectMeta: meta, Subjects: bound, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: pick("Role", "Role", "Role", "ClusterRole"), Name: meta.Name}}, options)
		}
		must(p.t, err)
	}
	must(p.t, p.stack.AwaitGrants(ctx))
}

func (p *whoCanPlane) clear() {
	p.t.Helper()
	drawn := metav1.ListOptions{LabelSelector: "drawn"}
	ctx, api := p.t.Context(), p.client.RbacV1()
	for _, namespace := range []string{"shop", "default"} {
		must(p.t, api.Roles(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, drawn))
		must(p.t, api.RoleBindings(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, drawn))
	}
	must(p.t, api.ClusterRoles().DeleteCollection(ctx, metav1.DeleteOptions{}, drawn))
	must(p.t, api.ClusterRoleBindings().DeleteCollection(ctx, metav1.DeleteOptions{}, drawn))
}

// TestCluster_WhoCanIsWhatTheAPIServerAllows: for drawn grants, a subject has a row without a condition exactly if the API server lets it change
// the field of the object.
func TestCluster_WhoCanIsWhatTheAPIServerAllows(t *testing.T) {
	p := newWhoCanPlane(t)
	questions := whoCanQuestions()
	counts := map[string]int{}
	rounds := draws(8)
	for round := range rounds {
		p.draw(rand.New(rand.NewPCG(uint64(round), 3)), round, questions)
		for i := range questions {
			q := &questions[i]
			rows := map[access.Subject]subjectEntry{}
			for _, s := range p.answer(q).Subjects {
				rows[s.Subject] = s
			}
			for _, s := range whoCanSubjects(round) {
				// The groups that many users are in keep the decisions of earlier rounds in caches.
				if strings.HasPrefix(s.Name, "system:") && s.Kind == rbacv1.GroupKind {
					continue
				}
				subject := access.Subject{Kind: s.Kind, Namespace: s.Namespace, Name: s.Name}
				if home, name, err := serviceaccount.SplitUsername(s.Name); err == nil {
					subject = access.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: home, Name: name}
				}
				row, ok := rows[subject]
				listed, allowed := ok && row.How != access.Conditional, p.may(q, subject)
				// A subject that no binding about the resource names has what its groups have, which have rows.
				for _, group := range subject.User().GetGroups() {
					if of := rows[access.Subject{Kind: rbacv1.GroupKind, Name: group}]; !ok && of.How != "" && of.How != access.Conditional {
						row, listed = of, true
					}
				}
				counts[fmt.Sprintf("allowed %t", allowed)]++
				if allowed {
					counts[string(row.How)]++
				}
				if listed != allowed {
					t.Errorf("round %d: %s of %s/%s %q by %v: row %+v, but the API server allows it: %t", round, q.field, q.resource.Resource, q.subresource, q.name, subject, row, allowed)
				}
			}
		}
		p.clear()
	}
	t.Log(counts)
	if total := counts["allowed true"] + counts["allowed false"]; total < 18*rounds || counts["allowed true"] < 5*rounds || counts["granular"] < rounds || counts["generic"] < rounds {
		t.Errorf("%v decisions are too few to show anything", counts)
	}

	p.hasNoPermission(t)
	p.scopes(t)
}

// hasNoPermission asks as a user who may list ClusterRoles and their bindings only.
func (p *whoCanPlane) hasNoPermission(t *testing.T) {
	t.Helper()
	some, err := p.stack.User("some")
	must(t, err)
	kubectl := &plane{t: t, cluster: p.stack.Cluster, admin: p.admin}
	kubectl.kubectl("", "create", "clusterrole", "reads-some", "--verb=list,get", "--resource=clusterroles.rbac.authorization.k8s.io,clusterrolebindings.rbac.authorization.k8s.io")
	kubectl.kubectl("", "create", "clusterrolebinding", "reads-some", "--clusterrole=reads-some", "--user=some")
	must(t, p.stack.AwaitGrants(t.Context()))
	code, stdout, problems := p.ask(some, "update", "deployments/web", "--field", "spec.replicas", "-n", "shop")
	if code != 2 || !strings.Contains(stdout, "system:masters") || !strings.Contains(problems, "allow list on rolebindings.rbac.authorization.k8s.io") ||
		!strings.Contains(problems, "allow list on roles.rbac.authorization.k8s.io") || strings.Contains(problems, "ConditionalPolicies") {
		t.Errorf("exit code %d, %s, %s", code, stdout, problems)
	}
	if code, _, problems := p.ask(p.admin, "update", "nodes", "-A", "--field", "spec.taints"); code != 2 || !strings.Contains(problems, "nodes are in no namespace: drop it") {
		t.Errorf("exit code %d, %s", code, problems)
	}
}

// scopes compares the list of resources that are in no namespace with the API server.
func (p *whoCanPlane) scopes(t *testing.T) {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(p.admin.Config)
	must(t, err)
	_, lists, err := client.ServerGroupsAndResources()
	must(t, err)
	o := &whoCan{}
	seen := 0
	for _, list := range lists {
		gv, err := runtimeschema.ParseGroupVersion(list.GroupVersion)
		must(t, err)
		for i := range list.APIResources {
			r := &list.APIResources[i]
			if strings.Contains(r.Name, "/") || !endpoint.BuiltIn(gv.Group, r.Name) && gv.Group != "fieldperm.dev" {
				continue
			}
			seen++
			namespaced, err := o.scopeOffline(&access.Write{Group: gv.Group, Resource: r.Name})
			must(t, err)
			if namespaced != r.Namespaced {
				t.Errorf("%s of %s: in a namespace: %t, by the API server: %t", r.Name, gv, namespaced, r.Namespaced)
			}
		}
	}
	if seen < 50 {
		t.Errorf("the API server serves %d resources", seen)
	}
}
