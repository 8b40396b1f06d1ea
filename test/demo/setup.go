package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/fieldperm/fieldperm/test/cluster"
	"github.com/fieldperm/fieldperm/test/stack"
)

const (
	schemasDir     = "test/demo/schemas"
	definitionFile = "widgets.crd.yaml"
	// ownDefinitions are the definitions of PermissionSchemas and UncoveredPermissionSets.
	ownDefinitions = "config/crd"
	// websiteProject is the project of the story about an operator: Go types with permission markers.
	websiteProject = "examples/operator/website"
	// setupManager owns the fields of the objects that exist before the stories.
	setupManager = "setup"
)

var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// stage is the control plane on which the stories are played.
type stage struct {
	stack   *stack.Stack
	root    string
	assets  string
	objects dynamic.Interface
	audit   *audit
	mapper  meta.RESTMapper
	// players are all users of all stories, by the name that the steps use, in order of appearance.
	players map[string]*cluster.User
}

// setUp installs the CRD, and creates the users and the objects of the stories.
func setUp(ctx context.Context, root string, s *stack.Stack, all []*Story, out *printer) (*stage, error) {
	begin := time.Now()
	assets, err := cluster.Assets()
	if err != nil {
		return nil, err
	}
	st := &stage{stack: s, root: root, assets: assets, audit: &audit{file: s.AuditLog()}, players: map[string]*cluster.User{}}
	if err := st.install(ctx); err != nil {
		return nil, err
	}
	if st.objects, err = dynamic.NewForConfig(s.Admin()); err != nil {
		return nil, err
	}
	client, err := discovery.NewDiscoveryClientForConfig(s.Admin())
	if err != nil {
		return nil, err
	}
	groups, err := restmapper.GetAPIGroupResources(client)
	if err != nil {
		return nil, fmt.Errorf("discovery: %w", err)
	}
	st.mapper = restmapper.NewDiscoveryRESTMapper(groups)
	for _, story := range all {
		if err := st.prepare(ctx, story); err != nil {
			return nil, fmt.Errorf("%s: %w", story.Name, err)
		}
	}
	if err := st.kubectl(ctx, "wait", "--for=condition=Enforced", "--timeout=30s", "permissionschemas,uncoveredpermissionsets", "--all"); err != nil {
		return nil, err
	}
	if err := s.AwaitGrants(ctx); err != nil {
		return nil, err
	}
	for kind, barred := range map[string]*unstructured.Unstructured{
		"Widget":  barred("example.com/v1", "Widget", map[string]any{"triggerSelfDestructOnSecurityBreach": true}),
		"Website": barred("web.example.com/v1", "Website", map[string]any{"image": "probe", "public": true}),
	} {
		resource := barred.GroupVersionKind().GroupVersion().WithResource(strings.ToLower(kind) + "s")
		if err := s.AwaitKind(ctx, resource, kind); err != nil {
			return nil, err
		}
		if err := s.AwaitBarrier(ctx, resource, barred); err != nil {
			return nil, err
		}
	}
	out.line("stories: set up after %s", time.Since(begin).Round(10*time.Millisecond))
	return st, nil
}

// barred is an object with a field that is behind a barrier in its definition.
func barred(apiVersion, kind string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": "probe", "namespace": "default"}, "spec": spec,
	}}
}

