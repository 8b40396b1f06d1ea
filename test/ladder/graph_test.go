package ladder

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the package graph in docs/contributing/structure.md")

// structurePage has the graph between two marks.
const (
	structurePage = "docs/contributing/structure.md"
	graphBegin    = "<!-- begin: package graph, go test ./test/ladder -run Graph -update -->\n"
	graphEnd      = "<!-- end: package graph -->\n"
)

// TestLadder_TheGraphEqualsGoList compares the package graph of the documentation with go list.
func TestLadder_TheGraphEqualsGoList(t *testing.T) {
	path := filepath.Join(root, structurePage)
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(page), graphBegin)
	got, after, ends := strings.Cut(rest, graphEnd)
	if !begins || !ends {
		t.Fatalf("%s has no graph between %q and %q", structurePage, graphBegin, graphEnd)
	}
	want := mermaid(layers, imports(t))
	if got == want {
		return
	}
	if !*update {
		t.Fatalf("%s: the package graph is out of date: run go test ./test/ladder -run Graph -update", structurePage)
	}
	if err := os.WriteFile(path, []byte(before+graphBegin+want+graphEnd+after), 0o644); err != nil { //nolint:gosec // The page is public.
		t.Fatal(err)
	}
}

// TestLadder_TheGraphLeavesOutTransitiveImports: an import that other imports imply is not drawn, and no test is.
func TestLadder_TheGraphLeavesOutTransitiveImports(t *testing.T) {
	ladder := []layer{{name: "low", packages: []string{"a"}}, {name: "middle", packages: []string{"b"}}, {name: "high", packages: []string{"c", "test/d"}}}
	got := mermaid(ladder, map[string][]string{"a": {"fmt"}, "b": {"a"}, "c": {"a", "b"}, "test/d": {"c"}})
	for text, want := range map[string]bool{`c --> b`: true, `b --> a`: true, `c --> a`: false, `test/d`: false, `subgraph middle`: true} {
		if strings.Contains(got, text) != want {
			t.Errorf("%q is in the graph: %t, want %t:\n%s", text, !want, want, got)
		}
	}
}

// TestLadder_TheWalkOfARequestNamesExistingFunctions: each function of the page is declared in the linked file.
func TestLadder_TheWalkOfARequestNamesExistingFunctions(t *testing.T) {
	path := filepath.Join(root, structurePage)
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	links := regexp.MustCompile("\\[`([A-Za-z.]+)`\\]\\(([^)]+\\.go)\\)").FindAllStringSubmatch(string(page), -1)
	if len(links) < 10 {
		t.Fatalf("%s names %d functions: this test checks nothing", structurePage, len(links))
	}
	for _, link := range links {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(filepath.Dir(path), link[2]), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Error(err)
			continue
		}
		if !slices.ContainsFunc(file.Decls, func(d ast.Decl) bool { return declares(d, link[1]) }) {
			t.Errorf("%s: %s is not declared in %s: correct the link", structurePage, link[1], link[2])
		}
	}
}

// declares reports whether a declaration declares a function, or a Type.Method.
func declares(d ast.Decl, name string) bool {
	f, ok := d.(*ast.FuncDecl)
	if !ok {
		return false
	}
	receiver, method, isMethod := strings.Cut(name, ".")
	if !isMethod {
		return f.Recv == nil && f.Name.Name == name
	}
	if f.Recv == nil || f.Name.Name != method {
		return false
	}
	of := f.Recv.List[0].Type
	if pointer, ok := of.(*ast.StarExpr); ok {
		of = pointer.X
	}
	ident, ok := of.(*ast.Ident)
	return ok && ident.Name == receiver
}

// mermaid draws the imports between the packages that ship, without imports that others imply.
func mermaid(layers []layer, imports map[string][]string) string {
	var out strings.Builder
	out.WriteString("```mermaid\ngraph TD\n")
	ours := map[string]bool{}
	for _, l := range slices.Backward(layers) {
		shipped := slices.DeleteFunc(slices.Sorted(slices.Values(l.packages)), isTest)
		if len(shipped) == 0 {
			continue
		}
		fmt.Fprintf(&out, "  subgraph %s\n", node(l.name))
		for _, pkg := range shipped {
			ours[pkg] = true
			fmt.Fprintf(&out, "    %s[\"%s\"]\n", node(pkg), pkg)
		}
		out.WriteString("  end\n")
	}
	for _, l := range slices.Backward(layers) {
		for _, pkg := range slices.Sorted(slices.Values(l.packages)) {
			if !ours[pkg] {
				continue
			}
			for _, imported := range slices.Sorted(slices.Values(imports[pkg])) {
				if ours[imported] && !implied(pkg, imported, imports) {
					fmt.Fprintf(&out, "  %s --> %s\n", node(pkg), node(imported))
				}
			}
		}
	}
	out.WriteString("```\n")
	return out.String()
}

// implied reports whether a package reaches another through a third one.
func implied(pkg, imported string, imports map[string][]string) bool {
	return slices.ContainsFunc(imports[pkg], func(other string) bool { return other != imported && reaches(other, imported, imports) })
}

func reaches(pkg, other string, imports map[string][]string) bool {
	return slices.ContainsFunc(imports[pkg], func(next string) bool { return next == other || reaches(next, other, imports) })
}

func isTest(pkg string) bool { return strings.HasPrefix(pkg, "test/") }

// node converts a package name to a node name of mermaid.
func node(pkg string) string { return strings.NewReplacer("/", "_", "-", "_", " ", "_").Replace(pkg) }
