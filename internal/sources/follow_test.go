package sources

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
)

// own returns the definition of one of fieldperm's kinds. accepted says whether the API server has accepted its kind.
func own(resource, kind string, accepted bool) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": resource + ".fieldperm.dev"},
		"spec":     map[string]any{"names": map[string]any{"kind": kind}, "versions": []any{map[string]any{"name": "v1alpha1", "served": true}}},
	}}
	if accepted {
		u.Object["status"] = status(kind, "NamesAccepted", "True", "Established", "True")
	}
	return u
}

// status returns the status of a definition with an accepted kind, and conditions by type.
func status(kind string, conditions ...string) map[string]any {
	var items []any
	for i := 0; i < len(conditions); i += 2 {
		items = append(items, map[string]any{"type": conditions[i], "status": conditions[i+1]})
	}
	return map[string]any{"acceptedNames": map[string]any{"kind": kind}, "storedVersions": []any{"v1"}, "conditions": items}
}

// writtenStatuses returns statuses that users with permissions on the status may write to a definition in force.
func writtenStatuses() map[string]map[string]any {
	return map[string]map[string]any{
		"not established":                   status("Widget", "NamesAccepted", "True", "Established", "False"),
		"neither condition":                 status("Widget", "NamesAccepted", "False", "Established", "False"),
		"no conditions":                     status("Widget"),
		"another kind":                      status("Other", "NamesAccepted", "True", "Established", "True"),
		"no kind":                           status(""),
		"nothing but what objects are kept": {"storedVersions": []any{"v1"}},
	}
}

func installed() []*unstructured.Unstructured {
	return []*unstructured.Unstructured{own("permissionschemas", "PermissionSchema", true), own("uncoveredpermissionsets", "UncoveredPermissionSet", true)}
}

// plane is a fake API server, and the contents of an informer of its definitions.
type plane struct {
	*fake.FakeDynamicClient

	mu          sync.Mutex
	definitions []*unstructured.Unstructured
	changes     int
}

func newPlane(objects ...runtime.Object) *plane {
	return &plane{FakeDynamicClient: fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[runtimeschema.GroupVersionResource]string{
		v1alpha1.GroupVersion.WithResource("permissionschemas"):       "PermissionSchemaList",
		v1alpha1.GroupVersion.WithResource("uncoveredpermissionsets"): "UncoveredPermissionSetList",
	}, objects...)}
}

func (p *plane) install(definitions []*unstructured.Unstructured) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.definitions = definitions
}

func (p *plane) changed() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.changes
}

func (p *plane) follow(t *testing.T) *Objects {
	t.Helper()
	o := NewObjects(p, func() ([]*Definition, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		return defined(p.definitions)
	}, Documents(), func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.changes++
	})
	// The context of the test ends before this cleanup runs.
	t.Cleanup(o.Wait)
	return o
}

func names(objects []*unstructured.Unstructured) map[string]bool {
	out := map[string]bool{}
	for _, u := range objects {
		out[u.GetKind()+" "+u.GetName()] = true
	}
	return out
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal(what)
		}
	}
}

func TestObjects_KindsThatAreNotInstalledAreNotAskedFor(t *testing.T) {
	p := newPlane(deployments("1", 1, pausedIsBarred))
	o := p.follow(t)
	for _, definitions := range [][]*unstructured.Unstructured{
		nil,
		{own("permissionschemas", "PermissionSchema", false), widget("1", 1, "{}")},
	} {
		p.install(definitions)
		if list, err := o.List(t.Context()); err != nil || len(list) > 0 {
			t.Errorf("got %v, %v", list, err)
		}
	}
	if actions := p.Actions(); len(actions) > 0 {
		t.Errorf("asked: %v", actions)
	}
	p.install(installed()[:1])
	list, err := o.List(t.Context())
	if got := names(list); err != nil || len(got) != 1 || !got["PermissionSchema deployments"] {
		t.Errorf("once it is installed: %v, %v", got, err)
	}
	for _, action := range p.Actions() {
		if action.GetResource().Resource != "permissionschemas" {
			t.Errorf("asked: %v", action)
		}
	}
}

func TestObjects_FollowsUntilTheDefinitionIsGone(t *testing.T) {
	p := newPlane(deployments("1", 1, pausedIsBarred))
	p.install(installed())
	o := p.follow(t)
	if _, err := o.List(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the first object is no change", func() bool { return p.changed() == 1 })
	sets := p.Resource(v1alpha1.GroupVersion.WithResource("uncoveredpermissionsets"))
	created := set("s", 1, `{uncoveredPermissions: ["granular:scale"]}`)
	if _, err := sets.Create(t.Context(), created, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a new object is no change", func() bool { return p.changed() == 2 })
	if got := names(o.Known()); len(got) != 2 {
		t.Errorf("got %v", got)
	}
	// The status changes, then the specification.
	created.Object["status"] = map[string]any{"observedGeneration": int64(1)}
	created.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "fieldperm"}})
	if _, err := sets.Update(t.Context(), created, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the status is not known", func() bool {
		for _, u := range o.Known() {
			if _, found, _ := unstructured.NestedMap(u.Object, "status"); found && len(u.GetManagedFields()) == 0 {
				return true
			}
		}
		return false
	})
	created.SetGeneration(2)
	if _, err := sets.Update(t.Context(), created, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a new generation is no change", func() bool { return p.changed() >= 3 })
	if got := p.changed(); got != 3 {
		t.Errorf("%d changes: a status is one too", got)
	}
	p.install(nil)
	if list, err := o.List(t.Context()); err != nil || len(list) > 0 || len(o.Known()) > 0 {
		t.Errorf("the definitions are gone: %v, %v", list, err)
	}
	o.Wait()
	p.install(installed())
	if list, err := o.List(t.Context()); err != nil || len(list) != 2 {
		t.Errorf("the definitions are back: %v, %v", list, err)
	}
}

