//go:build integration

package sampleobject

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/fieldperm/fieldperm/internal/allowlist"
	"github.com/fieldperm/fieldperm/test/cluster"
)

// strictNamespace has the strictest Pod Security Standard and no service account.
const strictNamespace = "strict"

// exceptions are resources that a canary cannot create, with the API server's response. If one can be created, the test fails.
var exceptions = map[string]string{}

// A5: a canary's CREATE reaches validating admission, for every resource for which /authorize may allow a CREATE. If the dry run
// succeeds, all checks of the API server itself have passed.
func TestA5_EveryCreatableResource(t *testing.T) {
	plane := start(t)
	client, err := discovery.NewDiscoveryClientForConfig(plane.Admin())
	if err != nil {
		t.Fatal(err)
	}
	_, lists, err := client.ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	allowed := allowlist.Build(lists, nil, nil)
	admin, canary := configs(t, plane)
	seen := map[string]bool{}
	for _, list := range lists {
		gv, err := runtimeschema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for i := range list.APIResources {
			r := &list.APIResources[i]
			if strings.Contains(r.Name, "/") || !allowed.Has(gv.Group, r.Name, "") || !strings.Contains(r.Verbs.String(), "create") {
				continue
			}
			seen[r.Name+"."+gv.Group] = true
			for user, config := range map[string]*rest.Config{"admin": admin, "canary": canary} {
				t.Run(gv.String()+"/"+r.Name+" as "+user, func(t *testing.T) {
					err := create(t, config, gv, r, nil)
					want, excepted := exceptions[r.Name+"."+gv.Group]
					switch {
					case excepted && (err == nil || !strings.Contains(err.Error(), want)):
						t.Errorf("%v; want an error with %q: correct the exception", err, want)
					case !excepted && err != nil:
						t.Error(err)
					}
				})
			}
		}
	}
	if len(seen) < 60 {
		t.Errorf("only %d creatable resources were seen", len(seen))
	}
	for name := range exceptions {
		if !seen[name] {
			t.Errorf("exception %q is of no resource: delete it", name)
		}
	}
	known, err := loadKinds()
	if err != nil {
		t.Fatal(err)
	}
	for kind := range known {
		if !serves(lists, kind) {
			t.Errorf("kinds.yaml has %q, which is not served: delete it", kind)
		}
	}
}

// A5: the API server accepts the object that is found for a definition.
func TestA5_DefinitionsOnTheAPIServer(t *testing.T) {
	plane := start(t)
	admin, canary := configs(t, plane)
	client, err := dynamic.NewForConfig(admin)
	if err != nil {
		t.Fatal(err)
	}
	resource := runtimeschema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	files := allDefinitions(t)
	for _, file := range files {
		definition, _ := readDefinition(t, file)
		if _, err := client.Resource(resource).Create(t.Context(), definition, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			definition, gvk := readDefinition(t, file)
			live, err := client.Resource(resource).Get(t.Context(), definition.GetName(), metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			plural, _, _ := unstructured.NestedString(live.Object, "spec", "names", "plural")
			scope, _, _ := unstructured.NestedString(live.Object, "spec", "scope")
			r := &metav1.APIResource{Name: plural, Kind: gvk.Kind, Namespaced: scope == "Namespaced"}
			err = wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
				err := create(t, canary, gvk.GroupVersion(), r, live)
				if apierrors.IsNotFound(err) {
					return false, nil // it is served a moment after the definition is created
				}
				return true, err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

func serves(lists []*metav1.APIResourceList, kind runtimeschema.GroupKind) bool {
	for _, list := range lists {
		gv, _ := runtimeschema.ParseGroupVersion(list.GroupVersion)
		for i := range list.APIResources {
			if gv.Group == kind.Group && list.APIResources[i].Kind == kind.Kind {
				return true
			}
		}
	}
	return false
}

func create(t *testing.T, config *rest.Config, gv runtimeschema.GroupVersion, r *metav1.APIResource, definition *unstructured.Unstructured) error {
	t.Helper()
	object, err := New(gv.WithKind(r.Kind), definition)
	if err != nil {
		return err
	}
	namespace := ""
	if r.Namespaced {
		namespace = strictNamespace
	}
	Place(object, assumedName, namespace)
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	options := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict}
	_, err = client.Resource(gv.WithResource(r.Name)).Namespace(namespace).Create(t.Context(), &unstructured.Unstructured{Object: object}, options)
	return err
}

// configs returns the client configurations of an administrator and of a user with only the verb create.
func configs(t *testing.T, plane *cluster.Cluster) (admin, canary *rest.Config) {
	t.Helper()
	user, err := plane.User("canary")
	if err != nil {
		t.Fatal(err)
	}
	admin, canary = plane.Admin(), rest.CopyConfig(user.Config)
	admin.QPS, canary.QPS = -1, -1
	admin.WarningHandler, canary.WarningHandler = rest.NoWarnings{}, rest.NoWarnings{}
	client, err := dynamic.NewForConfig(admin)
	if err != nil {
		t.Fatal(err)
	}
	group := runtimeschema.GroupVersion{Group: "rbac.authorization.k8s.io", Version: "v1"}
	for resource, object := range map[string]map[string]any{
		"clusterroles": {
			"apiVersion": group.String(), "kind": "ClusterRole", "metadata": map[string]any{"name": "canary"},
			"rules": []any{map[string]any{"apiGroups": []any{"*"}, "resources": []any{"*"}, "verbs": []any{"create"}}},
		},
		"clusterrolebindings": {
			"apiVersion": group.String(), "kind": "ClusterRoleBinding", "metadata": map[string]any{"name": "canary"},
			"roleRef":  map[string]any{"apiGroup": group.Group, "kind": "ClusterRole", "name": "canary"},
			"subjects": []any{map[string]any{"apiGroup": group.Group, "kind": "User", "name": "canary"}},
		},
	} {
		if _, err := client.Resource(group.WithResource(resource)).Create(t.Context(), &unstructured.Unstructured{Object: object}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	namespace := map[string]any{
		"apiVersion": "v1", "kind": "Namespace",
		"metadata": map[string]any{"name": strictNamespace, "labels": map[string]any{"pod-security.kubernetes.io/enforce": "restricted"}},
	}
	if _, err := client.Resource(runtimeschema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).Create(t.Context(), &unstructured.Unstructured{Object: namespace}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return admin, canary
}

// start runs a control plane with all APIs and the default admission plugins.
func start(t *testing.T) *cluster.Cluster {
	t.Helper()
	plane, err := cluster.Start(t.Context(), cluster.Config{Dir: t.TempDir(), ExtraArgs: map[string][]string{
		"runtime-config": {"api/all=true"},
		"feature-gates":  {"AllAlpha=true,AllBeta=true"},
		// envtest disables ServiceAccount; the plugin in this list is disabled by default.
		"disable-admission-plugins": {"AlwaysPullImages"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.Stop(); err != nil {
			t.Error(err)
		}
	})
	return plane
}
