package page

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
)

func renderTables(t *testing.T, title string, tables ...Table) string {
	t.Helper()
	out, err := RenderTables(title, Notes{}, tables...)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestRenderTables_RowsAreReadableWithoutScripts(t *testing.T) {
	page := renderTables(t, "Answer", Table{Title: "Roles", Columns: []string{"NAME", "VERB"}, Rows: [][]string{{"scaler", "granular:scale"}, {"", ".spec.replicas"}, {"update-bot", "object.spec.replicas < 5"}}}, Table{Columns: []string{"A"}})
	for _, want := range []string{
		"<caption>Roles</caption>", `<th scope="col">NAME</th><th scope="col">VERB</th>`, `<tr><td>scaler</td><td class="code">granular:scale</td></tr>`,
		`<tr><td>-</td><td class="code">.spec.replicas</td></tr>`, `<td>update-bot</td><td class="code">object.spec.replicas &lt; 5</td>`,
		"<caption>Answer</caption>", `<td colspan="1">Nothing.</td>`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
}

// The policy allows the one script of the page and its style, and no request.
func TestRenderTables_PolicyHasTheScript(t *testing.T) {
	page := renderTables(t, "x", Table{Columns: []string{"A"}})
	policy := regexp.MustCompile(`Content-Security-Policy" content="([^"]*)"`).FindStringSubmatch(page)[1]
	parts := regexp.MustCompile(`(?s)<(script|style)>(.*?)</(?:script|style)>`).FindAllStringSubmatch(page, -1)
	if len(parts) != 2 {
		t.Fatalf("%d parts, want a style and a script", len(parts))
	}
	for _, part := range parts {
		if !strings.Contains(policy, part[1]+"-src "+hash(part[2])) {
			t.Errorf("the policy lacks a %s: %s", part[1], policy)
		}
	}
	if !strings.HasPrefix(policy, "default-src 'none'; ") || strings.Contains(policy, "unsafe") {
		t.Errorf("the policy is %s", policy)
	}
	if found := regexp.MustCompile(`https?://|(?:src|href)="[^"#]|url\(|@import|fetch\(|XMLHttpRequest|innerHTML|eval\(`).FindString(page); found != "" {
		t.Errorf("the page has %q", found)
	}
}

func TestRenderTables_EscapesWhatOthersNamed(t *testing.T) {
	const hostile = `</td></script><script>alert(1)</script><!-- "&'` + "\u2028\u202e\x00{{data}}"
	page := renderTables(t, hostile, Table{Title: hostile, Columns: []string{hostile}, Rows: [][]string{{hostile}}})
	if n := strings.Count(page, "<script"); n != 1 {
		t.Errorf("%d scripts, want 1", n)
	}
	if n := strings.Count(page, `&lt;/td&gt;&lt;/script&gt;&lt;script&gt;alert(1)&lt;/script&gt;&lt;!-- &#34;&amp;&#39;\u2028\u202e\x00{{data}}`); n != 5 {
		t.Errorf("the text is there %d times, want 5", n)
	}
	if strings.ContainsAny(page, "\u2028\u202e\x00") {
		t.Error("the page has characters that reorder text")
	}
}

func TestRenderTables_RefusesARowWithoutACellForEachColumn(t *testing.T) {
	_, err := RenderTables("x", Notes{}, Table{Title: "Roles", Columns: []string{"A", "B"}, Rows: [][]string{{"1", "2"}, {"1"}}})
	if err == nil || !strings.Contains(err.Error(), `table "Roles": row 1 has 1 cells, and there are 2 columns`) {
		t.Errorf("error %v", err)
	}
}

func TestRenderTables_SaysWhatItLacks(t *testing.T) {
	page, err := RenderTables("x", Notes{Lacks: []string{"This page lacks <b>."}, Facts: []string{"A <fact>."}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"■ Incomplete:</b> This page lacks &lt;b&gt;.</p>", "<li>A &lt;fact&gt;.</li>"} {
		if !bytes.Contains(page, []byte(want)) {
			t.Errorf("the page lacks %s", want)
		}
	}
}
