package edit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Edit is one change. Exactly one of In and File is set.
type Edit struct {
	// In names a declaration by its directory, relative to the module's root, and its name: dir/function,
	// dir/Type.Method, or dir/name of a type, variable or constant. Test files are not looked at.
	In string `json:"in,omitempty"`
	// File is a file that is not Go code, relative to the module's root.
	File string `json:"file,omitempty"`
	// From are Go tokens that occur exactly once in the declaration In, or a text that occurs exactly once in File.
	From string `json:"from"`
	// Literal says that From is an exact text within one string literal of the declaration In, as of a CEL expression.
	Literal bool `json:"literal,omitempty"`
	// To is the text that stands in their place. It may be empty.
	To string `json:"to"`
}

// Place is the text that messages use for the place of the edit.
func (e *Edit) Place() string {
	if e.In != "" {
		return e.In
	}
	return e.File
}

// Files are texts by their path, relative to the module's root.
type Files map[string][]byte

// Tree is the code of a module as it is on disk. It reads each directory once, and is for one goroutine.
type Tree struct {
	root        string
	directories map[string]*directory
}

// NewTree returns the tree of the module at root.
func NewTree(root string) *Tree {
	return &Tree{root: root, directories: map[string]*directory{}}
}

// change is an edit with known byte positions.
type change struct {
	file       string
	start, end int
	to         string
}

// Apply returns the files that the edits change, as they are after all of them. Each edit is matched against the tree as
// it is on disk. Nothing is written.
func (t *Tree) Apply(edits ...Edit) (Files, error) {
	var changes []change
	var places []string
	texts := Files{}
	for i := range edits {
		c, text, err := t.locate(&edits[i])
		if err != nil {
			return nil, err
		}
		texts[c.file] = text
		changes = append(changes, c)
		places = append(places, edits[i].Place())
	}
	// From the last to the first, so that no change moves another.
	slices.SortStableFunc(changes, func(a, b change) int { return b.start - a.start })
	last := map[string]int{}
	for _, c := range changes {
		if begin, ok := last[c.file]; ok && c.end > begin {
			return nil, fmt.Errorf("%s: two edits change the same text: make one of them", c.file)
		}
		last[c.file] = c.start
		texts[c.file] = slices.Concat(texts[c.file][:c.start], []byte(c.to), texts[c.file][c.end:])
	}
	for file, text := range texts {
		if path.Ext(file) != ".go" {
			continue
		}
		if _, err := parser.ParseFile(token.NewFileSet(), file, text, parser.SkipObjectResolution); err != nil {
			return nil, fmt.Errorf("%s: is no Go code after the edit: correct to: %w", strings.Join(places, ", "), err)
		}
	}
	return texts, nil
}

func (t *Tree) locate(e *Edit) (change, []byte, error) {
	switch {
	case (e.In == "") == (e.File == ""):
		return change{}, nil, fmt.Errorf("in %q and file %q: name either a declaration or a file", e.In, e.File)
	case e.From == "":
		return change{}, nil, fmt.Errorf("%s: from is empty: say what to change", e.Place())
	case e.In != "":
		return t.inDeclaration(e)
	case path.Ext(e.File) == ".go":
		return change{}, nil, fmt.Errorf("file %q is Go code: name the declaration by in", e.File)
	}
	text, err := os.ReadFile(filepath.Join(t.root, e.File))
	if err != nil {
		return change{}, nil, err
	}
	if n := bytes.Count(text, []byte(e.From)); n != 1 {
		return change{}, nil, fmt.Errorf("%s: from %q occurs %d times: make it occur exactly once", e.File, e.From, n)
	}
	if e.From == e.To {
		return change{}, nil, fmt.Errorf("%s: from %q is to: change something", e.File, e.From)
	}
	start := bytes.Index(text, []byte(e.From))
	return change{file: e.File, start: start, end: start + len(e.From), to: e.To}, text, nil
}

func (t *Tree) inDeclaration(e *Edit) (change, []byte, error) {
	dir, name := path.Split(e.In)
	if dir = path.Clean(dir); dir == "." || name == "" {
		return change{}, nil, fmt.Errorf("in %q names no declaration: write directory/function or directory/Type.Method", e.In)
	}
	from, err := e.pattern()
	if err != nil {
		return change{}, nil, fmt.Errorf("%s: %w", e.In, err)
	}
	d, err := t.directory(dir)
	if err != nil {
		return change{}, nil, fmt.Errorf("in %q: %w", e.In, err)
	}
	holders := d.holders(from)
	if len(d.declarations[name]) == 0 {
		return change{}, nil, fmt.Errorf("%s is not declared: name what %s declares%s", e.In, dir, hint("from matches in", holders))
	}
	found := d.find(name, from)
	if len(found) != 1 {
		others := slices.DeleteFunc(holders, func(holder string) bool { return holder == name })
		return change{}, nil, fmt.Errorf("%s: from %q matches %d times: make it match exactly once%s", e.In, e.From, len(found), hint("it also matches in", others))
	}
	c := found[0]
	c.to = e.To
	return c, d.texts[c.file], nil
}

// pattern returns the pattern that finds From in a declaration.
func (e *Edit) pattern() (pattern, error) {
	if e.Literal {
		if e.From == e.To {
			return nil, fmt.Errorf("from %q is to: change something", e.From)
		}
		return inLiteral(e.From), nil
	}
	from, err := scan([]byte(e.From))
	if err != nil {
		return nil, fmt.Errorf("from %q: %w: write whole Go tokens", e.From, err)
	}
	to, err := scan([]byte(e.To))
	if err != nil {
		return nil, fmt.Errorf("to %q: %w: write whole Go tokens", e.To, err)
	}
	switch {
	case len(written(from)) == 0:
		return nil, fmt.Errorf("from %q has no Go token: say what to change", e.From)
	case same(from, to):
		return nil, fmt.Errorf("from %q has the tokens of to: change something", e.From)
	}
	return sequence(written(from)), nil
}

// Overlay writes the files into dir, with a list that makes go build -overlay read them in place of those of root,
// and returns the path of the list.
func (f Files) Overlay(root, dir string) (string, error) {
	replace := map[string]string{}
	var errs []error
	for file, text := range f {
		copied := filepath.Join(dir, strings.ReplaceAll(file, "/", "_"))
		replace[filepath.Join(root, file)] = copied
		errs = append(errs, os.WriteFile(copied, text, 0o600))
	}
	raw, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	list := filepath.Join(dir, "overlay.json")
	return list, errors.Join(append(errs, err, os.WriteFile(list, raw, 0o600))...)
}
