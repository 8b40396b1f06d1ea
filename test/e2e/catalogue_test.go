//go:build integration

package e2e

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/openapi"

	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/schema/load"
	"github.com/fieldperm/fieldperm/test/stack"
)

// TestCatalogue_CoversEveryField walks the real server's OpenAPI v3: every field of every persisted kind has a verb below the verb of the
// root, or the server writes it, or it is identity. It fails for any path of the catalogue that does not exist in the kinds of this server.
func TestCatalogue_CoversEveryField(t *testing.T) {
	s := start(t)
	documents := documents(t, s)
	compiled := compileServed(t, documents)
	kinds := persistedKinds(t, s)
	if len(kinds) < 60 {
		t.Fatalf("the server persists %d kinds only", len(kinds))
	}
	paths := 0
	for _, gvk := range kinds {
		kind, err := compiled.Kind(gvk)
		if err != nil {
			t.Errorf("%s: %v", gvk, err)
			continue
		}
		w := &walker{components: documents[gvk.GroupVersion()].Components.Schemas}
		w.visit = func(path string, _ *model, n *schema.Node, verbs int) bool {
			paths++
			if verbs > 0 || n.Role() != schema.RoleNone {
				return false
			}
			if n.List() == nil && n.Map() == nil || n.Map() != nil && takesAnyKey(n.Map()) || n.List() != nil && n.List().Atomic() {
				t.Errorf("%s: %s has no verb but granular:*", gvk, path)
				return false
			}
			return true
		}
		root := w.kind(gvk)
		if root == nil {
			t.Errorf("%s: is not in the server's OpenAPI", gvk)
			continue
		}
		w.fields("", root, kind.Root, 0)
	}
	t.Logf("%d kinds, %d fields looked at", len(kinds), paths)
}

// TestCatalogue_BuiltInKindsAreServed: the compiled-in types agree, field by field, with the types that this server publishes. Both
// are used, the compiled-in types offline, the others in a cluster.
func TestCatalogue_BuiltInKindsAreServed(t *testing.T) {
	s := start(t)
	documents := documents(t, s)
	served := compileServed(t, documents)
	builtIn, errs := load.Offline(nil)
	must(t, errors.Join(errs...))
	for _, gvk := range persistedKinds(t, s) {
		there, err := served.Kind(gvk)
		must(t, err)
		here, err := builtIn.Kind(gvk)
		if err != nil {
			t.Errorf("%s: %v", gvk, err)
			continue
		}
		w := &walker{components: documents[gvk.GroupVersion()].Components.Schemas}
		// The same path in the other tree is kept next to the walk.
		twins := map[string]*schema.Node{"": here.Root}
		w.visit = func(path string, _ *model, n *schema.Node, _ int) bool {
			parent, step := path[:strings.LastIndexAny(path, ".[")], path[strings.LastIndexAny(path, ".["):]
			above := twins[parent]
			if above == nil {
				return false
			}
			twin := child(above, strings.Trim(step, ".[]"))
			twins[path] = twin
			if anyForm(n) || anyForm(twin) {
				// For int-or-string and similar types one of the two sources is more exact than the other.
				return false
			}
			a, b := describe(n), describe(twin)
			if a != b {
				t.Errorf("%s: %s is %s on the server, %s built in", gvk, path, a, b)
				return false
			}
			return strings.Count(path, ".") < 12
		}
		w.fields("", w.kind(gvk), there.Root, 1)
	}
}

func child(n *schema.Node, name string) *schema.Node {
	switch {
	case name == "*" && n.List() != nil:
		return n.List().Item()
	case n.Map() != nil:
		return n.Map().Child(name)
	}
	return nil
}

// anyForm reports whether every JSON value fits the node.
func anyForm(n *schema.Node) bool {
	return n != nil && n.AllowsScalar() && n.List() != nil && n.Map() != nil
}

// takesAnyKey reports whether the node is a map, whose values have a type, and not a struct.
func takesAnyKey(m *schema.Map) bool { return !anyForm(m.Child("no field has this name")) }

// describe lists all properties of a node that Diff uses, except verbs.
func describe(n *schema.Node) string {
	if n == nil {
		return "nothing"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "scalar=%v default=%s", n.AllowsScalar(), n.Default())
	if m := n.Map(); m != nil {
		fmt.Fprintf(&b, " map atomic=%v values=%v", m.Atomic(), takesAnyKey(m))
	}
	if l := n.List(); l != nil {
		fmt.Fprintf(&b, " list atomic=%v", l.Atomic())
		for _, k := range l.Keys() {
			fmt.Fprintf(&b, " %s=%s", k.Name, k.Default)
		}
	}
	return b.String()
}

// document has the parts of an OpenAPI v3 document that a walk over fields needs.
type document struct {
	Components struct {
		Schemas map[string]*model `json:"schemas"`
	} `json:"components"`
	raw []byte
}

