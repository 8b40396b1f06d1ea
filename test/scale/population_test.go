//go:build integration

package scale

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/fieldperm/fieldperm/test/e2e"
	"github.com/fieldperm/fieldperm/test/stack"
)

// grants are the objects and permissions that every cluster here has.
const grants = `
{apiVersion: v1, kind: Namespace, metadata: {name: scale}}
---
{apiVersion: v1, kind: Node, metadata: {name: node-0}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: kube-node-lease}}
---
{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: node-0, namespace: kube-node-lease}, spec: {holderIdentity: node-0}}
---
{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: leader, namespace: scale}, spec: {holderIdentity: a}}
---
apiVersion: v1
kind: Pod
metadata: {name: bound, namespace: scale}
spec: {nodeName: node-0, containers: [{name: c, image: i}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: scale}
spec:
  selector: {matchLabels: {a: b}}
  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: scale-operator}
rules:
- {apiGroups: ["*"], resources: [machines0], verbs: [get, granular, "granular:example.com/size"]}
- {apiGroups: [apps], resources: [deployments/status], verbs: [get, granular, "granular:condition(Available)", "granular:conditions", "granular:status"]}
- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get, update, patch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: scale-operator}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: scale-operator}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: "system:serviceaccount:operators:operator-0"}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: scaler, namespace: scale}
rules: [{apiGroups: [apps], resources: [deployments], verbs: [get, granular, "granular:scale"]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: scaler, namespace: scale}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: scaler}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: user}]
`

// atOnce is the number of objects that are created at the same time.
const atOnce = 24

// fieldsEach is the number of fields of a definition.
const fieldsEach = 200

type object = map[string]any

// account is the name of an operator.
func account(i int) string { return fmt.Sprintf("system:serviceaccount:operators:operator-%d", i) }

// group and resource are those of a definition.
func group(i int) string    { return fmt.Sprintf("group%d.example.com", i/5) }
func resource(i int) string { return fmt.Sprintf("machines%d", i) }

// machines is the path of the objects of a definition.
func machines(i int) string {
	return fmt.Sprintf("/apis/%s/v1/namespaces/scale/%s", group(i), resource(i))
}

func machine(name string) string {
	return fmt.Sprintf(`{"apiVersion":"%s/v1","kind":"Machine0","metadata":{"name":%q},"spec":{"replicas":1}}`, group(0), name)
}