// TestC2_NoStatusOfTheirDefinitionTakesObjectsAway: users may write the status, and kube-apiserver continues to serve.
func TestC2_NoStatusOfTheirDefinitionTakesObjectsAway(t *testing.T) {
	p := newPlane(deployments("1", 1, pausedIsBarred), set("s", 1, `{uncoveredPermissions: ["granular:scale"]}`))
	p.install(installed())
	o := p.follow(t)
	if list, err := o.List(t.Context()); err != nil || len(list) != 2 {
		t.Fatalf("got %v, %v", list, err)
	}
	for name, status := range writtenStatuses() {
		definitions := installed()
		for _, definition := range definitions {
			definition.Object["status"] = status
		}
		p.install(definitions)
		if list, err := o.List(t.Context()); err != nil || len(list) != 2 || len(o.Known()) != 2 {
			t.Errorf("%s: %v, %v", name, list, err)
		}
	}
	// A change of the specification and the deletion of the definition do count.
	definitions := installed()
	if err := unstructured.SetNestedSlice(definitions[0].Object, []any{map[string]any{"name": "v1alpha1", "served": false}}, "spec", "versions"); err != nil {
		t.Fatal(err)
	}
	p.install(definitions)
	if list, err := o.List(t.Context()); err != nil || len(list) != 1 || list[0].GetKind() != "UncoveredPermissionSet" {
		t.Errorf("a version that is not served: %v, %v", list, err)
	}
}

// TestC2_ObjectsHaveTheKindOfTheirResource: the kind in the API server's response comes from the status of the definition.
func TestC2_ObjectsHaveTheKindOfTheirResource(t *testing.T) {
	p := newPlane()
	p.install(installed())
	p.PrependReactor("list", "uncoveredpermissionsets", func(clienttesting.Action) (bool, runtime.Object, error) {
		other := set("s", 1, `{uncoveredPermissions: ["granular:scale"]}`)
		other.SetKind("Other")
		return true, &unstructured.UnstructuredList{Object: map[string]any{"kind": "OtherList", "apiVersion": "fieldperm.dev/v1alpha1"}, Items: []unstructured.Unstructured{*other}}, nil
	})
	list, err := p.follow(t).List(t.Context())
	if got := names(list); err != nil || !got["UncoveredPermissionSet set"] {
		t.Errorf("got %v, %v", got, err)
	}
}

// TestC2_ADefinitionThatHadNamesIsWaitedFor: fieldperm must not start without barriers because of conditions that say that nothing is served.
func TestC2_ADefinitionThatHadNamesIsWaitedFor(t *testing.T) {
	p := newPlane()
	definitions := installed()[:1]
	definitions[0].Object["status"] = status("PermissionSchema", "NamesAccepted", "False", "Established", "False")
	p.install(definitions)
	p.PrependReactor("list", "permissionschemas", func(action clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewNotFound(action.GetResource().GroupResource(), "")
	})
	_, err := p.follow(t).List(t.Context())
	if err == nil || !strings.Contains(err.Error(), "permissionschemas.fieldperm.dev: cannot be listed: ") || !strings.Contains(err.Error(), "see the conditions of this CustomResourceDefinition") {
		t.Errorf("got %v", err)
	}
}

func TestObjects_ForbiddenIsAnErrorThatNamesTheCure(t *testing.T) {
	p := newPlane(deployments("1", 1, pausedIsBarred))
	p.install(installed())
	var mu sync.Mutex
	forbidden := true
	p.PrependReactor("list", "permissionschemas", func(action clienttesting.Action) (bool, runtime.Object, error) {
		mu.Lock()
		defer mu.Unlock()
		if !forbidden {
			return false, nil, nil
		}
		return true, nil, apierrors.NewForbidden(action.GetResource().GroupResource(), "", nil)
	})
	o := p.follow(t)
	_, err := o.List(t.Context())
	if err == nil || !strings.Contains(err.Error(), "permissionschemas.fieldperm.dev: cannot be listed: ") || !strings.Contains(err.Error(), "grant fieldperm list and watch") {
		t.Errorf("got %v", err)
	}
	mu.Lock()
	forbidden = false
	mu.Unlock()
	eventually(t, "still an error", func() bool {
		list, err := o.List(t.Context())
		return err == nil && len(list) == 1
	})
}

// TestObjects_BeginAnewAfterTheContext: List with a new context does not use informers of a context that has ended.
func TestObjects_BeginAnewAfterTheContext(t *testing.T) {
	p := newPlane()
	p.install(installed())
	o := p.follow(t)
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := o.List(ctx); err != nil {
		t.Fatal(err)
	}
	cancel()
	o.Wait()
	if _, err := p.Resource(v1alpha1.GroupVersion.WithResource("permissionschemas")).Create(t.Context(), deployments("1", 1, pausedIsBarred), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if list, err := o.List(t.Context()); err != nil || len(list) != 1 {
		t.Errorf("got %v, %v", list, err)
	}
}
