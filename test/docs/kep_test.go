package docs

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	declaredTest = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark|Example)\w*)\(`)
	testName     = regexp.MustCompile(`^(?:Test|Fuzz|Benchmark|Example)[A-Za-z0-9_]*$`)
	quotedName   = regexp.MustCompile("`([^`]+)`")
	notYet       = regexp.MustCompile(`(?i)\bnot yet\b|\btodo\b`)
)

// testNames are the tests of the repository by name, with the text of their files and of the files of cases beside them.
type testNames map[string]string

// testsOf returns the tests of all packages, whatever their build tags.
func testsOf(t *testing.T) testNames {
	t.Helper()
	out := testNames{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") && path != root || d.Name() == "bin"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		cases, err := filepath.Glob(filepath.Join(filepath.Dir(path), "testdata", "*.txt"))
		for _, file := range cases {
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			source = append(append(source, '\n'), text...)
		}
		for _, match := range declaredTest.FindAllStringSubmatch(string(source), -1) {
			out[match[1]] += string(source)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// has reports whether a subtest exists: a scenario, a name in the file of one of the tests, or the title of a case in a file beside it.
func (n testNames) has(tests []string, subtest string) bool {
	for _, place := range []string{"testdata/conditions/" + subtest + ".yaml", "testdata/scenarios/" + subtest + "/scenario.yaml"} {
		if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(place))); err == nil {
			return true
		}
	}
	for _, test := range tests {
		if strings.Contains(n[test], fmt.Sprintf("%q", subtest)) || strings.Contains(n[test], "\n=== "+subtest+"\n") {
			return true
		}
	}
	return false
}

// faults returns what is wrong with the rows of a table of requirements, and the number of rows. A row has a requirement, what fieldperm
// does, and its tests: names in backquotes, subtests too. Without a test the last cell is "none", and the one before has the reason.
func (n testNames) faults(table string) (out []string, rows int) {
	for _, line := range strings.Split(table, "\n") {
		line = strings.ReplaceAll(line, `\|`, "")
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|---") || strings.HasPrefix(line, "| **") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if len(cells) != 3 {
			out = append(out, fmt.Sprintf("row %q has %d cells: give it three", line, len(cells)))
			continue
		}
		requirement, here, last := strings.TrimSpace(cells[0]), strings.TrimSpace(cells[1]), strings.TrimSpace(cells[2])
		if requirement == "requirement" {
			continue
		}
		rows++
		if notYet.MatchString(here) || notYet.MatchString(last) {
			out = append(out, fmt.Sprintf("row %q is not met: %s", requirement, here))
		}
		var tests, subtests []string
		for _, match := range quotedName.FindAllStringSubmatch(last, -1) {
			switch name := match[1]; {
			case !testName.MatchString(name):
				subtests = append(subtests, name)
			case n[name] == "":
				out = append(out, fmt.Sprintf("row %q: test %s does not exist", requirement, name))
			default:
				tests = append(tests, name)
			}
		}
		for _, name := range subtests {
			if !n.has(tests, name) {
				out = append(out, fmt.Sprintf("row %q: %q is no scenario, and no subtest of %v", requirement, name, tests))
			}
		}
		switch {
		case last == "none" && here == "":
			out = append(out, fmt.Sprintf("row %q has no test and no reason: say why there is none", requirement))
		case last != "none" && len(quotedName.FindAllString(last, -1)) == 0:
			out = append(out, fmt.Sprintf("row %q names no test: name one, or write none and the reason before it", requirement))
		}
	}
	return out, rows
}

// Each table of a proposal's requirements names tests and scenarios that exist, or a reason, and every requirement is met or has one.
func TestKEP_TheTablesNameTestsThatExist(t *testing.T) {
	known := testsOf(t)
	files, err := filepath.Glob(filepath.Join(root, "docs", "contributing", "kep-*.md"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 2 {
		t.Errorf("there are %d tables: this test does not see them", len(files))
	}
	for _, file := range files {
		name := "docs/contributing/" + filepath.Base(file)
		faults, rows := known.faults(page(t, name))
		for _, fault := range faults {
			t.Errorf("%s: %s", name, fault)
		}
		if rows < 20 {
			t.Errorf("%s has %d rows: this test does not see them", name, rows)
		}
	}
}

func TestKEP_FaultsOfATable(t *testing.T) {
	known := testNames{"TestA": `t.Run("a case"`}
	for row, want := range map[string]string{
		"| a | b | `TestA` |":                                          "",
		"| a | b | `TestA` (`a case`) |":                               "",
		"| a | b | `TestA` (`rule-c1-a-verb-without-its-parameter`) |": "",
		"| a | not possible outside kube-apiserver | none |":           "",
		"| **a** | | |":                "",
		"| a | | none |":               "no reason",
		"| a | b | |":                  "names no test",
		"| a | b | unit tests |":       "names no test",
		"| a | b | `TestB` |":          "test TestB does not exist",
		"| a | b | `TestA` (`x`) |":    "is no scenario, and no subtest",
		"| a | not yet | none |":       "is not met",
		"| a | b | not yet, `TestA` |": "is not met",
		"| a | b |":                    "has 2 cells",
	} {
		faults, _ := known.faults("| requirement | here | test |\n|---|---|---|\n" + row + "\n")
		if got := strings.Join(faults, "; "); (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", row, got, want)
		}
	}
}