type model struct {
	Ref        string                           `json:"$ref"`
	AllOf      []*model                         `json:"allOf"`
	Properties map[string]*model                `json:"properties"`
	Items      *model                           `json:"items"`
	Values     json.RawMessage                  `json:"additionalProperties"`
	Kinds      []runtimeschema.GroupVersionKind `json:"x-kubernetes-group-version-kind"`
}

// walker walks the fields of a document together with the nodes of a compiled kind.
type walker struct {
	components map[string]*model
	// visit is called with the number of verbs below the root. It reports whether to go deeper.
	visit func(path string, m *model, n *schema.Node, verbs int) bool
	// within are the components around the current one. They end the recursion.
	within []string
}

func (w *walker) kind(gvk runtimeschema.GroupVersionKind) *model {
	for _, name := range slices.Sorted(maps.Keys(w.components)) {
		m := w.components[name]
		if len(m.Kinds) == 1 && m.Kinds[0] == gvk {
			return m
		}
	}
	return nil
}

func (w *walker) resolve(m *model) (*model, string) {
	for m != nil {
		switch {
		case m.Ref != "":
			name := strings.TrimPrefix(m.Ref, "#/components/schemas/")
			return w.components[name], name
		case len(m.AllOf) == 1:
			m = m.AllOf[0]
		default:
			return m, ""
		}
	}
	return nil, ""
}

func (w *walker) fields(path string, m *model, n *schema.Node, verbs int) {
	m, name := w.resolve(m)
	if m == nil || name != "" && slices.Contains(w.within, name) {
		return
	}
	if name != "" {
		w.within = append(w.within, name)
		defer func() { w.within = w.within[:len(w.within)-1] }()
	}
	for _, field := range slices.Sorted(maps.Keys(m.Properties)) {
		w.enter(path+"."+field, m.Properties[field], child(n, field), verbs)
	}
	var values model
	if len(m.Values) > 0 && json.Unmarshal(m.Values, &values) == nil {
		w.enter(path+"[*]", &values, child(n, "*"), verbs)
	}
	if m.Items != nil {
		w.enter(path+"[*]", m.Items, child(n, "*"), verbs)
	}
}

func (w *walker) enter(path string, m *model, n *schema.Node, verbs int) {
	if n == nil {
		return
	}
	verbs += len(n.Permissions())
	if w.visit(path, m, n, verbs) {
		w.fields(path, m, n, verbs)
	}
}

func documents(t *testing.T, s *stack.Stack) map[runtimeschema.GroupVersion]*document {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(s.Admin())
	must(t, err)
	index, err := openapi.NewClientWithContext(client.RESTClient()).PathsWithContext(t.Context())
	must(t, err)
	out := map[runtimeschema.GroupVersion]*document{}
	for path, source := range index {
		parts := strings.Split(path, "/")
		if parts[0] != "api" && parts[0] != "apis" || len(parts) < 2 || parts[0] == "apis" && len(parts) < 3 {
			continue
		}
		gv := runtimeschema.GroupVersion{Version: parts[1]}
		if parts[0] == "apis" {
			gv = runtimeschema.GroupVersion{Group: parts[1], Version: parts[2]}
		}
		raw, err := source.SchemaWithContext(t.Context(), "application/json")
		must(t, err)
		d := &document{raw: raw}
		must(t, json.Unmarshal(raw, d))
		out[gv] = d
	}
	return out
}

// compileServed compiles the types that the server serves with the catalogue, in which every path must exist.
func compileServed(t *testing.T, documents map[runtimeschema.GroupVersion]*document) *schema.Schema {
	t.Helper()
	permissions, err := load.Catalogue(true)
	must(t, err)
	docs := compile.Documents{Permissions: permissions}
	for _, gv := range slices.SortedFunc(maps.Keys(documents), func(a, b runtimeschema.GroupVersion) int { return cmp.Compare(a.String(), b.String()) }) {
		topology, err := load.OpenAPIV3(gv.String(), documents[gv].raw)
		must(t, err)
		docs.Topologies = append(docs.Topologies, topology)
	}
	compiled, errs := compile.Compile(docs)
	for _, err := range errs {
		t.Errorf("catalogue: %v", err)
	}
	return compiled
}

// persistedKinds are the kinds of the resources that can be read and written.
func persistedKinds(t *testing.T, s *stack.Stack) []runtimeschema.GroupVersionKind {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(s.Admin())
	must(t, err)
	_, lists, err := client.ServerGroupsAndResources()
	must(t, err)
	var out []runtimeschema.GroupVersionKind
	for _, list := range lists {
		gv, err := runtimeschema.ParseGroupVersion(list.GroupVersion)
		must(t, err)
		for i := range list.APIResources {
			r := &list.APIResources[i]
			writes := slices.ContainsFunc(r.Verbs, func(v string) bool { return v == "create" || v == "update" || v == "patch" })
			if !strings.Contains(r.Name, "/") && writes && slices.Contains(r.Verbs, "get") {
				out = append(out, gv.WithKind(r.Kind))
			}
		}
	}
	return out
}
