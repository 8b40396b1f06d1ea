//go:build integration

package asks

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/test/cluster"
	"github.com/fieldperm/fieldperm/test/e2e"
	"github.com/fieldperm/fieldperm/test/stack"
)

// gadgets is the definition of a custom resource with barriers.
const gadgets = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: gadgets.example.com
  annotations:
    fieldperm.dev/permission-verbs: |
      {"v1": [{"path": ".spec", "verb": "specification"}, {"path": ".spec.size", "verb": "example.com/size", "excludedWhen": "self > 5"},
              {"path": ".spec.danger", "verb": "example.com/danger", "excluded": true}, {"path": ".spec.tags", "verb": "example.com/tags", "parameterSource": "tag"},
              {"path": ".spec.tags[*]", "verb": "example.com/tag", "parameterizedBy": "tag"}]}
spec:
  group: example.com
  names: {kind: Gadget, plural: gadgets}
  scope: Namespaced
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {
      spec: {type: object, properties: {size: {type: integer}, danger: {type: boolean}, color: {type: string}, tags: {type: object, additionalProperties: {type: string}},
        parts: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, required: [name], properties: {name: {type: string}, count: {type: integer}}}}}}}}}}
`

// readers lets all users read, as users who ask about their own writes can.
const readers = `
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: reads}, rules: [{apiGroups: ['*'], resources: ['*'], verbs: [get, list, watch]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: reads}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reads},
  subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: 'system:authenticated'}]}
