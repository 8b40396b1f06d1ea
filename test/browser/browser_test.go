package browser

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/fieldperm/fieldperm/internal/fieldtree"
	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/schema/load"
)

// forest returns the trees of Kubernetes' kinds and of testdata.
func forest(t *testing.T) *fieldtree.Forest {
	t.Helper()
	kinds, err := load.BuiltIn()
	must(t, err)
	catalogue, err := load.Catalogue(false)
	must(t, err)
	files, errs := load.Files([]string{"testdata/documents.yaml"})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	compiled, errs := compile.Compile(compile.Documents{Topologies: []compile.Topology{kinds}, Permissions: catalogue, Traced: true}.Append(files))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return fieldtree.New(compiled)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const (
	selected = `document.querySelector('[aria-selected="true"] > .row').innerText.replace(/\s+/g, " ")`
	details  = `document.querySelector("aside").innerText`
	items    = `document.querySelectorAll('[role="treeitem"]').length`
	kinds    = `[...document.querySelectorAll("#kinds a")].map((a) => a.innerText).join()`
	fragment = `decodeURIComponent(location.hash)`
)

func TestPage_ShowsAKindAndMakesFieldsWhenTheyAreOpened(t *testing.T) {
	p := open(t, forest(t))
	p.visit("#kind=apps/v1/Deployment")
	p.expect(`document.getElementById("heading").innerText`, "Deployment")
	p.expect(items, "6")
	p.contains(details, "granular:*", "update, patch", "every field without a barrier")
	p.run(chromedp.Click(`//li[@role="treeitem"][div/span[text()=".spec"]]/div/span[@class="twist"]`))
	p.contains(`document.getElementById("tree").innerText`, ".replicas", "granular:scale", "<number>")
	if got := p.text(items); got > "99" || len(got) > 2 {
		t.Errorf("%s items are made", got)
	}
	p.expect(`document.getElementById("notes").innerText.trim()`, "■ Incomplete: This page lacks <i>nothing</i>.")
	p.picture("light")
}

func TestPage_Keys(t *testing.T) {
	p := open(t, forest(t))
	p.visit("#kind=apps/v1/Deployment")
	p.run(chromedp.Focus("#skip"))
	p.press(kb.Enter)
	p.expect(`document.activeElement.getAttribute("role")`, "treeitem")
	p.press(kb.End)
	p.contains(`document.activeElement.innerText`, ".status")
	p.press(kb.Home)
	for range 4 {
		p.press(kb.ArrowDown)
	}
	p.contains(`document.activeElement.innerText`, ".spec", "granular:specification")
	p.press(kb.ArrowRight)
	p.expect(`document.activeElement.getAttribute("aria-expanded")`, "true")
	p.press(kb.ArrowRight)
	p.contains(`document.activeElement.innerText`, ".minReadySeconds")
	p.press(kb.Enter)
	p.expect(fragment, "#kind=apps/v1/Deployment&path=.spec.minReadySeconds")
	p.contains(details, ".spec.minReadySeconds", "granular:specification")
	p.press(kb.ArrowLeft)
	p.contains(`document.activeElement.innerText`, ".spec")
	p.press(kb.ArrowLeft)
	p.expect(`document.activeElement.getAttribute("aria-expanded")`, "false")
	p.expect(`document.querySelectorAll('#tree [tabindex="0"]').length`, "1")
}

func TestPage_Search(t *testing.T) {
	p := open(t, forest(t))
	p.press("/")
	p.expect(`document.activeElement.id`, "search")
	p.do(`document.getElementById("search").select()`) // The protocol sends the character apart from its key.
	p.press("containers[*].image")
	p.contains(`document.getElementById("results").innerText`, "apps/v1/Deployment .spec.template.spec.containers[*].image")
	p.picture("search")
	p.do(`document.getElementById("search").select()`)
	p.press("example.com/siz")
	p.contains(`document.getElementById("results").innerText`, "granular:example.com/size")
	p.do(`document.getElementById("search").select()`)
	p.press("wid")
	p.contains(`document.getElementById("status").innerText`, "1 kinds")
	p.press(kb.Enter)
	p.expect(fragment, "#kind=example.com/v1/Widget")
	p.expect(`document.getElementById("results").hidden`, "true")
	p.press("/x")
	p.press(kb.Escape)
	p.expect(`document.activeElement.getAttribute("role")`, "treeitem")
}

func TestPage_FollowsASharedLink(t *testing.T) {
	p := open(t, forest(t))
	p.visit("#kind=apps/v1/Deployment&path=.spec.template.spec.containers%5B*%5D.image")
	p.contains(selected, ".image", "granular:image(containerName)", "! runsCode")
	p.contains(details, "granular:specification", "granular:container(containerName)", "of one containerName", "the built-in catalogue", "runsCode")
	p.expect(`document.title`, ".spec.template.spec.containers[*].image · Verbs of fields")
	p.picture("shared")
	p.do(`location.hash = "#kind=example.com/v1/Widget&path=.spec.colour"`)
	p.contains(selected, ".colour", "■ barrier")
	p.contains(details, "not this field: granular:example.com/colour is a barrier at .spec.colour", "testdata/documents.yaml#")
	p.picture("barrier")
	p.run(chromedp.NavigateBack(), chromedp.Sleep(200*time.Millisecond))
	p.contains(selected, ".image")
	// A link to what no longer exists shows the kind; one to an unknown kind shows the first.
	p.visit("#kind=apps/v1/Deployment&path=.spec.none")
	p.contains(selected, "Deployment")
	p.visit("#kind=none&show=none")
	p.contains(selected, "Binding")
}

func TestPage_FiltersByVerb(t *testing.T) {
	p := open(t, forest(t))
	p.visit("#kind=apps/v1/Deployment&verb=granular:scale")
	p.contains(kinds, "Deployment v1", "StatefulSet v1")
	if got := p.text(kinds); strings.Contains(got, "ConfigMap") {
		t.Errorf("the filter leaves %s", got)
	}
	p.contains(`document.getElementById("tree").innerText`, ".replicas", "granular:scale")
	p.expect(items, "3")
	p.contains(`document.getElementById("status").innerText`, "The filter leaves")
	// The verb of a chain is a filter too.
	p.do(`document.getElementById("verb").value = ""; document.getElementById("verb").dispatchEvent(new Event("change"))`)
	p.expect(fragment, "#kind=apps/v1/Deployment")
	p.visit("#kind=example.com/v1/Widget&show=barriers")
	tree := p.text(`document.getElementById("tree").innerText`)
	for _, want := range []string{".size", "barrier under conditions", ".colour", ".privileged", "barrier when self == true"} {
		if !strings.Contains(tree, want) {
			t.Errorf("barriers %q lack %q", tree, want)
		}
	}
	p.visit("#kind=v1/Namespace&path=.metadata.labels%5B*%5D&show=barriers")
	p.contains(selected, "■ barrier for pod-security.kubernetes.io")
	p.contains(details, "for pod-security.kubernetes.io (UncoveredPermissionSet in testdata/documents.yaml#")
}

func TestPage_OnAPhoneAndInTheDark(t *testing.T) {
	p := open(t, forest(t))
	p.prefers("dark")
	p.visit("#kind=apps/v1/Deployment&path=.spec.template.spec.containers%5B*%5D.image")
	p.expect(`getComputedStyle(document.body).backgroundColor`, "rgb(13, 17, 23)")
	p.picture("dark")
	p.run(chromedp.EmulateViewport(360, 740))
	p.visit("#kind=apps/v1/Deployment&path=.spec.template.spec.containers%5B*%5D.image")
	p.expect(`document.documentElement.scrollWidth`, "360")
	p.picture("phone")
	p.prefers("light")
	p.visit("#kind=example.com/v1/Widget&path=.spec.privileged")
	p.expect(`document.documentElement.scrollWidth`, "360")
	p.picture("phone-light")
}

// What a screen reader gets: the tree with its items and levels, and names of all controls.
func TestPage_IsAccessible(t *testing.T) {
	p := open(t, forest(t))
	p.visit("#kind=apps/v1/Deployment&path=.spec.replicas")
	p.expect(`document.querySelector('[role="tree"]').getAttribute("aria-labelledby")`, "heading")
	p.expect(`[...document.querySelectorAll("input, select")].filter((i) => !i.labels.length).length`, "0")
	p.expect(`[...document.querySelectorAll('[role="treeitem"]')].filter((i) => !i.getAttribute("aria-level") || !i.hasAttribute("aria-selected")).length`, "0")
	p.expect(`document.querySelectorAll('[aria-selected="true"]').length`, "1")
	p.expect(`document.querySelector('[aria-selected="true"]').getAttribute("aria-level")`, "3")
	p.expect(`[...document.querySelectorAll(".mark")].filter((m) => !/[a-z]/.test(m.innerText)).length`, "0")
}

// The script works out the same chains as Place.Chains, for every place of some kinds.
func TestPage_ChainsAreThoseOfGo(t *testing.T) {
	f := forest(t)
	p := open(t, f)
	script := `(() => {
	  const kind = model.data.kinds[%d], out = [];
	  const visit = (place) => {
	    if (out.length >= 3000 || model.repeats(place)) return;
	    out.push(place.key + " " + model.chains(place).map((links) => links.map((l) => l.verb + (model.counts(l) ? "" : " lost") +
	      l.lost.map((x) => "[" + [x.by, x.path, x.when.join("|"), x.set || "", x.one || ""].join(",") + "]").join("")).join(" < ")).join(" || "));
	    for (const child of model.children(place)) visit(child);
	  };
	  visit(model.root(kind));
	  return out;
	})()`
	compared := 0
	for i, k := range f.Kinds {
		if !slices.Contains([]string{"Deployment", "Widget", "Namespace", "Pod", "CustomResourceDefinition", "Node", "Binding"}, k.Kind) {
			continue
		}
		var want []string
		got, err := chromedp.Run(p.ctx, chromedp.Evaluate[[]string](fmt.Sprintf(script, i)))
		must(t, err)
		var visit func(*fieldtree.Place)
		visit = func(at *fieldtree.Place) {
			if len(want) >= 3000 || at.Repeats() != nil {
				return
			}
			want = append(want, at.Path.String()+" "+chainsText(at))
			for _, c := range at.Node().Children {
				visit(at.Child(c))
			}
		}
		visit(k.Place())
		// TODO: of a key that a map singles out, Go has the value of the parameter, and the page shows what holds for any key.
		ofOneKey := func(line string) bool { path, _, _ := strings.Cut(line, " "); return strings.Contains(path, `["`) }
		got, want = slices.DeleteFunc(got, ofOneKey), slices.DeleteFunc(want, ofOneKey)
		if !slices.Equal(got, want) {
			for j := range want {
				if j >= len(got) || got[j] != want[j] {
					t.Fatalf("%s: %d places, want %d; got\n%s\nwant\n%s", k.Kind, len(got), len(want), got[min(j, len(got)-1)], want[j])
				}
			}
		}
		compared += len(want)
	}
	t.Logf("%d places", compared)
	if compared < 2000 {
		t.Errorf("%d places were compared", compared)
	}
}

func chainsText(at *fieldtree.Place) string {
	var chains []string
	for _, links := range at.Chains() {
		var texts []string
		for i := range links {
			text := links[i].Verb
			if !links[i].Counts() {
				text += " lost"
			}
			for _, l := range links[i].Lost {
				text += "[" + strings.Join([]string{l.By, l.Path.String(), strings.Join(l.When, "|"), l.Set, l.One}, ",") + "]"
			}
			texts = append(texts, text)
		}
		chains = append(chains, strings.Join(texts, " < "))
	}
	return strings.Join(chains, " || ")
}
