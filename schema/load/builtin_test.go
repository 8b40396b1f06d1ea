package load

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	smd "sigs.k8s.io/structured-merge-diff/v6/schema"

	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

func builtIn(t *testing.T) compile.Topology {
	t.Helper()
	topology, err := BuiltIn()
	if err != nil {
		t.Fatal(err)
	}
	return topology
}

func gvk(group, version, kind string) runtimeschema.GroupVersionKind {
	return runtimeschema.GroupVersionKind{Group: group, Version: version, Kind: kind}
}

func TestBuiltIn_Kinds(t *testing.T) {
	kinds := builtIn(t).Kinds
	for _, want := range []runtimeschema.GroupVersionKind{
		gvk("", "v1", "Pod"), gvk("apps", "v1", "Deployment"), gvk("autoscaling", "v1", "Scale"), gvk("", "v1", "Binding"), gvk("autoscaling", "v2", "HorizontalPodAutoscaler"),
		gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition"), gvk("apiregistration.k8s.io", "v1", "APIService"),
		gvk("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration"), gvk("lifecycle.k8s.io", "v1alpha1", "Eviction"),
	} {
		if _, ok := kinds[want]; !ok || !isBuiltIn(want.GroupKind()) {
			t.Errorf("%s: is not there", want)
		}
	}
	for _, no := range []runtimeschema.GroupVersionKind{
		gvk("", "v1", "PodList"), gvk("", "v1", "DeleteOptions"), gvk("", "v1", "Status"), gvk("policy", "v1", "Eviction"),
		gvk("authorization.k8s.io", "v1", "SubjectAccessReview"), gvk("apps", "v1beta1", "Scale"),
	} {
		if _, ok := kinds[no]; ok || isBuiltIn(no.GroupKind()) {
			t.Errorf("%s: is there, but no server stores it", no)
		}
	}
}

// Other packages of a program may add kinds to client-go's global scheme.
func TestBuiltIn_IgnoresTypesThatOthersRegister(t *testing.T) {
	before := builtIn(t).Kinds
	if err := apiextensionsv1.AddToScheme(scheme.Scheme); err != nil {
		t.Fatal(err)
	}
	if after := builtIn(t).Kinds; !maps.Equal(before, after) {
		t.Errorf("kinds %d, then %d", len(before), len(after))
	}
}

// Every reference leads to a type, and every name to one type. structured-merge-diff checks neither.
func TestBuiltIn_TypesAreWhole(t *testing.T) {
	topology := builtIn(t)
	seen := map[string]bool{}
	for _, def := range topology.Types.Types {
		if seen[def.Name] {
			t.Errorf("type %q stands twice", def.Name)
		}
		seen[def.Name] = true
	}
	visited := map[string]bool{}
	for kind, name := range topology.Kinds {
		checkReferences(t, topology.Types, smd.TypeRef{NamedType: &name}, kind.String(), visited)
	}
}

func checkReferences(t *testing.T, types *smd.Schema, ref smd.TypeRef, at string, visited map[string]bool) {
	t.Helper()
	if ref.NamedType != nil {
		if visited[*ref.NamedType] {
			return
		}
		visited[*ref.NamedType] = true
		at += " " + *ref.NamedType
	}
	atom, ok := types.Resolve(ref)
	if !ok {
		t.Errorf("%s: does not resolve", at)
		return
	}
	if atom.List != nil {
		checkReferences(t, types, atom.List.ElementType, at+"[*]", visited)
	}
	if atom.Map != nil {
		for _, f := range atom.Map.Fields {
			checkReferences(t, types, f.Type, at+"."+f.Name, visited)
		}
		checkReferences(t, types, atom.Map.ElementType, at+"{*}", visited)
	}
}

func TestBuiltIn_Topology(t *testing.T) {
	compiled, errs := compile.Compile(compile.Documents{Topologies: []compile.Topology{builtIn(t)}})
	noErrors(t, errs)
	deployment := node(t, compiled, gvk("apps", "v1", "Deployment"), "spec", "template", "spec", "containers")
	if l := deployment.List(); l.Atomic() || l.Keys()[0].Name != "name" {
		t.Error("containers are no list-map by name")
	}
	ports := node(t, compiled, gvk("", "v1", "Pod"), "spec", "containers").List().Item().Map().Child("ports").List()
	if keys := ports.Keys(); len(keys) != 2 || keys[1].Name != "protocol" || string(keys[1].Default) != `"TCP"` {
		t.Errorf("keys of ports are %v: the default of protocol is part of an item's identity", keys)
	}
	if l := node(t, compiled, gvk("", "v1", "Pod"), "spec", "containers").List().Item().Map().Child("args").List(); !l.Atomic() {
		t.Error("args are not atomic")
	}
	if n := node(t, compiled, gvk("autoscaling", "v1", "Scale"), "spec", "replicas"); !n.AllowsScalar() {
		t.Error("replicas of Scale are no scalar")
	}
	if l := node(t, compiled, gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition"), "status", "conditions").List(); l.Atomic() || l.Keys()[0].Name != "type" {
		t.Error("conditions of a CustomResourceDefinition are no list-map by type")
	}
	if n := node(t, compiled, gvk("apiregistration.k8s.io", "v1", "APIService"), "metadata", "labels"); n.Map().IsField("x") || n.Map().Child("x").Map() != nil {
		t.Error("labels of an APIService are no map")
	}
}

// node returns the node below a kind's root, by field names.
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

func noErrors(t *testing.T, errs []error) {
	t.Helper()
	for _, err := range errs {
		t.Error(err)
	}
	if len(errs) > 0 {
		t.FailNow()
	}
}

