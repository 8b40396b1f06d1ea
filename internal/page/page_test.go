package page

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/internal/fieldtree"
	"github.com/fieldperm/fieldperm/test/schematest"
)

// maxBytes bounds the page of all kinds of Kubernetes, so that it can be sent by mail and opens at once on a phone.
const maxBytes = 1 << 20

// builtIn returns the trees of all kinds of Kubernetes.
func builtIn(t *testing.T) *fieldtree.Forest {
	t.Helper()
	return fieldtree.New(schematest.Traced(t))
}

func render(t *testing.T, title string, f *fieldtree.Forest) []byte {
	t.Helper()
	out, err := Render(title, Notes{}, f)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// dataOf returns the data of a page.
func dataOf(t *testing.T, page []byte) *data {
	t.Helper()
	match := regexp.MustCompile(`(?s)<script type="application/json" id="data">(.*?)</script>`).FindSubmatch(page)
	if match == nil {
		t.Fatal("the page has no data")
	}
	var out data
	d := json.NewDecoder(bytes.NewReader(match[1]))
	d.DisallowUnknownFields()
	if err := d.Decode(&out); err != nil {
		t.Fatal(err)
	}
	return &out
}

func TestRender_AllOfKubernetesIsSmall(t *testing.T) {
	forest := builtIn(t)
	page := render(t, "all", forest)
	got := dataOf(t, page)
	t.Logf("%d bytes: %d kinds, %d nodes, %d verbs, %d strings", len(page), len(got.Kinds), len(got.Nodes), len(got.Verbs), len(got.Strings))
	if len(page) > maxBytes {
		t.Errorf("the page has %d bytes, more than %d", len(page), maxBytes)
	}
	if len(got.Kinds) != len(forest.Kinds) || len(got.Kinds) < 80 {
		t.Errorf("%d kinds of %d", len(got.Kinds), len(forest.Kinds))
	}
	// Templates of Pods are the same in many kinds, and stand once.
	if len(got.Nodes) > 3000 {
		t.Errorf("%d nodes: equal parts are not shared", len(got.Nodes))
	}
	documents := schematest.Documents(t)
	documents.Traced = true
	if again := render(t, "all", fieldtree.New(schematest.Compile(t, documents))); !bytes.Equal(page, again) {
		t.Error("two pages of one schema differ")
	}
}

func TestRender_RequestsNothing(t *testing.T) {
	page := string(render(t, "all", builtIn(t)))
	for _, address := range regexp.MustCompile(`https?://[^\s"'<]+|(?:src|href)="[^"#][^"]*"|url\(|@import|fetch\(|XMLHttpRequest|WebSocket|innerHTML|eval\(`).FindAllString(page, -1) {
		t.Errorf("the page has %q", address)
	}
	if !strings.Contains(page, `content="default-src 'none'; style-src 'sha256-`) {
		t.Error("the page has no policy")
	}
}

// Every script and style is in the policy, by a hash of exactly what stands between its tags.
func TestRender_PolicyHasEveryScript(t *testing.T) {
	page := string(render(t, "all", &fieldtree.Forest{}))
	parts := regexp.MustCompile(`(?s)<(script|style)>(.*?)</(?:script|style)>`).FindAllStringSubmatch(page, -1)
	if len(parts) != 4 {
		t.Fatalf("%d parts, want a style and three scripts", len(parts))
	}
	policy := regexp.MustCompile(`Content-Security-Policy" content="([^"]*)"`).FindStringSubmatch(page)[1]
	for _, part := range parts {
		if !strings.Contains(policy, part[1]+"-src") || !strings.Contains(policy, hash(part[2])) {
			t.Errorf("the policy lacks a %s: %s", part[1], policy)
		}
	}
	if strings.Contains(policy, "unsafe") {
		t.Errorf("the policy is %s", policy)
	}
}

// Titles and names of fields come from others.
func TestRender_EscapesWhatOthersNamed(t *testing.T) {
	const hostile = `</script><script>alert(1)</script><!-- "&'` + "\u2028"
	leaf := &fieldtree.Node{Type: hostile}
	kind := &fieldtree.Kind{Root: &fieldtree.Node{Type: "X", Children: []fieldtree.Child{{Node: leaf}}}}
	kind.Root.Children[0].Name, kind.Kind = hostile, hostile
	page := render(t, hostile, &fieldtree.Forest{Kinds: []*fieldtree.Kind{kind}})
	if n := bytes.Count(page, []byte("<script")); n != 4 {
		t.Errorf("%d scripts, want 4", n)
	}
	got := dataOf(t, page)
	if got.Title != hostile || got.Kinds[0].Kind != hostile || got.Strings[got.Nodes[0].Fields[0]] != hostile {
		t.Errorf("the data lost a name: %+v", got)
	}
	if !bytes.Contains(page, []byte("<h1>&lt;/script&gt;")) {
		t.Error("the title is not escaped")
	}
}

// A forest may contain itself; a page has every place once.
func TestRender_CyclesEnd(t *testing.T) {
	n := &fieldtree.Node{Type: "JSON"}
	n.Children = []fieldtree.Child{{Node: n}}
	n.Children[0].Name = "items"
	got := dataOf(t, render(t, "x", &fieldtree.Forest{Kinds: []*fieldtree.Kind{{Root: n}}}))
	if len(got.Nodes) != 1 || len(got.Nodes[0].Fields) != 2 || got.Nodes[0].Fields[1] != 0 {
		t.Errorf("nodes %+v", got.Nodes)
	}
}

func TestRender_SaysWhatItLacks(t *testing.T) {
	page, err := Render("x", Notes{Lacks: []string{"This page lacks <b>."}}, &fieldtree.Forest{})
	if err != nil {
		t.Fatal(err)
	}
	if want := `<p><b class="barrier">■ Incomplete:</b> This page lacks &lt;b&gt;.</p>`; !bytes.Contains(page, []byte(want)) {
		t.Errorf("the page lacks %s", want)
	}
}
