package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// tag is the build tag of the test files that need the control plane.
const tag = "integration"

// pkg is a package of the module that has tests.
type pkg struct {
	// path begins with "./", as on the command line.
	path string
	// cluster means that tests of it speak to a control plane, and unit that it has tests that do not.
	cluster, unit bool
	// concurrent means that code of it, tests included, starts goroutines or is made for use by several.
	concurrent bool
	// tests are the tests, and short those of them that draw fewer cases with -short.
	tests, short []string

	// calls has the names that each function uses, and asks those functions that ask for -short.
	calls map[string][]string
	asks  map[string]bool
}

// readPackages returns the packages of the module in the working directory that have tests.
func readPackages(ctx context.Context) ([]pkg, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-tags", tag, "-json=Dir,ImportPath,Module,GoFiles,TestGoFiles,XTestGoFiles", "./...")
	out, err := cmd.Output()
	if err != nil {
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			return nil, fmt.Errorf("go list: %w: %s", err, exit.Stderr)
		}
		return nil, fmt.Errorf("go list: %w", err)
	}
	var packages []pkg
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var listed struct {
			Dir, ImportPath                    string
			Module                             struct{ Path string }
			GoFiles, TestGoFiles, XTestGoFiles []string
		}
		if err := decoder.Decode(&listed); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		p := pkg{calls: map[string][]string{}, asks: map[string]bool{}, path: "./" + strings.TrimPrefix(strings.TrimPrefix(listed.ImportPath, listed.Module.Path), "/")}
		for _, name := range slices.Concat(listed.GoFiles, listed.TestGoFiles, listed.XTestGoFiles) {
			if err := p.read(filepath.Join(listed.Dir, name)); err != nil {
				return nil, err
			}
		}
		if len(p.tests) > 0 {
			p.findShort()
			packages = append(packages, p)
		}
	}
}

// read adds what a file says of its package.
func (p *pkg) read(path string) error {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	isTagged := needsTag(file)
	for _, spec := range file.Imports {
		switch name, _ := strconv.Unquote(spec.Path.Value); name {
		case "sync", "sync/atomic", "net/http/httptest", "golang.org/x/sync/errgroup":
			p.concurrent = true
		}
	}
	for _, declaration := range file.Decls {
		f, ok := declaration.(*ast.FuncDecl)
		if !ok || f.Body == nil {
			continue
		}
		p.concurrent = p.concurrent || contains(f, isStart)
		if strings.HasSuffix(path, "_test.go") && f.Recv == nil && isTest(f.Name.Name) {
			p.tests = append(p.tests, f.Name.Name)
			p.cluster, p.unit = p.cluster || isTagged, p.unit || !isTagged
		}
		if strings.HasSuffix(path, "_test.go") {
			ast.Inspect(f, func(n ast.Node) bool {
				if name, ok := n.(*ast.Ident); ok {
					p.calls[f.Name.Name] = append(p.calls[f.Name.Name], name.Name)
				}
				return true
			})
			p.asks[f.Name.Name] = p.asks[f.Name.Name] || contains(f, isShort)
		}
	}
	return nil
}

// findShort finds the tests that ask for -short themselves, or through functions of their package.
func (p *pkg) findShort() {
	for grows := true; grows; {
		grows = false
		for name, calls := range p.calls {
			if !p.asks[name] && slices.ContainsFunc(calls, func(called string) bool { return p.asks[called] }) {
				p.asks[name], grows = true, true
			}
		}
	}
	for _, test := range p.tests {
		if p.asks[test] {
			p.short = append(p.short, test)
		}
	}
}

// isTest reports whether go test runs the function in a package of its own.
func isTest(name string) bool {
	return strings.HasPrefix(name, "Test") && name != "TestMain" || strings.HasPrefix(name, "Example") || strings.HasPrefix(name, "Fuzz")
}

// needsTag reports whether the file is compiled with the tag only.
func needsTag(file *ast.File) bool {
	for _, group := range file.Comments {
		for _, comment := range group.List {
			if comment.Pos() < file.Package && comment.Text == "//go:build "+tag {
				return true
			}
		}
	}
	return false
}

func contains(node ast.Node, is func(ast.Node) bool) bool {
	found := false
	ast.Inspect(node, func(n ast.Node) bool {
		found = found || n != nil && is(n)
		return !found
	})
	return found
}

// isStart reports whether a node starts a goroutine: a go statement, or a method that is called Go or Parallel.
func isStart(node ast.Node) bool {
	if _, ok := node.(*ast.GoStmt); ok {
		return true
	}
	selector, ok := node.(*ast.SelectorExpr)
	return ok && (selector.Sel.Name == "Go" || selector.Sel.Name == "Parallel")
}

func isShort(node ast.Node) bool {
	selector, ok := node.(*ast.SelectorExpr)
	if !ok || selector.Sel.Name != "Short" {
		return false
	}
	of, ok := selector.X.(*ast.Ident)
	return ok && of.Name == "testing"
}
