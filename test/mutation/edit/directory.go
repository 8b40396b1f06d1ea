package edit

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// directory is the Go code of one directory, without its test files.
type directory struct {
	// texts and pieces are by file. The pieces lack the semicolons that line breaks stand for.
	texts  Files
	pieces map[string][]piece
	// declarations are by name. A name has several where files of different systems declare it.
	declarations map[string][]declaration
}

// declaration is the part of a file that declares a name, without its comment.
type declaration struct {
	file       string
	start, end int
}

func (t *Tree) directory(name string) (*directory, error) {
	if d := t.directories[name]; d != nil {
		return d, nil
	}
	entries, err := os.ReadDir(filepath.Join(t.root, name))
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("directory %q does not exist: name the one that the code is in", name)
	}
	if err != nil {
		return nil, err
	}
	d := &directory{texts: Files{}, pieces: map[string][]piece{}, declarations: map[string][]declaration{}}
	for _, e := range entries {
		if e.IsDir() || path.Ext(e.Name()) != ".go" || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		if err := d.read(t.root, path.Join(name, e.Name())); err != nil {
			return nil, err
		}
	}
	t.directories[name] = d
	return d, nil
}

func (d *directory) read(root, file string) error {
	text, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		return err
	}
	positions := token.NewFileSet()
	parsed, err := parser.ParseFile(positions, file, text, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	pieces, err := scan(text)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	d.texts[file], d.pieces[file] = text, written(pieces)
	declare := func(name string, node ast.Node) {
		d.declarations[name] = append(d.declarations[name], declaration{
			file: file, start: positions.Position(node.Pos()).Offset, end: positions.Position(node.End()).Offset,
		})
	}
	for _, decl := range parsed.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			declare(functionName(decl), decl)
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				// Without parentheses var, const or type are part of the declaration.
				var node ast.Node = spec
				if !decl.Lparen.IsValid() {
					node = decl
				}
				for _, name := range specNames(spec) {
					declare(name, node)
				}
			}
		}
	}
	return nil
}

// functionName returns the name of a function, or Type.Method.
func functionName(decl *ast.FuncDecl) string {
	if decl.Recv == nil || len(decl.Recv.List) == 0 {
		return decl.Name.Name
	}
	receiver := decl.Recv.List[0].Type
	for {
		switch r := receiver.(type) {
		case *ast.StarExpr:
			receiver = r.X
		case *ast.ParenExpr:
			receiver = r.X
		case *ast.IndexExpr:
			receiver = r.X
		case *ast.IndexListExpr:
			receiver = r.X
		case *ast.Ident:
			return r.Name + "." + decl.Name.Name
		default:
			return decl.Name.Name
		}
	}
}

func specNames(spec ast.Spec) []string {
	var out []string
	switch spec := spec.(type) {
	case *ast.TypeSpec:
		out = append(out, spec.Name.Name)
	case *ast.ValueSpec:
		for _, name := range spec.Names {
			out = append(out, name.Name)
		}
	}
	return out
}

// find returns the matches of the pattern in the declarations of the name.
func (d *directory) find(name string, from pattern) []change {
	var out []change
	for _, at := range d.declarations[name] {
		pieces := d.pieces[at.file]
		first, _ := slices.BinarySearchFunc(pieces, at.start, func(p piece, start int) int { return p.start - start })
		last, _ := slices.BinarySearchFunc(pieces, at.end, func(p piece, end int) int { return p.start - end })
		for _, s := range from(pieces[first:last]) {
			out = append(out, change{file: at.file, start: s.start, end: s.end})
		}
	}
	return out
}

// holders returns the names of the declarations in which the pattern matches, sorted.
func (d *directory) holders(from pattern) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(d.declarations)) {
		if len(d.find(name, from)) > 0 {
			out = append(out, name)
		}
	}
	return out
}

// hint is the end of a message that names up to three declarations; "" for none.
func hint(what string, names []string) string {
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf(" (%s %s)", what, strings.Join(names[:min(len(names), 3)], ", "))
}