// install turns the author's annotated CRD into one that the API server accepts, generates the definition and the role of the operator
// from its Go code, and applies them and fieldperm's own definitions.
func (st *stage) install(ctx context.Context) error {
	file, project := filepath.Join(st.stack.Dir(), definitionFile), filepath.Join(st.root, websiteProject)
	if _, err := st.stack.Generate(ctx, "crd", "--in", filepath.Join(st.root, schemasDir, definitionFile), "--out", file); err != nil {
		return err
	}
	made := filepath.Join(st.stack.Dir(), "website")
	if _, err := st.stack.GenerateIn(ctx, project, "crd", "paths=./api/...", "output:crd:dir="+made); err != nil {
		return err
	}
	if _, err := st.stack.GenerateIn(ctx, project, "roles", "paths=./internal/...", "--crd", made, "--out", made+"-roles"); err != nil {
		return err
	}
	roles := filepath.Join(project, "config", "rbac")
	for _, args := range [][]string{
		{"apply", "--server-side", "-f", file, "-f", made, "-f", filepath.Join(st.root, ownDefinitions)},
		{"wait", "--for=condition=Established", "--timeout=30s", "-f", file, "-f", made, "-f", filepath.Join(st.root, ownDefinitions)},
		{"apply", "--server-side", "-f", filepath.Join(made+"-roles", "role-fieldperm.yaml"), "-f", filepath.Join(roles, "role_binding.yaml"), "-f", filepath.Join(roles, "website_roles.yaml")},
	} {
		if err := st.kubectl(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

// kubectl runs kubectl as an administrator.
func (st *stage) kubectl(ctx context.Context, args ...string) error {
	admin, err := st.stack.User("admin", "system:masters")
	if err != nil {
		return err
	}
	if _, stderr, err := st.stack.Kubectl(admin).Run(ctx, "", args...); err != nil {
		return fmt.Errorf("%w: %s", err, stderr)
	}
	return nil
}

// prepare creates a story's namespace, objects, grants, users and files.
func (st *stage) prepare(ctx context.Context, story *Story) error {
	namespace := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
	namespace.SetName(story.Name)
	namespace.SetLabels(story.Labels)
	options := metav1.CreateOptions{FieldManager: setupManager}
	if _, err := st.objects.Resource(namespaces).Create(ctx, namespace, options); err != nil {
		return err
	}
	for _, object := range story.Manifests {
		if err := st.create(ctx, story, object); err != nil {
			return fmt.Errorf("%s %q: %w", object.GetKind(), object.GetName(), err)
		}
	}
	for _, player := range story.Users {
		user, err := st.stack.User(player.Name, player.Groups...)
		if err != nil {
			return err
		}
		if err := setNamespace(user.Kubeconfig, story.Name); err != nil {
			return fmt.Errorf("user %q: kubeconfig: %w", player.Name, err)
		}
		st.players[player.short()] = user
	}
	if err := os.MkdirAll(st.dir(story), 0o700); err != nil {
		return err
	}
	for name, content := range story.Files {
		if err := os.WriteFile(filepath.Join(st.dir(story), name), []byte(content), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// create creates an object, and then its status, which a CREATE ignores.
func (st *stage) create(ctx context.Context, story *Story, object *unstructured.Unstructured) error {
	mapping, err := st.mapper.RESTMapping(object.GroupVersionKind().GroupKind(), object.GroupVersionKind().Version)
	if err != nil {
		return err
	}
	resource := dynamic.ResourceInterface(st.objects.Resource(mapping.Resource))
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		resource = st.objects.Resource(mapping.Resource).Namespace(story.Name)
	}
	made, err := resource.Create(ctx, object, metav1.CreateOptions{FieldManager: setupManager})
	if err != nil {
		return err
	}
	status, ok := object.Object["status"]
	if !ok {
		return nil
	}
	made.Object["status"] = status
	_, err = resource.UpdateStatus(ctx, made, metav1.UpdateOptions{FieldManager: setupManager})
	return err
}

// dir is the working directory of a story's steps.
func (st *stage) dir(story *Story) string {
	return filepath.Join(st.stack.Dir(), "stories", story.Name)
}

// setNamespace makes namespace the default of the kubeconfig.
func setNamespace(file, namespace string) error {
	config, err := clientcmd.LoadFromFile(file)
	if err != nil {
		return err
	}
	for _, c := range config.Contexts {
		c.Namespace = namespace
	}
	return clientcmd.WriteToFile(*config, file)
}
