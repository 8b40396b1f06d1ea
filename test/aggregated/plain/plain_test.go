package plain

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/builder3"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
	"github.com/fieldperm/fieldperm/schema/load"
	brewery "github.com/fieldperm/fieldperm/test/aggregated/brewery/openapi"
	"github.com/fieldperm/fieldperm/test/aggregated/plain/openapi"
)

// compiledOf compiles the kinds Keg, Formula and Bottle of a package's definitions as a server publishes them in OpenAPI v3.
func compiledOf(t *testing.T, group string, definitions common.GetOpenAPIDefinitions, prefix string) *schema.Schema {
	t.Helper()
	config := &common.OpenAPIV3Config{
		Info:           &spec.Info{InfoProps: spec.InfoProps{Title: group}},
		GetDefinitions: definitions,
		GetDefinitionName: func(name string) (string, spec.Extensions) {
			kind, isOurs := strings.CutPrefix(name, prefix)
			if isOurs && (kind == "Keg" || kind == "Formula" || kind == "Bottle") {
				return kind, spec.Extensions{"x-kubernetes-group-version-kind": []any{map[string]any{"group": group, "version": "v1", "kind": kind}}}
			}
			return strings.NewReplacer("/", ".").Replace(name), nil
		},
	}
	config.Definitions = definitions(func(name string) spec.Ref {
		short, _ := config.GetDefinitionName(name)
		return spec.MustCreateRef("#/components/schemas/" + short)
	})
	var names []string
	for name := range config.Definitions {
		if strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	schemas, err := builder3.BuildOpenAPIDefinitionsForResources(config, names...)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(map[string]any{"openapi": "3.0.0", "components": map[string]any{"schemas": schemas}})
	if err != nil {
		t.Fatal(err)
	}
	topology, err := load.OpenAPIV3(group, raw)
	if err != nil {
		t.Fatal(err)
	}
	catalogue, err := load.Catalogue(false)
	if err != nil {
		t.Fatal(err)
	}
	compiled, errs := compile.Compile(compile.Documents{Topologies: []compile.Topology{topology}, Permissions: catalogue})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return compiled
}

// guards returns the permissions of every field of a kind.
func guards(t *testing.T, s *schema.Schema, gvk runtimeschema.GroupVersionKind) map[string]string {
	t.Helper()
	kind, err := s.Kind(gvk)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	kind.Guarded(10000, func(at fieldpath.Pattern, n *schema.Node) {
		for _, p := range n.Permissions() {
			parameter, conditions := p.ParameterName(), p.ExcludedWhen()
			out[at.String()] += fmt.Sprintf("%s(%s) excluded %t when %v; ", p.Base(), parameter, p.MayBar(), conditions)
		}
	})
	return out
}

const ours = "github.com/fieldperm/fieldperm/test/aggregated/plain/v1."

// TestBothFormsOfMarkersGiveTheSameSchema: what openapi-gen writes of its own form, and what fieldperm-gen openapi writes of fieldperm's.
func TestBothFormsOfMarkersGiveTheSameSchema(t *testing.T) {
	one := compiledOf(t, "brewery.example.com", brewery.Definitions, "com.example.brewery.v1.")
	two := compiledOf(t, "plain.example.com", withKubernetes(openapi.PermissionVerbs(openapi.GetOpenAPIDefinitions)), ours)
	for _, kind := range []string{"Keg", "Formula"} {
		a := guards(t, one, runtimeschema.GroupVersionKind{Group: "brewery.example.com", Version: "v1", Kind: kind})
		b := guards(t, two, runtimeschema.GroupVersionKind{Group: "plain.example.com", Version: "v1", Kind: kind})
		if !maps.Equal(a, b) {
			t.Errorf("%s: openapi-gen's form gives %v\nfieldperm's form gives %v", kind, a, b)
		}
		if !slices.ContainsFunc(slices.Collect(maps.Values(a)), func(s string) bool { return strings.Contains(s, "granular:brewery.example.com/") }) {
			t.Errorf("%s has no verb of its own: %v", kind, a)
		}
	}
	bare := compiledOf(t, "plain.example.com", withKubernetes(openapi.GetOpenAPIDefinitions), ours)
	for path, text := range guards(t, bare, runtimeschema.GroupVersionKind{Group: "plain.example.com", Version: "v1", Kind: "Keg"}) {
		if strings.Contains(text, "brewery") {
			t.Errorf("openapi-gen alone writes %s at %s: the comparison shows nothing", text, path)
		}
	}
}

// TestMarkersOfNamedTypes: openapi-gen writes no definition of a named type that is not a struct.
func TestMarkersOfNamedTypes(t *testing.T) {
	s := compiledOf(t, "plain.example.com", withKubernetes(openapi.PermissionVerbs(openapi.GetOpenAPIDefinitions)), ours)
	got := guards(t, s, runtimeschema.GroupVersionKind{Group: "plain.example.com", Version: "v1", Kind: "Bottle"})
	for path, want := range map[string]string{
		".spec.height":      "granular:bottles.example.com/height() excluded false when []; ",
		".spec.stickers":    "granular:bottles.example.com/stickers() excluded false when []; ",
		".spec.stickers[*]": "granular:bottles.example.com/sticker(sticker) excluded false when []; ",
		".spec.corks":       "granular:bottles.example.com/corks() excluded false when []; ",
		".spec.cap":         `granular:bottles.example.com/cap() excluded true when [self == "gold\\d"]; `,
		".spec.foil":        "granular:bottles.example.com/foil() excluded false when []; ",
		".spec.neck":        "granular:bottles.example.com/neck() excluded false when []; ",
	} {
		if got[path] != want {
			t.Errorf("%s has %q, want %q", path, got[path], want)
		}
	}
}

// TestAStaleFileStopsTheServer: the function panics where a marker has no place or another value.
func TestAStaleFileStopsTheServer(t *testing.T) {
	for name, spoil := range map[string]func(map[string]common.OpenAPIDefinition){
		"no OpenAPI definition": func(d map[string]common.OpenAPIDefinition) { delete(d, ours+"KegSpec") },
		"has no":                func(d map[string]common.OpenAPIDefinition) { delete(d[ours+"KegSpec"].Schema.Properties, "recalled") },
		"and not": func(d map[string]common.OpenAPIDefinition) {
			beer := d[ours+"KegSpec"].Schema.Properties["beer"]
			beer.AddExtension("x-kubernetes-permission-verb", "old")
			d[ours+"KegSpec"].Schema.Properties["beer"] = beer
		},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if message := fmt.Sprint(recover()); !strings.Contains(message, name) {
					t.Errorf("panics with %q", message)
				}
			}()
			openapi.PermissionVerbs(func(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
				out := openapi.GetOpenAPIDefinitions(ref)
				spoil(out)
				return out
			})(func(string) spec.Ref { return spec.Ref{} })
		})
	}
}

// TestOpenAPIGenHasTheVersionOfTheLibrary: openapi-gen is run from the module of tools.
func TestOpenAPIGenHasTheVersionOfTheLibrary(t *testing.T) {
	version := func(path string) string {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return regexp.MustCompile(`k8s\.io/kube-openapi (\S+)`).FindString(string(raw))
	}
	if own, tools := version("../../../go.mod"), version("../../../hack/tools/go.mod"); own == "" || own != tools {
		t.Errorf("go.mod has %q, hack/tools/go.mod has %q: use one version", own, tools)
	}
}

// withKubernetes adds the definitions of Kubernetes' own types.
func withKubernetes(of common.GetOpenAPIDefinitions) common.GetOpenAPIDefinitions {
	return func(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
		return brewery.WithKubernetes(of, ref)
	}
}