func pod(name, node string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q},"spec":{"nodeName":%q,"containers":[{"name":"c","image":"i"}]}}`, name, node)
}

// definition returns a definition with as many fields, kinds of fields and verbs as those of BenchmarkCompile500CRDs.
func definition(i int) string {
	text := func(v any) string {
		out, _ := json.Marshal(v) //nolint:errchkjson // Maps of text.
		return string(out)
	}
	verbs := text(object{"v1": []object{
		{"path": ".spec.replicas", "verb": "example.com/size"},
		{"path": ".spec.paused", "verb": "example.com/pause"},
		{"path": ".spec.part3.inner", "verb": "example.com/tuning"},
	}})
	spec := object{"replicas": object{"type": "integer", "default": 1}, "paused": object{"type": "boolean"}}
	count := 6 // spec, status, conditions, type, status; replicas and paused below.
	condition := object{"type": "object", "properties": object{"type": object{"type": "string"}, "status": object{"type": "string"}}}
	for j := 0; count+15 <= fieldsEach; j++ {
		fields := object{"inner": object{"type": "object", "additionalProperties": object{"x-kubernetes-int-or-string": true}}}
		for k := range 13 {
			fields[fmt.Sprintf("machine%dField%d", i, k)] = []object{
				{"type": "string", "maxLength": 63, "description": "What the machine is called, where it runs, and other text of the length that descriptions have."},
				{"type": "integer", "minimum": 0, "description": "How many of them the machine may have before it is taken for a faulty one."},
				{"type": "boolean", "default": true, "description": "Whether it is in use."},
				{"type": "array", "items": object{"type": "string"}},
			}[k%4]
		}
		spec[fmt.Sprintf("part%d", j)] = object{"type": "object", "properties": fields}
		count += 15
	}
	root := object{"type": "object", "properties": object{
		"spec":   object{"type": "object", "properties": spec},
		"status": object{"type": "object", "properties": object{"conditions": object{"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": []string{"type"}, "items": withRequired(condition)}}},
	}}
	return text(object{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": object{"name": resource(i) + "." + group(i), "annotations": object{"fieldperm.dev/permission-verbs": verbs}},
		"spec": object{
			"group": group(i), "scope": "Namespaced", "names": object{"kind": fmt.Sprintf("Machine%d", i), "plural": resource(i)},
			"versions": []object{{"name": "v1", "served": true, "storage": true, "subresources": object{"status": object{}}, "schema": object{"openAPIV3Schema": root}}},
		},
	})
}

func withRequired(s object) object {
	s["required"] = []string{"type"}
	return s
}

// populate creates the definitions, the Roles and bindings, and those of the operators.
func populate(t *testing.T, s *stack.Stack) {
	t.Helper()
	config := rest.CopyConfig(s.Admin())
	config.QPS = -1
	admin, err := kubernetes.NewForConfig(config)
	must(t, err)
	client := admin.RESTClient()
	begin := time.Now()
	many(t, *definitions, func(ctx context.Context, i int) error {
		return do(ctx, client, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition(i))
	})
	t.Logf("%d definitions created after %s", *definitions, time.Since(begin).Round(time.Second))
	const api = "/apis/rbac.authorization.k8s.io/v1/namespaces/%s/%s"
	namespaces := max(1, *bindings/100)
	many(t, namespaces, func(ctx context.Context, i int) error {
		return do(ctx, client, "POST", "/api/v1/namespaces", fmt.Sprintf(`{"metadata":{"name":"team-%d"}}`, i))
	})
	many(t, *bindings, func(ctx context.Context, i int) error {
		namespace, name := fmt.Sprintf("team-%d", i%namespaces), fmt.Sprintf("role-%d", i)
		role := fmt.Sprintf(`{"metadata":{"name":%q,"labels":{"app.kubernetes.io/managed-by":"Helm","team":"%d"},"annotations":{"meta.helm.sh/release-name":"r%d"}},"rules":[
			{"apiGroups":["apps"],"resources":["deployments","statefulsets"],"verbs":["get","list","watch","granular","granular:scale"]},
			{"apiGroups":[""],"resources":["pods","pods/log","services","configmaps"],"verbs":["get","list","watch"]}]}`, name, i, i)
		binding := fmt.Sprintf(`{"metadata":{"name":%q,"labels":{"team":"%d"}},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":%q},"subjects":[
			{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"person-%d@example.com"},{"kind":"ServiceAccount","namespace":%q,"name":"default"}]}`, name, i, name, i, namespace)
		return errors.Join(do(ctx, client, "POST", fmt.Sprintf(api, namespace, "roles"), role), do(ctx, client, "POST", fmt.Sprintf(api, namespace, "rolebindings"), binding))
	})
	many(t, *controllers, func(ctx context.Context, i int) error {
		role := fmt.Sprintf(`{"metadata":{"name":"operator-%d"},"rules":[{"apiGroups":[%q],"resources":[%q],"verbs":["get","granular","granular:example.com/size"]}]}`, i, group(i%*definitions), resource(i%*definitions))
		binding := fmt.Sprintf(`{"metadata":{"name":"operator-%d"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"operator-%d"},"subjects":[{"kind":"ServiceAccount","namespace":"operators","name":"operator-%d"}]}`, i, i, i)
		return errors.Join(do(ctx, client, "POST", fmt.Sprintf(api, "scale", "roles"), role), do(ctx, client, "POST", fmt.Sprintf(api, "scale", "rolebindings"), binding))
	})
	t.Logf("%d Roles and as many bindings, and those of %d operators, created after %s", *bindings, *controllers, time.Since(begin).Round(time.Second))
}

func many(t *testing.T, n int, f func(context.Context, int) error) {
	t.Helper()
	all, ctx := errgroup.WithContext(t.Context())
	all.SetLimit(atOnce)
	for i := range n {
		all.Go(func() error { return f(ctx, i) })
	}
	must(t, all.Wait())
}

// start runs a control plane with fieldperm in it.
func start(t *testing.T, config stack.Config) *stack.Stack {
	t.Helper()
	var err error
	config.Bin, err = e2e.Build()
	must(t, err)
	s, err := stack.Start(t.Context(), config)
	must(t, err)
	t.Cleanup(func() { must(t, s.Stop()) })
	return s
}

func apply(t *testing.T, s *stack.Stack, manifest string) {
	t.Helper()
	file := filepath.Join(s.Dir(), "scale.yaml")
	must(t, os.WriteFile(file, []byte(manifest), 0o600))
	must(t, s.Apply(t.Context(), file))
}

func create(t *testing.T, client rest.Interface, path, body string) {
	t.Helper()
	must(t, do(t.Context(), client, "POST", path, body))
}

// do sends a write. An object that exists already is no error.
func do(ctx context.Context, client rest.Interface, verb, path, body string) error {
	request := client.Verb(verb).AbsPath(path).SetHeader("Content-Type", "application/json").Body(bytes.NewReader([]byte(body)))
	if verb == "PATCH" {
		request = client.Patch(types.MergePatchType).AbsPath(path).Body([]byte(body))
	}
	if err := request.Do(ctx).Error(); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("%s %s: %w", verb, path, err)
	}
	return nil
}

func await(t *testing.T, f func(context.Context) error) {
	t.Helper()
	var last error
	if err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		last = f(ctx)
		return last == nil, nil
	}); err != nil {
		t.Fatal(errors.Join(err, last))
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
