//go:build integration

package sources

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	smd "sigs.k8s.io/structured-merge-diff/v6/schema"

	"github.com/fieldperm/fieldperm/internal/allowlist"
	"github.com/fieldperm/fieldperm/internal/schemacheck"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/compile"
	local "github.com/fieldperm/fieldperm/test/cluster"
)

const extraObjects = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: gizmos.example.com
  annotations: {fieldperm.dev/permission-verbs: '{"v2":[]}'}
spec:
  group: example.com
  names: {kind: Gizmo, plural: gizmos}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.broken.example.com}
spec:
  group: broken.example.com
  version: v1
  groupPriorityMinimum: 100
  versionPriority: 100
  insecureSkipTLSVerify: true
  service: {namespace: default, name: nowhere}
`

// contender claims a kind that the Widgets' definition already has, with a barrier. The API server does not serve it. The other
// definition is in a separate group; the API server accepts its names, but does not serve it either.
const contender = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: thieves.example.com
  annotations: {fieldperm.dev/permission-verbs: '{"v1":[{"path":".spec.replicas","verb":"example.com/theft","excluded":true}]}'}
spec:
  group: example.com
  names: {kind: Widget, plural: thieves}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: thieves.networking.k8s.io
  annotations: {api-approved.kubernetes.io: "unapproved, for a test", fieldperm.dev/permission-verbs: '{"v1":[{"path":".spec.replicas","verb":"example.com/theft","excluded":true}]}'}
spec:
  group: networking.k8s.io
  names: {kind: Thief, plural: thieves}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`

// ownObjects are a barrier on Deployments, and a barrier on fields with the verb "scale".
const ownObjects = `
{apiVersion: fieldperm.dev/v1alpha1, kind: PermissionSchema, metadata: {name: deployments}, spec: {group: apps, kind: Deployment, permissions: [{path: .spec.paused, verb: example.com/pause, excluded: true}]}}
---
{apiVersion: fieldperm.dev/v1alpha1, kind: UncoveredPermissionSet, metadata: {name: set}, spec: {uncoveredPermissions: ['granular:scale']}}
`

