package load

import (
	"os"
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/compile"
)

func fischers(t *testing.T) []byte {
	t.Helper()
	raw, err := os.ReadFile("testdata/fischers.openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestOpenAPIV3_KindsAndTypes(t *testing.T) {
	topology, err := OpenAPIV3("fischers", fischers(t))
	if err != nil {
		t.Fatal(err)
	}
	if len(topology.Kinds) != 1 {
		t.Errorf("kinds %v: lists, options and statuses are none", topology.Kinds)
	}
	compiled := compileWith(t, compile.Documents{Topologies: []compile.Topology{topology}})
	fischer := gvk("sea.example.com", "v1", "Fischer")
	if l := node(t, compiled, fischer, "spec", "boats").List(); l.Atomic() || l.Keys()[0].Name != "name" {
		t.Error("boats are no list-map by name")
	}
	if d := node(t, compiled, fischer, "spec", "catch").Default(); string(d) != `"cod"` {
		t.Errorf("the default of catch is %q", d)
	}
}

// Extensions count on a field and on its type. For each key, the field takes precedence.
func TestOpenAPIV3_PermissionExtensions(t *testing.T) {
	topology, err := OpenAPIV3("fischers", fischers(t))
	if err != nil {
		t.Fatal(err)
	}
	compiled := compileWith(t, compile.Documents{Topologies: []compile.Topology{topology}})
	spec := node(t, compiled, gvk("sea.example.com", "v1", "Fischer"), "spec").Map()
	for name, test := range map[string]struct {
		node *schema.Node
		want string
	}{
		"field":                    {spec.Child("catch"), "granular:sea.example.com/catch"},
		"type, behind a plain ref": {spec.Child("harbour"), "granular:sea.example.com/place"},
		"field over type":          {spec.Child("home"), "granular:sea.example.com/home"},
		"items, by reference":      {spec.Child("boats").List().Item(), "granular:sea.example.com/boat(boat)"},
		"field of a type":          {spec.Child("harbour").Map().Child("town"), "granular:sea.example.com/town"},
		"values of a map":          {spec.Child("nets").Map().Child("a"), "granular:sea.example.com/net(net)"},
		"rest":                     {node(t, compiled, gvk("sea.example.com", "v1", "Fischer"), "metadata", "labels"), "granular:labels"},
	} {
		if verbs := verbsOf(test.node); verbs != test.want {
			t.Errorf("%s: verbs %q, want %q", name, verbs, test.want)
		}
	}
	// The type's barrier stays if the field only changes the verb.
	for _, field := range []string{"harbour", "home"} {
		if !spec.Child(field).Permissions()[0].MayBar() {
			t.Errorf("%s is no barrier", field)
		}
	}
}

// An IntOrString has no type in OpenAPI v3. It is a scalar, so that it equals the one of the built-in kinds.
func TestOpenAPIV3_AnIntOrStringIsAScalar(t *testing.T) {
	text := strings.Replace(string(fischers(t)), `"schemas": {`, `"schemas": {
      "Surge": {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]},
      "Anything": {},
      "Net": {"type": "object", "x-kubernetes-group-version-kind": [{"group": "sea.example.com", "version": "v1", "kind": "Net"}],
        "properties": {"metadata": {"type": "object"}, "surge": {"$ref": "#/components/schemas/Surge"}, "any": {"$ref": "#/components/schemas/Anything"}}},`, 1)
	topology, err := OpenAPIV3("nets", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	compiled := compileWith(t, compile.Documents{Topologies: []compile.Topology{topology}})
	for field, isAny := range map[string]bool{"surge": false, "any": true} {
		n := node(t, compiled, gvk("sea.example.com", "v1", "Net"), field)
		if !n.AllowsScalar() || (n.List() != nil) != isAny || (n.Map() != nil) != isAny {
			t.Errorf("%s: scalar %t, list %v, map %v", field, n.AllowsScalar(), n.List(), n.Map())
		}
	}
}

func TestOpenAPIV3_Refuses(t *testing.T) {
	for name, test := range map[string]struct {
		old, with string
		begins    string
		contains  string
	}{
		"no JSON":           {"{", "[", "doc:: ", "no OpenAPI v3 document"},
		"unknown key":       {`"x-kubernetes-permission-verb": "sea.example.com/catch"`, `"x-kubernetes-permission-verbs": "a"`, "doc:/components/schemas/com.example.sea.v1.FischerSpec/properties/catch/x-kubernetes-permission-verbs: ", "is unknown"},
		"wrong type":        {`"sea.example.com/catch"`, `["a"]`, "doc:/components/schemas/com.example.sea.v1.FischerSpec/properties/catch/x-kubernetes-permission-verb: ", "write a string"},
		"excluded is no":    {`"x-kubernetes-permission-excluded": "true"`, `"x-kubernetes-permission-excluded": "no"`, "doc:/components/schemas/com.example.sea.v1.Place/x-kubernetes-permission-excluded: ", "write true"},
		"null component":    {`"com.example.sea.v1.Place": {`, `"com.example.sea.v1.None": null, "com.example.sea.v1.Place": {`, "doc:/components/schemas/com.example.sea.v1.None: ", "is null"},
		"unknown list type": {`"x-kubernetes-list-type": "map"`, `"x-kubernetes-list-type": "bag"`, "doc:/components/schemas: ", "bag"},
	} {
		t.Run(name, func(t *testing.T) {
			topology, err := OpenAPIV3("doc", []byte(strings.Replace(string(fischers(t)), test.old, test.with, 1)))
			wantFaults(t, separate(err), test.begins, test.contains)
			if topology.Types != nil || topology.Kinds != nil {
				t.Error("a faulty document came through")
			}
		})
	}
	// The compiler's faults point into the document as well.
	topology, err := OpenAPIV3("doc", []byte(strings.Replace(string(fischers(t)), "sea.example.com/catch", "Catch", 1)))
	if err != nil {
		t.Fatal(err)
	}
	_, errs := compile.Compile(compile.Documents{Topologies: []compile.Topology{topology}})
	wantFaults(t, errs, "doc:/components/schemas/com.example.sea.v1.FischerSpec/properties/catch: ", `"Catch"`)
}

func FuzzOpenAPIV3(f *testing.F) {
	raw, err := os.ReadFile("testdata/fischers.openapi.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	f.Fuzz(func(t *testing.T, raw []byte) {
		_, err := OpenAPIV3("doc", raw)
		for _, err := range separate(err) {
			if _, ok := err.(*schema.Error); !ok {
				t.Errorf("%v: is a %T", err, err)
			}
		}
	})
}