`

// world is the control plane with the users.
type world struct {
	*testing.T
	stack   *stack.Stack
	admin   *cluster.User
	client  dynamic.Interface
	rbac    kubernetes.Interface
	users   []User
	writers map[string]dynamic.Interface
	objects []Object
}

func newWorld(t *testing.T) *world {
	t.Helper()
	bin, err := e2e.Build()
	must(t, err)
	// Grants change between rounds, and a decision of the round before must not count.
	s, err := stack.Start(t.Context(), stack.Config{Bin: bin, Topology: stack.REST, Arguments: []string{"--decision-cache-ttl=1ms"}, AuthorizedTTL: time.Millisecond, UnauthorizedTTL: time.Millisecond})
	must(t, err)
	t.Cleanup(func() { must(t, s.Stop()) })
	w := &world{T: t, stack: s, users: Users(), writers: map[string]dynamic.Interface{}, objects: Objects()}
	w.admin, err = s.User("admin", "system:masters")
	must(t, err)
	w.client, err = dynamic.NewForConfig(w.admin.Config)
	must(t, err)
	w.rbac, err = kubernetes.NewForConfig(w.admin.Config)
	must(t, err)
	w.kubectl("", "create", "-f", "../../config/crd")
	w.kubectl(gadgets, "create", "-f", "-")
	w.kubectl(readers, "create", "-f", "-")
	w.kubectl("", "create", "namespace", Namespace)
	w.kubectl("", "wait", "--for=condition=Established", "--timeout=60s", "crd", "--all")
	for _, u := range w.users {
		user, err := s.User(u.Name, u.Groups...)
		must(t, err)
		w.writers[u.Name], err = dynamic.NewForConfig(user.Config)
		must(t, err)
	}
	must(t, s.AwaitGrants(t.Context()))
	must(t, s.AwaitKind(t.Context(), resourceOf(&w.objects[2]), "Gadget"))
	for i := range w.objects {
		w.kubectl(w.objects[i].Manifest, "create", "--save-config", "-f", "-")
	}
	return w
}

func resourceOf(o *Object) runtimeschema.GroupVersionResource {
	return runtimeschema.GroupVersionResource{Group: o.Group, Version: o.Version, Resource: o.Resource}
}

func (w *world) kubectl(stdin string, args ...string) string {
	w.Helper()
	stdout, stderr, err := w.stack.Kubectl(w.admin).Run(w.Context(), stdin, args...)
	if err != nil {
		w.Fatalf("%v: %s", err, stderr)
	}
	return stdout
}

// draw puts new grants and documents in force in place of those of the round before.
func (w *world) draw(r *rand.Rand, round int) {
	w.Helper()
	if round > 0 {
		w.kubectl("", "delete", "permissionschemas,uncoveredpermissionsets,conditionalpolicies", "--all")
		w.kubectl("", "delete", "clusterroles,clusterrolebindings", "-l", "asks=drawn")
		w.kubectl("", "delete", "roles,rolebindings", "-A", "-l", "asks=drawn")
	}
	// One at a time: fieldperm refuses a set whose verb it does not know yet.
	documents := Documents(r, round)
	for _, text := range documents {
		w.kubectl(text, "create", "-f", "-")
	}
	for _, text := range documents {
		w.await(text)
	}
	var all strings.Builder
	for _, object := range Grants(r, round, w.users) {
		text, err := yaml.Marshal(typed(object))
		must(w.T, err)
		all.WriteString("---\n" + string(text))
	}
	w.kubectl(all.String(), "create", "-f", "-")
	must(w.T, w.stack.AwaitGrants(w.Context()))
	w.Logf("round %d:\n%s\n%s", round, strings.Join(documents, "\n"), all.String())
}

// typed returns an RBAC object with its kind.
func typed(object any) any {
	of := func(kind string) metav1.TypeMeta {
		return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
	}
	switch o := object.(type) {
	case *rbacv1.Role:
		o.TypeMeta = of("Role")
	case *rbacv1.ClusterRole:
		o.TypeMeta = of("ClusterRole")
	case *rbacv1.RoleBinding:
		o.TypeMeta = of("RoleBinding")
	case *rbacv1.ClusterRoleBinding:
		o.TypeMeta = of("ClusterRoleBinding")
	}
	return object
}

// await waits until fieldperm says that a document is compiled and, where it refuses writes, in force.
func (w *world) await(text string) {
	w.Helper()
	var declared unstructured.Unstructured
	must(w.T, yaml.Unmarshal([]byte(text), &declared.Object))
	resource, _ := meta.UnsafeGuessKindToResource(declared.GroupVersionKind())
	var last []any
	err := wait.PollUntilContextTimeout(w.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		live, err := w.client.Resource(resource).Get(ctx, declared.GetName(), metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		last, _, _ = unstructured.NestedSlice(live.Object, "status", "conditions")
		met := 0
		for _, item := range last {
			c, _ := item.(map[string]any)
			if c["status"] == "True" || c["reason"] == v1alpha1.ReasonNoBarriers || c["reason"] == v1alpha1.ReasonNotDenying {
				met++
			}
		}
		return met > 1, nil
	})
	if err != nil {
		w.Fatalf("%s: %v: %v", text, last, err)
	}
}

// object returns an object as it is stored.
func (w *world) object(o *Object) *unstructured.Unstructured {
	w.Helper()
	live, err := w.client.Resource(resourceOf(o)).Namespace(Namespace).Get(w.Context(), o.Name, metav1.GetOptions{})
	must(w.T, err)
	return live
}

// write writes a value into a field as a user, with an update of the whole object or a patch, and undoes it. It reports whether the API server
// allowed it.
func (w *world) write(as, verb string, o *Object, f *Field, value any) (allowed bool, why string) {
	w.Helper()
	before := w.object(o)
	changed := before.DeepCopy()
	must(w.T, f.Set(changed.Object, runtime.DeepCopyJSONValue(value)))
	resource := func(client dynamic.Interface) dynamic.ResourceInterface {
		return client.Resource(resourceOf(o)).Namespace(Namespace)
	}
	after, err := send(w.Context(), resource(w.writers[as]), verb, before, changed)
	switch {
	case isForbidden(err):
		return false, err.Error()
	case err != nil:
		w.Fatalf("%s writes %s of %s: %v", as, f.Path, o.Name, err)
	}
	before.SetResourceVersion(after.GetResourceVersion())
	// The deployment has no controller here, so nothing else writes.
	_, err = resource(w.client).Update(w.Context(), before, metav1.UpdateOptions{})
	must(w.T, err)
	return true, ""
}

// send sends a changed object: the whole of it, or a patch.
func send(ctx context.Context, to dynamic.ResourceInterface, verb string, before, changed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if verb == "update" {
		return to.Update(ctx, changed, metav1.UpdateOptions{})
	}
	from, err1 := before.MarshalJSON()
	into, err2 := changed.MarshalJSON()
	patch, err3 := jsonpatch.CreateMergePatch(from, into)
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	return to.Patch(ctx, changed.GetName(), types.MergePatchType, patch, metav1.PatchOptions{})
}

func isForbidden(err error) bool {
	var status interface{ Status() metav1.Status }
	return errors.As(err, &status) && status.Status().Reason == metav1.StatusReasonForbidden
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
