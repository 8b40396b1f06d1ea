package browser

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/fieldperm/fieldperm/internal/page"
)

const hostile = `</script><script>alert(1)</script>"'&` + "\u2028\u202e"

// tables opens a page of tables.
func tables(t *testing.T, all ...page.Table) *tab {
	t.Helper()
	content, err := page.RenderTables("Roles of the cluster", page.Notes{Lacks: []string{"This page lacks the Roles of namespace <kube-system>."}}, all...)
	must(t, err)
	return openFile(t, content)
}

func roles() page.Table {
	return page.Table{Title: "Roles", Columns: []string{"NAME", "VERB", "COUNT", "WHY"}, Rows: [][]string{
		{"web-10", "granular:scale", "9", "the field is scaled by an operator, which holds the verb in every namespace of the cluster"},
		{"web-9", "granular:image(web)", "100", "-"},
		{hostile, "granular:*", "20", `.spec.template.spec.containers[name="web"].image`},
		{"api", "update", "", "nothing else"},
	}}
}

const (
	names  = `[...document.querySelectorAll("#table0 tbody tr")].map((tr) => tr.cells[0].textContent).join(" ")`
	shown  = `document.querySelectorAll("#table0 tbody tr").length`
	count  = `document.querySelector("#table0 .count").textContent`
	status = `document.getElementById("status").textContent`
)

func TestTable_SortsByColumnAndKeepsTheOrderInTheAddress(t *testing.T) {
	p := tables(t, roles())
	p.expect(names, "web-10 web-9 "+printed+" api")
	p.run(chromedp.Click(`//th[3]/button`))
	p.expect(names, "api web-10 "+printed+" web-9")
	p.expect(fragment, "#sort=0.2")
	p.expect(`[...document.querySelectorAll("th")].map((th) => th.getAttribute("aria-sort")).join()`, "none,none,ascending,none")
	p.run(chromedp.Click(`//th[3]/button`))
	p.expect(names, "web-9 "+printed+" web-10 api")
	p.expect(fragment, "#sort=0.2d")
	p.run(chromedp.NavigateBack(), chromedp.Sleep(wait))
	p.expect(names, "api web-10 "+printed+" web-9")
	p.picture("table")
	// A shared link, and one with an order that the table has not.
	p.visit("#filter=WEB+granular&sort=0.0")
	p.expect(names, printed+" web-9 web-10")
	p.visit("#sort=7.0,0.99,x")
	p.expect(names, "web-10 web-9 "+printed+" api")
}

// printed is the text of the hostile name on a page.
var printed = strings.ReplaceAll(strings.Trim(strconv.Quote(hostile), `"`), `\"`, `"`)

func TestTable_Filters(t *testing.T) {
	p := tables(t, roles(), page.Table{Title: "Nothing here", Columns: []string{"A"}})
	p.press("/")
	p.expect(`document.activeElement.id`, "filter")
	p.do(`document.getElementById("filter").select()`)
	p.press("scale operator")
	p.expect(names, "web-10")
	p.expect(count, "1 of 4 rows")
	p.expect(status, "The filter leaves 1 of 4 rows.")
	p.expect(fragment, "#filter=scale operator")
	p.press("zzz")
	p.expect(names, "No row has this text.")
	p.expect(`document.querySelector("#table1 tbody").innerText.trim()`, "Nothing.")
	p.press(kb.Escape)
	p.expect(shown, "4")
	p.expect(fragment, "")
	p.expect(`document.getElementById("notes").innerText.trim()`, "■ Incomplete: This page lacks the Roles of namespace <kube-system>.")
}

// The first rows of 10,000 are in the document; sorting and filtering see all.
func TestTable_ManyRowsStayUsable(t *testing.T) {
	many := page.Table{Columns: []string{"NAME", "PATH"}}
	for i := range 10_000 {
		many.Rows = append(many.Rows, []string{fmt.Sprintf("row-%d", i), ".spec.replicas"})
	}
	p := tables(t, many)
	p.expect(shown, "500")
	p.expect(count, "10000 rows")
	p.do(`document.querySelector("button.more").click()`)
	p.expect(shown, "1000")
	p.visit("#sort=0.0d")
	p.expect(`document.querySelector("#table0 tbody td").textContent`, "row-9999")
	p.expect(shown, "500")
	p.visit("#filter=row-777")
	p.expect(count, "11 of 10000 rows")
}

func TestTable_KeysAlone(t *testing.T) {
	p := tables(t, roles())
	p.press(kb.Tab)
	p.expect(`document.activeElement.id`, "skip")
	p.press(kb.Enter)
	p.expect(`document.activeElement.tagName`, "CAPTION")
	p.expect(fragment, "")
	p.press(kb.Tab)
	p.expect(`document.activeElement.textContent.trim()`, "NAME ↕")
	p.press(kb.Enter)
	p.expect(names, printed+" api web-9 web-10")
	p.press(kb.Tab)
	p.press(" ")
	p.expect(fragment, "#sort=0.1")
}

func TestTable_OnAPhoneAndInTheDark(t *testing.T) {
	p := tables(t, roles())
	p.prefers("dark")
	p.visit("")
	p.expect(`getComputedStyle(document.body).backgroundColor`, "rgb(13, 17, 23)")
	p.picture("table-dark")
	p.run(chromedp.EmulateViewport(360, 740))
	p.visit("")
	p.expect(`document.documentElement.scrollWidth`, "360")
	p.expect(`getComputedStyle(document.querySelector("td"), "::before").content`, `"NAME"`)
	p.picture("table-phone")
	p.prefers("light")
	p.visit("")
	p.picture("table-phone-light")
}

func TestTable_IsAccessible(t *testing.T) {
	p := tables(t, roles())
	for width, cell := range map[int64]string{1300: "cell granular:scale", 360: "cell VERB granular:scale"} {
		p.run(chromedp.EmulateViewport(width, 740))
		p.visit("#sort=0.0")
		p.accessible("heading Roles of the cluster", "table Roles 4 rows", "rowgroup", "row", "searchbox Filter", "columnheader NAME", "button NAME", cell, "region Notes", "search", "main")
	}
}
