package generate

import (
	"regexp"
	"strings"
	"testing"
)

var (
	annotated = regexp.MustCompile("(?ms)^```yaml\n(apiVersion: apiextensions.*?)^```$")
	// console is an example of commands; shown is one of them with what it prints.
	console = regexp.MustCompile("(?ms)^```console\n(.*?)^```$")
	shown   = regexp.MustCompile(`(?m)^\$ (.*)\n((?:[^$].*\n)*)`)
)

// docs/guide/schema-authors.md, and the reference after it, show what the commands print about the definition of the guide.
func TestThePagesForAuthorsShowRealOutputs(t *testing.T) {
	guide := content(t, "..", "..", "docs", "guide", "schema-authors.md")
	reference := content(t, "..", "..", "docs", "reference", "schema.md")
	gadgets := annotated.FindStringSubmatch(guide)
	if gadgets == nil {
		t.Fatal("docs/guide/schema-authors.md has no definition")
	}
	dir := t.TempDir()
	save(t, dir, "gadgets.yaml", gadgets[1])
	save(t, dir, "badcrd.yaml", strings.Replace(gadgets[1], "example.com/color", "Color", 1))
	t.Chdir(dir)
	commands := 0
	for _, block := range console.FindAllStringSubmatch(guide+reference, -1) {
		for _, example := range shown.FindAllStringSubmatch(block[1], -1) {
			args, ours := strings.CutPrefix(example[1], "fieldperm-gen ")
			if !ours {
				continue
			}
			commands++
			if _, stdout, stderr := run(t, "", strings.Fields(args)...); stdout+stderr != example[2] {
				t.Errorf("%s prints\n%s%s\nand the page shows\n%s", example[1], stdout, stderr, example[2])
			}
		}
	}
	if commands < 5 {
		t.Errorf("%d commands were found: the test does not see them", commands)
	}
}
