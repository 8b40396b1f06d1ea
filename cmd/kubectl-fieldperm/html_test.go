package main

import (
	"regexp"
	"strings"
	"testing"
)

// cells returns the rows of a page, with cells divided by |.
func cells(page string) string {
	var out strings.Builder
	for _, row := range regexp.MustCompile(`<tr>(<td.*?)</tr>`).FindAllStringSubmatch(page, -1) {
		out.WriteString(strings.TrimSuffix(regexp.MustCompile(`<td[^>]*>|</td>`).ReplaceAllString(strings.ReplaceAll(row[1], "</td><td", "|<td"), ""), "|") + "\n")
	}
	return out.String()
}

// The page has the decision, and all of what the table and the JSON have.
func TestReviewHTML(t *testing.T) {
	t.Chdir("testdata")
	code, page, stderr := execute(t, "", "review", "--old", "deployment.yaml", "--new", "scaled-and-image.yaml", "--as", "alice", "--grants", "grants.yaml", "-o", "html")
	if code != 1 || stderr != "" || !strings.Contains(page, "<h1>Review of a write: denied</h1>") {
		t.Fatalf("exit code %d, stderr %q: %.300s", code, stderr, page)
	}
	got := cells(page)
	for _, want := range []string{
		".spec.replicas|modified|granular:*, granular:specification, granular:scale|granular:scale\n",
		"|modified|granular:*, granular:specification, granular:template, granular:containers, granular:container, granular:container(web), granular:image, granular:image(web)|-\n",
		"denied|granular|deployments.apps &#34;web&#34; is forbidden: ", "\n1|update|no\n", "|granular:scale|yes\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the rows lack %q:\n%s", want, got)
		}
	}
	// What could not be judged stands above all.
	code, page, _ = execute(t, "", "review", "--old", "bare.yaml", "--new", "bare-changed.yaml", "--as", "scaler", "--grants", "grants.yaml", "-o", "html")
	if !strings.Contains(page, "■ Incomplete:</b> ownership was not judged") {
		t.Errorf("exit code %d: the page lacks the note", code)
	}
}

func TestTightenHTML(t *testing.T) {
	t.Chdir("testdata/tighten")
	code, page, stderr := execute(t, "", "tighten", operator, "--grants", "rbac.yaml", "--audit-log", "gaps.log", "-o", "html")
	if code != 1 || stderr != "" {
		t.Fatalf("exit code %d, stderr %q", code, stderr)
	}
	_, text, _ := execute(t, "", "tighten", operator, "--grants", "rbac.yaml", "--audit-log", "gaps.log")
	_, gaps, found := strings.Cut(text, "The proposal is incomplete:\n")
	if !found {
		t.Fatalf("the text has no gaps: %s", text)
	}
	for line := range strings.Lines(gaps) {
		gap, isGap := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "- ")
		if isGap && !strings.Contains(page, "■ Incomplete:</b> "+escaped(gap)+"</p>") {
			t.Errorf("the page lacks the gap %q", gap)
		}
	}
	got := cells(page)
	for _, want := range []string{"deployments.apps|granular:", "\nadd|", "\nchange|", "note|", "source of the evidence|"} {
		if !strings.Contains("\n"+got, want) {
			t.Errorf("the rows lack %q:\n%s", want, got)
		}
	}
	for _, flag := range []string{"--out=new", "--simulate=gaps.log"} {
		code, stdout, stderr := execute(t, "", "tighten", operator, "--audit-log", "audit.log", "-o", "html", flag)
		if code != 2 || stdout != "" || !strings.Contains(stderr, "--output html is a page of the proposal: drop --out and --simulate") {
			t.Errorf("%s: exit code %d: %s%s", flag, code, stdout, stderr)
		}
	}
}

func escaped(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;").Replace(text)
}
