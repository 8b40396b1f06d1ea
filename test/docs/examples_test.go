package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// goGuide shows the examples of these packages, and links each.
const goGuide = "docs/guide/go.md"

var (
	goPackages = []string{"verbs", "schema/compile", "fieldperm", "admission"}
	goFence    = regexp.MustCompile("(?ms)^```go\n(.*?)^```$")
	// shownExample is a block of code with the link to its source above it.
	shownExample = regexp.MustCompile("(?ms)\\[`([^`]+)`\\]\\(\\.\\./\\.\\./(\\S+_test\\.go)\\)[^\n]*\n(?:[^\n`]+\n)*\n```go\n(.*?)^```$")
)

// examples returns the code of each example by its file and its name: the body of the function, or the whole file after the imports if the
// file contains only one example.
func examples(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, pkg := range goPackages {
		files, err := filepath.Glob(filepath.Join(root, pkg, "example*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			name := pkg + "/" + filepath.Base(file)
			source := page(t, name)
			positions := token.NewFileSet()
			parsed, err := parser.ParseFile(positions, name, source, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			if filepath.Base(file) != "example_test.go" {
				last := parsed.Imports[len(parsed.Imports)-1]
				_, text, _ := strings.Cut(source[positions.Position(last.End()).Offset:], "\n)\n")
				out[name+" "+filepath.Base(file)] = strings.TrimLeft(text, "\n")
				continue
			}
			for _, declaration := range parsed.Decls {
				if function, ok := declaration.(*ast.FuncDecl); ok && strings.HasPrefix(function.Name.Name, "Example") {
					body := source[positions.Position(function.Body.Lbrace).Offset+2 : positions.Position(function.Body.Rbrace).Offset]
					out[name+" "+function.Name.Name] = strings.ReplaceAll(strings.TrimPrefix(body, "\t"), "\n\t", "\n")
				}
			}
		}
	}
	return out
}

func TestGoGuide_ShowsEveryExampleAsItIsTested(t *testing.T) {
	text := page(t, goGuide)
	want := examples(t)
	if len(want) < 6 {
		t.Fatalf("there are %d examples only", len(want))
	}
	shown := shownExample.FindAllStringSubmatch(text, -1)
	for _, match := range shown {
		key := match[2] + " " + match[1]
		code, ok := want[key]
		delete(want, key)
		if !ok {
			t.Errorf("%s: %s has no example %q, or it is shown twice", goGuide, match[2], match[1])
		} else if code != match[3] {
			t.Errorf("%s: %s is shown as\n%s\nand tested as\n%s", goGuide, key, match[3], code)
		}
	}
	for key := range want {
		t.Errorf("%s: does not show %s", goGuide, key)
	}
	if all := goFence.FindAllString(text, -1); len(all) != len(shown) {
		t.Errorf("%s: %d of %d blocks of Go are tested: write a link to the example above each", goGuide, len(shown), len(all))
	}
	for _, pkg := range goPackages {
		if !strings.Contains(text, "(../../"+pkg+"/doc.go)") {
			t.Errorf("%s: does not link %s/doc.go", goGuide, pkg)
		}
	}
}
