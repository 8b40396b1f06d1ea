package generators

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
	"github.com/fieldperm/fieldperm/schema/load"
	"github.com/fieldperm/fieldperm/test/schematest"
)

// refdocs compiles documents and writes their reference.
func refdocs(t *testing.T, documents compile.Documents) []File {
	t.Helper()
	return Refdocs(schematest.Compile(t, documents), documents, RefdocsOptions{})
}

func TestRefdocs_Golden(t *testing.T) {
	documents, errs := load.Files([]string{filepath.Join("testdata", "refdocs", "in")})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	every := slices.DeleteFunc(schematest.Documents(t).Permissions, func(d compile.PermissionDocument) bool { return d.Kind != "*" })
	documents.Permissions = append(every, documents.Permissions...)
	golden(t, filepath.Join("testdata", "refdocs", "out"), refdocs(t, documents))
}

func TestRefdocs_WithoutKinds(t *testing.T) {
	for _, file := range Refdocs(&schema.Schema{}, compile.Documents{}, RefdocsOptions{}) {
		if !bytes.HasPrefix(file.Data, []byte(refdocsMark)) || bytes.Contains(file.Data, []byte("## ")) {
			t.Errorf("%s:\n%s", file.Name, file.Data)
		}
	}
}

func TestRefdocs_IsDeterministic(t *testing.T) {
	documents := schematest.Documents(t)
	first := refdocs(t, documents)
	for range 3 {
		for i, again := range refdocs(t, documents) {
			if !bytes.Equal(again.Data, first[i].Data) {
				t.Fatalf("%s differs between two runs over the same schema", again.Name)
			}
		}
	}
}

// Every verb of the compiled schema is on both pages, and no other.
func TestRefdocs_IsComplete(t *testing.T) {
	documents, compiled := schematest.Documents(t), schematest.Schema(t)
	want := map[string]bool{}
	for _, k := range compiled.Kinds() {
		k.Walk(func(_ fieldpath.Pattern, n *schema.Node) {
			for _, p := range n.Permissions() {
				if n != k.Root {
					want[p.Base().String()] = true
				}
			}
		})
	}
	if len(want) < 200 {
		t.Fatalf("the schema has %d verbs: the walk is broken", len(want))
	}
	for _, file := range Refdocs(compiled, documents, RefdocsOptions{}) {
		_, body, _ := strings.Cut(string(file.Data), "## ")
		have := map[string]bool{}
		for _, verb := range regexp.MustCompile(`granular:[a-zA-Z0-9./-]+`).FindAllString(body, -1) {
			have[verb] = true
		}
		for verb := range want {
			if !have[verb] {
				t.Errorf("%s lacks %s", file.Name, verb)
			}
		}
		for verb := range have {
			if !want[verb] {
				t.Errorf("%s has %s, which guards nothing", file.Name, verb)
			}
		}
	}
}

// A reference leads to a part that is written out, below a heading that exists once.
func TestRefdocs_ReferencesLead(t *testing.T) {
	documents, compiled := schematest.Documents(t), schematest.Schema(t)
	for _, k := range newReference(compiled, documents.Permissions, nil).kinds {
		for i := range k.rows {
			like := k.rows[i].like
			if like == nil || k.rows[i].hidden {
				continue
			}
			at := slices.IndexFunc(like.kind.rows, func(row refRow) bool { return row.path == like.path })
			if at < 0 || like.kind.rows[at].hidden || like.kind.rows[at].like != nil || like.kind.rows[at+1].hidden {
				t.Errorf("%s %s refers to %s %s, which is not written out", k.title(), k.rows[i].path, like.kind.title(), like.path)
			}
		}
	}
	page := refdocs(t, documents)[1].Data
	count := map[string]int{}
	for _, heading := range regexp.MustCompile(`(?m)^##+ (.*)$`).FindAllSubmatch(page, -1) {
		count["#"+anchor(string(heading[1]))]++
	}
	for _, link := range regexp.MustCompile(`\]\((#[^)]*)\)`).FindAllSubmatch(page, -1) {
		if count[string(link[1])] != 1 {
			t.Errorf("link %s leads to %d headings", link[1], count[string(link[1])])
		}
	}
}

// TestRefdocs_HasTheKeysOfOpenAPI: the keys of types in an OpenAPI document are on both pages, at every path that has the type.
func TestRefdocs_HasTheKeysOfOpenAPI(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("..", "schema", "load", "testdata", "fischers.openapi.json"))
	if err != nil {
		t.Fatal(err)
	}
	topology, err := load.OpenAPIV3("fischers", raw)
	if err != nil {
		t.Fatal(err)
	}
	documents := compile.Documents{Topologies: []compile.Topology{topology}, Permissions: schematest.Documents(t).Permissions, Traced: true}
	compiled := schematest.Compile(t, documents)
	files := Refdocs(compiled, documents, RefdocsOptions{})
	keys := 0
	for _, k := range compiled.Kinds() {
		k.Guarded(maxPlaces, func(_ fieldpath.Pattern, n *schema.Node) {
			for _, p := range n.Permissions() {
				if slices.ContainsFunc(p.Origins(), func(o schema.Origin) bool { return o.Form == schema.FormOpenAPI }) {
					keys++
					for _, file := range files {
						if !bytes.Contains(file.Data, []byte(p.Base().String())) {
							t.Errorf("%s lacks %s", file.Name, p.Describe())
						}
					}
				}
			}
		})
	}
	if keys == 0 {
		t.Error("the document has no keys")
	}
}
