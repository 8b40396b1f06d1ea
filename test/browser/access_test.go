package browser

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/fieldperm/fieldperm/internal/fieldtree"
	"github.com/fieldperm/fieldperm/internal/page"
)

// who opens the page of a Deployment with made-up subjects.
func who(t *testing.T) *tab {
	t.Helper()
	f := forest(t)
	for _, k := range f.Kinds {
		if k.Group != "apps" || k.Kind != "Deployment" {
			continue
		}
		content, err := page.RenderAccess("Who may change Deployment shop/web", page.Notes{Lacks: []string{"This page lacks the Roles of <ops>."}}, &fieldtree.Forest{Kinds: []*fieldtree.Kind{k}}, &page.Access{
			Kind: k, Object: "shop/web",
			Subjects: []page.Subject{{Kind: "User", Name: "alice"}, {Kind: "Group", Name: "ops"}, {Kind: "ServiceAccount", Name: "shop/deployer"}, {Kind: "User", Name: hostile}, {Kind: "User", Name: "alice2"}},
			Paths: map[string][]page.Holder{
				"":               {{Subject: 1, How: "generic", Through: "ClusterRoleBinding ops"}},
				".spec.replicas": {{Subject: 0, How: "granular", Through: "granular:scale"}, {Subject: 1, How: "generic"}, {Subject: 3, How: "wildcard"}},
				".spec.paused":   {},
				".spec.template.spec.containers[*].image": {{Subject: 0, How: "conditional", Through: "granular:image(web), of one containerName"}, {Subject: 2, How: "granular", Through: "granular:image"}},
			},
		})
		must(t, err)
		return openFile(t, content)
	}
	t.Fatal("no Deployment")
	return nil
}

const treeText = `document.getElementById("tree").innerText.replace(/\s+/g, " ")`

func row(path string) string {
	return fmt.Sprintf(`[...document.querySelectorAll('[role="treeitem"] > .row')].filter((r) => r.querySelector(".name").textContent === %q).map((r) => r.innerText.replace(/\s+/g, " ")).join("|")`, path)
}

func TestAccess_EachFieldHasTheSubjectsThatMayChangeIt(t *testing.T) {
	p := who(t)
	p.visit("#path=.spec.replicas")
	p.expect(`document.getElementById("heading").innerText`, "Deployment shop/web")
	p.contains(row("Deployment"), "● generic: Group ops")
	p.contains(row(".spec"), "● 1 generic")
	p.contains(row(".replicas"), "● generic: Group ops", "○ granular: User alice", "✱ wildcard: User "+printed)
	p.contains(row(".paused"), "✕ no subject")
	p.contains(details, "Who may change it in shop/web", "○ granular 1", "User alice", "granular:scale")
	p.picture("access")
	p.visit("#path=.spec.template.spec.containers%5B*%5D.image")
	p.contains(details, "? conditional 1", "granular:image(web), of one containerName", "ServiceAccount shop/deployer")
	// A barrier-like list does not inherit from above, and a field without a list does.
	if got := p.text(details); strings.Contains(got, "Group ops") {
		t.Errorf("details %q have a subject of the fields above", got)
	}
	p.visit("#path=.spec.strategy.type")
	p.contains(details, "As the object, the nearest field above with a list of its own.", "Group ops")
	p.visit("#path=.spec.paused")
	p.contains(details, "No subject may change it.")
	// What the API server writes itself, no subject changes.
	p.visit("#path=.metadata.uid")
	if got := p.text(details); strings.Contains(got, "Who may change it") {
		t.Errorf("details %q of a field that the API server writes", got)
	}
}