func TestOnce_OnACluster(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	c, err := local.Start(ctx, local.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	admin, err := c.User("admin", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	kubectl := func(stdin string, args ...string) {
		t.Helper()
		if _, stderr, err := c.Kubectl(admin).Run(ctx, stdin, args...); err != nil {
			t.Fatalf("kubectl %v: %v: %s", args, err, stderr)
		}
	}
	widgets, err := os.ReadFile("../../schema/load/testdata/widgets.crd.yaml")
	if err != nil {
		t.Fatal(err)
	}
	annotated := strings.Replace(string(widgets), "metadata:\n", "metadata:\n  annotations:\n    fieldperm.dev/permission-verbs: '"+
		`{"v1":[{"path":".spec.colour","verb":"example.com/colour","excluded":true}],"v1alpha1":[]}`+"'\n", 1)
	// The server refuses permission keys in a schema, so they are in the annotation.
	var plain []string
	for line := range strings.Lines(annotated) {
		if !strings.Contains(line, "x-kubernetes-permission") {
			plain = append(plain, line)
		}
	}
	widgetsOnly := strings.Replace(strings.Join(plain, ""), "storage: false\n  - name: v0", "storage: false\n    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}\n  - name: v0", 1)
	kubectl(widgetsOnly, "create", "-f", "-")
	kubectl("", "create", "-f", "../../config/crd")
	kubectl("", "wait", "--for=condition=Established", "crd/widgets.example.com", "crd/permissionschemas.fieldperm.dev", "crd/uncoveredpermissionsets.fieldperm.dev", "--timeout=60s")
	kubectl(contender+"---"+extraObjects, "create", "-f", "-")
	kubectl("", "wait", "--for=condition=Established", "crd/gizmos.example.com", "crd/thieves.networking.k8s.io", "--timeout=60s")
	kubectl("", "wait", "--for=condition=NamesAccepted=false", "crd/thieves.example.com", "--timeout=60s")
	kubectl(ownObjects, "create", "-f", "-")

	begin := time.Now()
	s, err := Once(ctx, c.Admin(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("Once took %s: %d topologies, %d permission documents", time.Since(begin).Round(time.Millisecond), len(s.Documents.Topologies), len(s.Documents.Permissions))
	faulty := 0
	for _, err := range s.Warnings {
		t.Logf("warning: %v", err)
		if strings.HasPrefix(err.Error(), "CustomResourceDefinition gizmos.example.com:/metadata/annotations/fieldperm.dev~1permission-verbs/v2: ") && strings.Contains(err.Error(), "does not exist") {
			faulty++
		}
	}
	// The faulty definition is the only certain fault. The index may or may not contain the broken API.
	if faulty != 1 {
		t.Errorf("warnings %v", s.Warnings)
	}

	widget := gvk("example.com", "v1", "Widget")
	for path, want := range map[string]string{"colour": "granular:example.com/colour", "replicas": "granular:scale"} {
		if got := verbsOf(node(t, s.Schema, widget, "spec", path)); got != want {
			t.Errorf("%s: verbs %q, want %q", path, got, want)
		}
	}
	if got := verbsOf(node(t, s.Schema, kindDeployment(), "spec", "replicas")); got != "granular:scale" {
		t.Errorf("replicas of Deployment: verbs %q", got)
	}
	if !node(t, s.Schema, widget, "spec", "colour").Permissions()[0].MayBar() {
		t.Error("the barrier of the annotation is lost")
	}
	if !node(t, s.Schema, kindDeployment(), "spec", "paused").Permissions()[0].MayBar() || len(schemacheck.NewSets(s.Documents, s.Schema).GuardedFields("UncoveredPermissionSet set")) == 0 {
		t.Error("the barriers of a PermissionSchema or of a set are lost")
	}
	for _, unknown := range []runtimeschema.GroupVersionKind{gvk("example.com", "v1", "Gizmo"), gvk("broken.example.com", "v1", "Anything")} {
		if err := s.Kind(unknown); err == nil {
			t.Errorf("%s: is known, so its barriers count as none", unknown)
		}
	}
	// Two delegates of the API server may publish networking.k8s.io/v1, so the kind may be known. The API server serves no version
	// of the definition, and the definition has no effect.
	client, err := dynamic.NewForConfig(c.Admin())
	if err != nil {
		t.Fatal(err)
	}
	thieves := runtimeschema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "thieves"}
	if _, err := client.Resource(thieves).Namespace("default").List(ctx, metav1.ListOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("thieves.networking.k8s.io: %v", err)
	}
	for _, kind := range outline(s.Schema) {
		if strings.Contains(kind, "theft") {
			t.Errorf("a definition that is not served bears on %s", kind)
		}
	}
	for _, kind := range []runtimeschema.GroupVersionKind{gvk("networking.k8s.io", "v1", "Ingress"), gvk("networking.k8s.io", "v1", "NetworkPolicy")} {
		if k, err := s.Schema.Kind(kind); err != nil || k.MayBar() || k.Lossy() {
			t.Errorf("%s: %v", kind, err)
		}
	}
	if err := s.Kind(gvk("autoscaling", "v1", "Scale")); err != nil {
		t.Error(err)
	}

	t.Run("built-in kinds agree with the published types", func(t *testing.T) {
		builtins := s.Documents.Topologies[0]
		compared := 0
		for _, published := range s.Documents.Topologies[1:] {
			for kind, name := range published.Kinds {
				own, ok := builtins.Kinds[kind]
				if !ok {
					continue
				}
				compared++
				d := &difference{ours: builtins.Types, theirs: published.Types, seen: map[[2]string]bool{}, found: map[string]bool{}}
				d.compare(smd.TypeRef{NamedType: &own}, smd.TypeRef{NamedType: &name}, "")
				for _, text := range slices.Sorted(maps.Keys(d.found)) {
					t.Errorf("%s%s", kind, text)
				}
			}
		}
		if compared < 60 {
			t.Errorf("%d kinds compared", compared)
		}
		for _, kind := range []runtimeschema.GroupVersionKind{gvk("apiregistration.k8s.io", "v1", "APIService"), gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition")} {
			if !slices.ContainsFunc(s.Documents.Topologies[1:], func(t compile.Topology) bool { _, ok := t.Kinds[kind]; return ok }) {
				t.Errorf("%s: is not published", kind)
			}
		}
	})
}

// TestA2_EveryKindThatTheAPIServerServesIsKnown, on each minor with all its alpha and beta versions: one that is not known is refused with 503, and its barriers
// are not known.
func TestA2_EveryKindThatTheAPIServerServesIsKnown(t *testing.T) {
	c, err := local.Start(t.Context(), local.Config{ExtraArgs: map[string][]string{"runtime-config": {"api/all=true"}, "feature-gates": {"AllAlpha=true,AllBeta=true"}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	client, err := discovery.NewDiscoveryClientForConfig(c.Admin())
	if err != nil {
		t.Fatal(err)
	}
	_, lists, err := client.ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	s, err := Once(t.Context(), c.Admin(), nil)
	if err != nil {
		t.Fatal(err)
	}
	kinds, unregistered := 0, map[string]bool{}
	takesMarker := allowlist.Build(lists, nil, nil)
	for _, list := range lists {
		gv, err := runtimeschema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for i := range list.APIResources {
			r := &list.APIResources[i]
			if strings.Contains(r.Name, "/") || !takesMarker.Has(gv.Group, r.Name, "") {
				continue
			}
			kinds++
			if err := s.Kind(gv.WithKind(r.Kind)); err != nil {
				t.Errorf("%s: %v", gv.WithResource(r.Name), err)
			}
			if !isRegistered(gv) {
				unregistered[gv.String()] = true
			}
		}
	}
	if kinds < 60 {
		t.Errorf("%d kinds are served", kinds)
	}
	t.Logf("%d kinds; the linked version has none of %v", kinds, slices.Sorted(maps.Keys(unregistered)))
}

func TestOnce_WithoutServer(t *testing.T) {
	c, err := local.Start(t.Context(), local.Config{})
	if err != nil {
		t.Fatal(err)
	}
	config := c.Admin()
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	if s, err := Once(t.Context(), config, nil); err == nil || s != nil {
		t.Errorf("got %v, %v: want an error alone", s, err)
	}
}

func gvk(group, version, kind string) runtimeschema.GroupVersionKind {
	return runtimeschema.GroupVersionKind{Group: group, Version: version, Kind: kind}
}

func node(t *testing.T, compiled *schema.Schema, kind runtimeschema.GroupVersionKind, path ...string) *schema.Node {
	t.Helper()
	k, err := compiled.Kind(kind)
	if err != nil {
		t.Fatal(err)
	}
	n := k.Root
	for _, name := range path {
		if n.Map() == nil {
			t.Fatalf("%s %v: no object above %q", kind, path, name)
		}
		n = n.Map().Child(name)
	}
	return n
}

func verbsOf(n *schema.Node) string {
	var out []string
	for _, p := range n.Permissions() {
		out = append(out, p.Describe())
	}
	return strings.Join(out, " ")
}

// difference compares two types by structure: fields, defaults, and the merge semantics of lists and maps.
type difference struct {
	ours, theirs *smd.Schema
	seen         map[[2]string]bool
	found        map[string]bool
}

func (d *difference) compare(ours, theirs smd.TypeRef, path string) {
	if ours.NamedType != nil && theirs.NamedType != nil {
		key := [2]string{*ours.NamedType + relationship(ours), *theirs.NamedType + relationship(theirs)}
		if d.seen[key] {
			return
		}
		d.seen[key] = true
	}
	a, okA := d.ours.Resolve(ours)
	b, okB := d.theirs.Resolve(theirs)
	if !okA || !okB {
		if okA != okB {
			d.found[fmt.Sprintf("%s: resolves %v and %v", path, okA, okB)] = true
		}
		return
	}
	// A type that allows any form is equal to the form of the other side.
	anyForm := func(atom smd.Atom) bool { return atom.Scalar != nil && atom.List != nil && atom.Map != nil }
	if (a.Scalar == nil) != (b.Scalar == nil) || (a.List == nil) != (b.List == nil) || (a.Map == nil) != (b.Map == nil) {
		if !anyForm(a) && !anyForm(b) {
			d.found[path+": other forms"] = true
		}
		return
	}
	if a.List != nil {
		if a.List.ElementRelationship != b.List.ElementRelationship || !slices.Equal(a.List.Keys, b.List.Keys) {
			d.found[fmt.Sprintf("%s: list %s %v and %s %v", path, a.List.ElementRelationship, a.List.Keys, b.List.ElementRelationship, b.List.Keys)] = true
		}
		d.compare(a.List.ElementType, b.List.ElementType, path+"[*]")
	}
	if a.Map != nil {
		if (a.Map.ElementRelationship == smd.Atomic) != (b.Map.ElementRelationship == smd.Atomic) {
			d.found[fmt.Sprintf("%s: map %q and %q", path, a.Map.ElementRelationship, b.Map.ElementRelationship)] = true
		}
		d.compareFields(a.Map, b.Map, path)
		if a.Map.ElementType != (smd.TypeRef{}) && b.Map.ElementType != (smd.TypeRef{}) {
			d.compare(a.Map.ElementType, b.Map.ElementType, path+"{*}")
		}
	}
}

func (d *difference) compareFields(a, b *smd.Map, path string) {
	for _, f := range a.Fields {
		other, ok := b.FindField(f.Name)
		if !ok {
			d.found[path+"."+f.Name+": is not published"] = true
			continue
		}
		if fmt.Sprint(f.Default) != fmt.Sprint(other.Default) {
			d.found[fmt.Sprintf("%s.%s: default %v and %v", path, f.Name, f.Default, other.Default)] = true
		}
		d.compare(f.Type, other.Type, path+"."+f.Name)
	}
	for _, f := range b.Fields {
		if _, ok := a.FindField(f.Name); !ok {
			d.found[path+"."+f.Name+": is published, but not built in"] = true
		}
	}
}

func relationship(ref smd.TypeRef) string {
	if ref.ElementRelationship == nil {
		return ""
	}
	return "/" + string(*ref.ElementRelationship)
}
