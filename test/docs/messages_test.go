package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// others are messages of kube-apiserver, and forms of messages that no single text in the code has.
var others = []string{
	"failed calling webhook", "admission webhook ", "cannot … resource", "fieldperm: granular:", "connection refused", "x509", "context deadline exceeded",
	"kubectl ",
}

// sources returns the text of the Go files that ship.
func sources(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (strings.HasPrefix(entry.Name(), ".") && entry.Name() != ".." || entry.Name() == "test" || entry.Name() == "bin"):
			return filepath.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		b.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(b.String(), `\"`, `"`)
}

// Readers search the troubleshooting page by message, so each message on it must exist in the code.
func TestTroubleshooting_NamesMessagesOfTheCode(t *testing.T) {
	code := sources(t)
	cell := regexp.MustCompile("`([^`]+)`")
	seen := 0
	for _, line := range strings.Split(page(t, "docs/guide/troubleshooting.md"), "\n") {
		cells := strings.Split(line, " | ")
		if len(cells) < 2 || !strings.HasPrefix(line, "| ") {
			continue
		}
		column := cells[0]
		if regexp.MustCompile("^\\| (`(Compiled|Enforced)`|[0-9]{3})").MatchString(line) {
			column = cells[1]
		}
		for _, match := range cell.FindAllStringSubmatch(column, -1) {
			if hasPrefix(match[1], others) || !strings.Contains(strings.TrimSpace(match[1]), " ") {
				continue
			}
			for part := range strings.SplitSeq(match[1], "…") {
				seen++
				if !strings.Contains(code, strings.TrimSpace(part)) {
					t.Errorf("docs/guide/troubleshooting.md: no code says %q, of %q", part, match[1])
				}
			}
		}
	}
	if seen < 80 {
		t.Errorf("%d messages were found: the test does not see them", seen)
	}
}

func hasPrefix(text string, prefixes []string) bool {
	for _, prefix := range prefixes {
		if strings.HasPrefix(text, prefix) {
			return true
		}
	}
	return false
}
