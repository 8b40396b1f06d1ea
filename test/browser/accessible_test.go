package browser

import (
	"strings"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/chromedp"
)

// accessible checks the tree that a screen reader gets: it has the wanted nodes, as "role name", and each control has a name.
func (p *tab) accessible(wanted ...string) {
	p.t.Helper()
	_, err := chromedp.Call(p.ctx, accessibility.Enable, cdp.Empty{})
	must(p.t, err)
	got, err := chromedp.Call(p.ctx, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
	must(p.t, err)
	text := func(v *accessibility.Value) string {
		if v == nil {
			return ""
		}
		return strings.Trim(string(v.Value), `"`)
	}
	var all []string
	for _, n := range got.Nodes {
		if n.Ignored {
			continue
		}
		role, name := text(n.Role), strings.TrimSpace(text(n.Name))
		all = append(all, role+" "+name)
		switch role {
		case "button", "link", "searchbox", "textbox", "combobox", "treeitem", "tree", "table", "navigation", "complementary":
			if name == "" {
				p.t.Errorf("accessibility tree: a %s has no name", role)
			}
		}
	}
	have := "\n" + strings.Join(all, "\n") + "\n"
	for _, want := range wanted {
		if !strings.Contains(have, "\n"+want) {
			p.t.Errorf("accessibility tree lacks %q: %s", want, have[:min(len(have), 3000)])
		}
	}
}
