package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const notRun = "# not run by the demo"

// The tutorial shows commands and output of the demo, and marks its additions.
func TestTutorial_ShowsCommandsOfTheDemo(t *testing.T) {
	said := page(t, "test/demo/keep.go")
	stories, err := filepath.Glob(filepath.Join(root, "test", "demo", "stories", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, story := range stories {
		text, err := os.ReadFile(story)
		if err != nil {
			t.Fatal(err)
		}
		said += string(text)
	}
	comment := regexp.MustCompile(`\s+# .*$`)
	commands := 0
	for _, block := range regexp.MustCompile("(?ms)^```bash\n(.*?)^```$").FindAllStringSubmatch(page(t, "docs/tutorial.md"), -1) {
		for line := range strings.Lines(block[1]) {
			line = strings.TrimSpace(line)
			if line == "" || strings.HasSuffix(line, notRun) || strings.HasPrefix(line, "export KUBECONFIG=$users/") {
				continue
			}
			commands++
			line = comment.ReplaceAllString(line, "")
			if i := strings.Index(line, "kubectl "); strings.HasPrefix(line, "KUBECONFIG=$users/") && i > 0 {
				line = line[i:]
			}
			if !strings.Contains(said, line) {
				t.Errorf("docs/tutorial.md: no story runs %q, and the demo does not print it: end the line with %q", line, notRun)
			}
		}
	}
	if commands < 12 {
		t.Errorf("%d commands were found: the test does not see them", commands)
	}
}