func strictSchema(t *testing.T) (compile.Topology, *schema.Schema) {
	t.Helper()
	topology := builtIn(t)
	permissions, err := Catalogue(true)
	if err != nil {
		t.Fatal(err)
	}
	return topology, compileDocuments(t, compile.Documents{Topologies: []compile.Topology{topology}, Permissions: permissions})
}

// Every document of the catalogue is about an existing kind.
func TestCatalogue_EveryKindExists(t *testing.T) {
	topology := builtIn(t)
	permissions, err := Catalogue(true)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range permissions {
		if d.Kind == "*" {
			continue
		}
		versions := map[string]bool{}
		for k := range topology.Kinds {
			if k.Group == d.Group && k.Kind == d.Kind {
				versions[k.Version] = true
			}
		}
		if len(versions) == 0 {
			t.Errorf("%s: there is no kind %q in group %q", d.Source, d.Kind, d.Group)
		}
		for _, v := range d.Versions {
			if !versions[v] {
				t.Errorf("%s: there is no version %q of it", d.Source, v)
			}
		}
	}
}

// Design §5: every field of every built-in kind has a verb above or at it, below the root's verb.
func TestCatalogue_EveryFieldHasAVerb(t *testing.T) {
	topology, compiled := strictSchema(t)
	if len(compiled.Kinds()) != len(topology.Kinds) {
		t.Errorf("%d of %d kinds compiled", len(compiled.Kinds()), len(topology.Kinds))
	}
	for _, k := range compiled.Kinds() {
		name := topology.Kinds[k.GroupVersionKind]
		w := &coverage{types: topology.Types, seen: map[coverageKey]bool{}, bare: map[string]bool{}}
		w.walk(smd.TypeRef{NamedType: &name}, k.Root, "", true)
		for _, path := range slices.Sorted(maps.Keys(w.bare)) {
			t.Errorf("%s %s: no verb but granular:*", k.GroupVersionKind, path)
		}
	}
}

// coverage walks a type together with its nodes. Places with different chains may share a node, and a node does not hold the names of its
// fields.
type coverage struct {
	types *smd.Schema
	seen  map[coverageKey]bool
	bare  map[string]bool
}

// coverageKey has the type and the node, because types with equal nodes may have different field names, and equal types may have
// different nodes.
type coverageKey struct {
	atom    smd.Atom
	node    *schema.Node
	covered bool
}

func (w *coverage) walk(ref smd.TypeRef, n *schema.Node, path string, root bool) {
	w.visit(ref, n, path, root, false)
}

func (w *coverage) visit(ref smd.TypeRef, n *schema.Node, path string, root, covered bool) {
	covered = !root && (covered || len(n.Permissions()) > 0)
	atom, ok := w.types.Resolve(ref)
	key := coverageKey{atom, n, covered}
	if w.seen[key] || n.Role() != schema.RoleNone {
		return
	}
	w.seen[key] = true
	if !ok {
		w.bare[path+" (type unknown)"] = true
		return
	}
	if !root && !covered {
		w.bare[path] = true
	}
	if atom.Map != nil && n.Map() != nil {
		for _, f := range atom.Map.Fields {
			w.visit(f.Type, n.Map().Child(f.Name), path+"."+f.Name, false, covered)
		}
		if atom.Map.ElementType != (smd.TypeRef{}) {
			w.visit(atom.Map.ElementType, n.Map().Child("any key"), path+"[*]", false, covered)
		}
	}
	if atom.List != nil && n.List() != nil {
		w.visit(atom.List.ElementType, n.List().Item(), path+"[*]", false, covered)
	}
}

// This proves that the test above can fail: without the catalogue no field has a verb.
func TestCatalogue_EveryFieldHasAVerb_NoticesBareFields(t *testing.T) {
	topology := builtIn(t)
	compiled, errs := compile.Compile(compile.Documents{Topologies: []compile.Topology{topology}})
	noErrors(t, errs)
	k, err := compiled.Kind(gvk("apps", "v1", "Deployment"))
	if err != nil {
		t.Fatal(err)
	}
	name := topology.Kinds[k.GroupVersionKind]
	w := &coverage{types: topology.Types, seen: map[coverageKey]bool{}, bare: map[string]bool{}}
	w.walk(smd.TypeRef{NamedType: &name}, k.Root, "", true)
	for _, path := range []string{".spec.replicas", ".metadata.labels[*]", ".spec.template.spec.containers[*].image"} {
		if !w.bare[path] {
			t.Errorf("%s: not seen among %d paths", path, len(w.bare))
		}
	}
}

// Templates have their own verbs for metadata.
func TestCatalogue_TemplateMetadataIsNotMetadata(t *testing.T) {
	_, compiled := strictSchema(t)
	for _, k := range compiled.Kinds() {
		// This checks every place, because the two would share a node if they had the same permissions.
		whole := k.Guarded(100_000, func(p fieldpath.Pattern, n *schema.Node) {
			path := p.String()
			if !strings.Contains(strings.TrimPrefix(path, ".metadata"), ".metadata") {
				return
			}
			for _, permission := range n.Permissions() {
				switch name := permission.Base().Name(); name {
				case "metadata", "labels", "label", "annotations", "annotation":
					t.Errorf("%s %s: verb %q is that of the object's own metadata", k.GroupVersionKind, path, name)
				}
			}
		})
		if !whole {
			t.Errorf("%s: has more places than were looked at", k.GroupVersionKind)
		}
	}
}

func Example() {
	compiled, errs := Offline(nil)
	if len(errs) > 0 {
		fmt.Println(errs)
		return
	}
	deployment, err := compiled.Kind(runtimeschema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"})
	if err != nil {
		fmt.Println(err)
		return
	}
	replicas := deployment.Root.Map().Child("spec").Map().Child("replicas")
	fmt.Println(replicas.Permissions()[0].Base())
	// Output: granular:scale
}
