package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The table of KEP-5681 names tests and scenarios that exist.
func TestKEP5681_TheTableNamesTestsThatExist(t *testing.T) {
	tests := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") && path != root || d.Name() == "bin"):
			return filepath.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		source, err := os.ReadFile(path)
		for _, match := range declared.FindAllStringSubmatch(string(source), -1) {
			tests[match[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	text := page(t, "docs/contributing/kep-5681.md")
	named := regexp.MustCompile("`((?:Test|Fuzz)[A-Za-z0-9_]+)`").FindAllStringSubmatch(text, -1)
	if len(named) < 30 {
		t.Errorf("the table names %d tests: this test does not see them", len(named))
	}
	for _, match := range named {
		if !tests[match[1]] {
			t.Errorf("test %s does not exist", match[1])
		}
	}
	for _, match := range regexp.MustCompile("\\(`([a-z-]+)`\\)").FindAllStringSubmatch(text, -1) {
		if _, err := os.Stat(filepath.Join(root, "testdata", "conditions", match[1]+".yaml")); match[1] != "subjectaccessreviews" && err != nil {
			t.Errorf("scenario %s does not exist", match[1])
		}
	}
}