func TestAccess_FiltersBySubject(t *testing.T) {
	p := who(t)
	p.visit("#subject=User%20alice")
	p.expect(items, "8")
	p.expect(`[...document.querySelectorAll(".row .name")].map((n) => n.textContent).join(" ")`, "Deployment .spec .replicas .template .spec .containers [*] .image")
	p.contains(row(".replicas"), "○ granular")
	p.contains(row(".image"), "? conditional")
	p.contains(row(".spec"), "only fields below")
	p.contains(status, "1 subject passes the filter.")
	p.picture("access-subject")
	// In the list of subjects, and back.
	p.run(chromedp.Click(`//ul[@id="subjects"]//a[text()="User alice"]`))
	p.run(chromedp.Click(`//ul[@id="subjects"]//button[text()="all subjects"]`))
	p.contains(treeText, ".status")
	p.run(chromedp.Click(`//ul[@id="subjects"]//a[text()="ServiceAccount shop/deployer"]`))
	p.expect(fragment, "#kind=apps/v1/Deployment&subject=ServiceAccount shop/deployer")
	p.contains(treeText, ".image", "○ granular")
	if got := p.text(treeText); strings.Contains(got, ".replicas") {
		t.Errorf("tree %q has a field of others", got)
	}
	// A group with update: all fields but those whose own list lacks it.
	p.visit("#subject=Group%20ops&path=.spec.template.spec.containers%5B*%5D.imagePullPolicy")
	p.contains(selected, ".imagePullPolicy")
	p.expect(`[...document.querySelector('[aria-selected="true"]').parentElement.querySelectorAll(":scope > li > .row > .name")].some((n) => n.textContent === ".image")`, "false")
	p.expect(`[".spec.paused", ".metadata.uid", ".spec.replicas"].map((path) => access.shownTo(access.matching("Group ops"))(model.find(access.kind, path))).join()`, "false,false,true")
	if got := p.text(treeText); strings.Contains(got, ".paused") {
		t.Errorf("tree %q has a field of no subject", got)
	}
	p.contains(treeText, ".replicas", "● generic")
	// A part of a name is every subject that has it.
	p.visit("#subject=alice")
	p.contains(status, "2 subjects pass the filter.")
	p.visit("#subject=none")
	p.contains(status, "No subject has this text in its name.")
	p.expect(items, "1")
}

func TestAccess_ListsSubjectsWithTheirFields(t *testing.T) {
	p := who(t)
	list := `[...document.querySelectorAll("#subjects li")].map((li) => li.innerText.replace(/\s+/g, " ")).join("|")`
	got := p.text(list)
	if !strings.HasPrefix(got, "Group ops ") {
		t.Errorf("subjects %q: the one with most fields is not the first", got)
	}
	for _, want := range []string{"User alice 2 fields: ○ 1 granular, ? 1 conditional", "ServiceAccount shop/deployer 1 field: ○ 1 granular", "User alice2 0 fields", "User " + printed + " 1 field: ✱ 1 wildcard"} {
		if !strings.Contains(got, want) {
			t.Errorf("subjects %q lack %q", got, want)
		}
	}
	// The count is that of a walk of the tree in Go's order: every field without fields below, and without those of other lists.
	p.expect(`(() => {
	  let n = 0;
	  const visit = (place) => {
	    if (!access.has(place)) return;
	    const below = model.repeats(place) ? [] : model.children(place);
	    if (!below.length && access.holders(place).some((h) => h.subject === 1)) n++;
	    below.forEach(visit);
	  };
	  visit(model.root(access.kind));
	  return n === access.counts.of(1).all && n > 300;
	})()`, "true")
}

func TestAccess_KeysAlone(t *testing.T) {
	p := who(t)
	p.run(chromedp.Focus("#subject"))
	p.press("Group ops")
	p.press(kb.Enter)
	p.expect(fragment, "#kind=apps/v1/Deployment&subject=Group ops")
	p.run(chromedp.Focus("#skip"))
	p.press(kb.Enter)
	p.press(kb.End)
	p.press(kb.Enter)
	p.contains(fragment, "&subject=Group ops", "path=.s")
}

func TestAccess_OnAPhoneInTheDarkAndForAScreenReader(t *testing.T) {
	p := who(t)
	p.prefers("dark")
	p.visit("#subject=User%20alice&path=.spec.replicas")
	p.picture("access-dark")
	p.accessible("heading Deployment shop/web", "tree Deployment shop/web", "treeitem .replicas", "combobox Subject", "link User alice", "navigation Kinds and subjects", "complementary .spec.replicas", "list Subjects")
	p.run(chromedp.EmulateViewport(360, 740))
	p.visit("#path=.spec.replicas")
	p.expect(`document.documentElement.scrollWidth`, "360")
	p.picture("access-phone")
	p.prefers("light")
	p.visit("")
	p.picture("access-phone-light")
}
