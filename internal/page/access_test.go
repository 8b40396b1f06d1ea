package page

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/internal/fieldtree"
)

// kindOf returns a kind of a forest.
func kindOf(t *testing.T, f *fieldtree.Forest, group, name string) *fieldtree.Kind {
	t.Helper()
	for _, k := range f.Kinds {
		if k.Group == group && k.Kind == name {
			return k
		}
	}
	t.Fatalf("no kind %s of %s", name, group)
	return nil
}

func TestRenderAccess_PathsWithTheSameHoldersShareAList(t *testing.T) {
	f := builtIn(t)
	deployment := kindOf(t, f, "apps", "Deployment")
	page, err := RenderAccess("x", Notes{}, f, &Access{
		Kind: deployment, Object: "shop/web", Subjects: []Subject{{"User", "alice"}, {"Group", "ops"}},
		Paths: map[string][]Holder{
			"":                {{Subject: 1, How: "generic"}},
			".spec.replicas":  {{Subject: 0, How: "granular", Through: "granular:scale"}, {Subject: 1, How: "generic"}},
			".spec.paused":    {{Subject: 1, How: "generic"}},
			".metadata":       {},
			".spec.template":  {{Subject: 1, How: "wildcard"}},
			".spec.selector":  {{Subject: 1, How: "conditional"}},
			".metadata.a.b.c": {{Subject: 1, How: "generic"}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	d := dataOf(t, page)
	got := d.Access
	if f.Kinds[got.Kind] != deployment || got.Object != "shop/web" || !reflect.DeepEqual(got.Subjects, []subjectData{{"User", "alice"}, {"Group", "ops"}}) {
		t.Errorf("access %+v", got)
	}
	if want := map[string]int{"": 0, ".metadata": 1, ".spec.paused": 0, ".spec.replicas": 2, ".spec.selector": 3, ".spec.template": 4}; !reflect.DeepEqual(got.Paths, want) {
		t.Errorf("paths %v, want %v", got.Paths, want)
	}
	through := got.Lists[2][0][2]
	if want := [][][]int{{{1, 0}}, {}, {{0, 1, through}, {1, 0}}, {{1, 3}}, {{1, 2}}}; !reflect.DeepEqual(got.Lists, want) || d.Strings[through] != "granular:scale" {
		t.Errorf("lists %v, want %v", got.Lists, want)
	}
	// An answer about a field that the page cannot show is not dropped without a word.
	if want := "This page does not show the subjects that may change .metadata.a.b.c: the tree has no field with this path."; !bytes.Contains(page, []byte(want)) {
		t.Errorf("the page lacks %s", want)
	}
	if bytes.Count(page, []byte("■ Incomplete:")) != 1 {
		t.Error("the page has other notes")
	}
}

// An item of a list is not the list's items: what holds for one would show as holding for all.
func TestRenderAccess_DoesNotTakeOneItemForAll(t *testing.T) {
	f := builtIn(t)
	const path = `.spec.template.spec.containers[name="web"].image`
	page, err := RenderAccess("x", Notes{}, f, &Access{
		Kind: kindOf(t, f, "apps", "Deployment"), Subjects: []Subject{{"User", "alice"}}, Paths: map[string][]Holder{path: {{Subject: 0, How: "granular"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := dataOf(t, page).Access.Paths; len(got) != 0 || !bytes.Contains(page, []byte("may change .spec.template.spec.containers[name=&#34;web&#34;].image")) {
		t.Errorf("paths %v", got)
	}
}

func TestRenderAccess_RefusesWhatItCannotShow(t *testing.T) {
	f := builtIn(t)
	kind := kindOf(t, f, "apps", "Deployment")
	one := func(h Holder) *Access {
		return &Access{Kind: kind, Object: "shop/web", Subjects: []Subject{{"User", "alice"}}, Paths: map[string][]Holder{"": {h}}}
	}
	for name, tt := range map[string]struct {
		access *Access
		want   string
	}{
		"another kind":      {&Access{Kind: &fieldtree.Kind{}, Object: "shop/web"}, `access to "shop/web": its kind is not in the forest`},
		"unknown how":       {one(Holder{Subject: 0, How: "maybe"}), "use a subject of the list, and one of"},
		"no how":            {one(Holder{}), "use a subject of the list, and one of"},
		"subject too large": {one(Holder{Subject: 1, How: "generic"}), "use a subject of the list"},
		"subject negative":  {one(Holder{Subject: -1, How: "generic"}), "use a subject of the list"},
	} {
		if _, err := RenderAccess("x", Notes{}, f, tt.access); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %q", name, err, tt.want)
		}
	}
}

func TestRenderAccess_EscapesWhatOthersNamed(t *testing.T) {
	const hostile = `</script><script>alert(1)</script><!-- "&'` + "\u2028\u202e"
	f := builtIn(t)
	page, err := RenderAccess(hostile, Notes{Lacks: []string{hostile}}, f, &Access{
		Kind: f.Kinds[0], Object: hostile, Subjects: []Subject{{hostile, hostile}}, Paths: map[string][]Holder{"": {{Subject: 0, How: "generic", Through: hostile}}, hostile: nil},
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(page, []byte("<script")); n != 4 {
		t.Errorf("%d scripts, want 4", n)
	}
	if got := dataOf(t, page).Access; got.Object != hostile || got.Subjects[0].Name != hostile {
		t.Errorf("the data lost a name: %+v", got)
	}
}

// 1,000 subjects with update are one list.
func TestRenderAccess_ManySubjectsAreSmall(t *testing.T) {
	f := builtIn(t)
	a := &Access{Kind: kindOf(t, f, "apps", "Deployment"), Paths: map[string][]Holder{}}
	for i := range 1000 {
		a.Subjects = append(a.Subjects, Subject{"User", strings.Repeat("x", 20)})
		a.Paths[""] = append(a.Paths[""], Holder{Subject: i, How: "generic"})
	}
	for _, path := range []string{".spec.replicas", ".spec.paused", ".spec.template", ".metadata.labels"} {
		a.Paths[path] = a.Paths[""]
	}
	page, err := RenderAccess("x", Notes{}, f, a)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(dataOf(t, page).Access)
	if err != nil {
		t.Fatal(err)
	}
	if len(text) > 70_000 {
		t.Errorf("access has %d bytes", len(text))
	}
}
