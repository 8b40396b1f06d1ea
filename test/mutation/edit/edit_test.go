package edit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var code = map[string]string{
	"a/walk.go": `package a

import "fmt"

const (
	first  = iota // the first
	second, third = iota + 1, 4
)

type walker struct{ depth int }

type list[T any] []T

// add is the sum.
func add(x, y int) int {
	return x + y
}

func (w *walker) walk(n int) int {
	for i := range n { // each
		w.depth += i
		w.depth++
	}
	fmt.Println(w.depth, "one and one", ` + "`two\nand two`" + `)
	return w.depth
}

func (l list[T]) size() int { return len(l) }

var limit = add(first, third)
`,
	"a/unix.go":      "//go:build unix\n\npackage a\n\nfunc name() string { return \"unix\" }\n",
	"a/other.go":     "//go:build !unix\n\npackage a\n\nfunc name() string { return \"other\" }\n",
	"a/walk_test.go": "package a\n\nfunc add3(x int) int { return x + 3 }\n",
	"b.yaml":         "one: 1\ntwo: 1\n",
}

func tree(t *testing.T) *Tree {
	t.Helper()
	dir := t.TempDir()
	for name, text := range code {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return NewTree(dir)
}

func TestApply_ChangesTheNamedDeclaration(t *testing.T) {
	for name, c := range map[string]struct {
		edit      Edit
		file      string
		was, then string
	}{
		"a function":               {Edit{In: "a/add", From: "x + y", To: "x - y"}, "a/walk.go", "return x + y", "return x - y"},
		"a method":                 {Edit{In: "a/walker.walk", From: "return w.depth", To: "return 0"}, "a/walk.go", "return w.depth", "return 0"},
		"a method of a pattern":    {Edit{In: "a/list.size", From: "len(l)", To: "cap(l)"}, "a/walk.go", "len(l)", "cap(l)"},
		"a type":                   {Edit{In: "a/walker", From: "int", To: "int8"}, "a/walk.go", "depth int", "depth int8"},
		"a variable":               {Edit{In: "a/limit", From: "var limit =", To: "var limit = 1 +"}, "a/walk.go", "limit = ", "limit = 1 + "},
		"one of several constants": {Edit{In: "a/third", From: "4", To: "5"}, "a/walk.go", "1, 4", "1, 5"},
		"one of several systems":   {Edit{In: "a/name", From: `"other"`, To: `""`}, "a/other.go", `"other"`, `""`},
		"another layout":           {Edit{In: "a/walker.walk", From: "for i:=range n {\n\n w.depth+=i /* here */\n", To: "for range n {"}, "a/walk.go", "for i := range n { // each\n\t\tw.depth += i", "for range n {"},
		"a statement goes":         {Edit{In: "a/walker.walk", From: "w.depth++"}, "a/walk.go", "w.depth++", ""},
		"a part of a literal":      {Edit{In: "a/walker.walk", Literal: true, From: "two\nand", To: "three\nand"}, "a/walk.go", "`two\nand", "`three\nand"},
		"another file":             {Edit{File: "b.yaml", From: "two: 1", To: "two: 2"}, "b.yaml", "two: 1", "two: 2"},
	} {
		files, err := tree(t).Apply(c.edit)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want := strings.Replace(code[c.file], c.was, c.then, 1)
		if len(files) != 1 || string(files[c.file]) != want || want == code[c.file] {
			t.Errorf("%s: %q", name, files)
		}
	}
}

func TestApply_SeveralEditsMatchTheUnchangedTree(t *testing.T) {
	files, err := tree(t).Apply(
		Edit{In: "a/add", From: "x + y", To: "x + y + y"},
		Edit{In: "a/walker.walk", From: "return w.depth", To: "return 0"},
		Edit{In: "a/add", From: "int {", To: "(z int) {"},
		Edit{File: "b.yaml", From: "one: 1", To: "one: 2"},
	)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.NewReplacer("x + y", "x + y + y", "return w.depth", "return 0", "y int) int {", "y int) (z int) {").Replace(code["a/walk.go"])
	if got := string(files["a/walk.go"]); got != want || string(files["b.yaml"]) != "one: 2\ntwo: 1\n" || len(files) != 2 {
		t.Errorf("%q", files)
	}
}

func TestApply_Refuses(t *testing.T) {
	for want, e := range map[string]Edit{
		`in "" and file "": name either`:                                        {From: "x", To: "y"},
		`in "a/add" and file "b.yaml": name either`:                             {In: "a/add", File: "b.yaml", From: "x", To: "y"},
		`a/add: from is empty: say`:                                             {In: "a/add", To: "y"},
		`a/add: from "// add" has no Go token: say`:                             {In: "a/add", From: "// add", To: "y"},
		`a/add: from "x +  y" has the tokens of to: change`:                     {In: "a/add", From: "x +  y", To: "x+y"},
		`a/add: from "\"x": string literal not terminated: write whole`:         {In: "a/add", From: `"x`, To: "y"},
		`a/add: to "\"x": string literal not terminated: write whole`:           {In: "a/add", From: "x", To: `"x`},
		`in "add" names no declaration: write`:                                  {In: "add", From: "x", To: "y"},
		`in "a/" names no declaration: write`:                                   {In: "a/", From: "x", To: "y"},
		`in "c/add": directory "c" does not exist: name`:                        {In: "c/add", From: "x", To: "y"},
		`a/sub is not declared: name what a declares (from matches in add)`:     {In: "a/sub", From: "x + y", To: "x"},
		`a/add3 is not declared: name what a declares`:                          {In: "a/add3", From: "x + 3", To: "x"},
		`a/add: from "w.depth++" matches 0 times: make it match exactly once (`: {In: "a/add", From: "w.depth++", To: "w.depth--"},
		`a/add: from "x" matches 2 times: make it match exactly once`:           {In: "a/add", From: "x", To: "y"},
		`a/name: from "return" matches 2 times`:                                 {In: "a/name", From: "return", To: "return \"\" +"},
		`a/walker.walk: from "one" matches 2 times`:                             {In: "a/walker.walk", Literal: true, From: "one", To: "two"},
		`a/walker.walk: from "depth" matches 0 times`:                           {In: "a/walker.walk", Literal: true, From: "depth", To: "two"},
		`a/add: from "one" is to: change`:                                       {In: "a/add", Literal: true, From: "one", To: "one"},
		`a/add: is no Go code after the edit: correct to`:                       {In: "a/add", From: "x + y", To: "x +"},
		`b.yaml: from "1" occurs 2 times: make it occur exactly once`:           {File: "b.yaml", From: "1", To: "2"},
		`b.yaml: from "3" occurs 0 times: make it occur exactly once`:           {File: "b.yaml", From: "3", To: "2"},
		`b.yaml: from "one" is to: change`:                                      {File: "b.yaml", From: "one", To: "one"},
		`file "a/walk.go" is Go code: name the declaration by in`:               {File: "a/walk.go", From: "x + y", To: "x"},
		`no such file`: {File: "c.yaml", From: "x", To: "y"},
	} {
		if files, err := tree(t).Apply(e); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %q, %v; want %q", e, files, err, want)
		}
	}
	_, err := tree(t).Apply(Edit{In: "a/add", From: "x + y", To: "x"}, Edit{In: "a/add", From: "return x", To: "return y"})
	if err == nil || !strings.Contains(err.Error(), "two edits change the same text: make one of them") {
		t.Errorf("got %v", err)
	}
}

func TestOverlay_NamesEachFileOnce(t *testing.T) {
	dir := t.TempDir()
	list, err := Files{"a/x.go": []byte("1"), "b/x.go": []byte("2")}.Overlay("/root", dir)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 3 {
		t.Errorf("%v, %v", entries, err)
	}
	raw, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string]string{"a_x.go": "1", "b_x.go": "2"} {
		if got, err := os.ReadFile(filepath.Join(dir, file)); err != nil || string(got) != text || !strings.Contains(string(raw), filepath.Join(dir, file)) {
			t.Errorf("%s: %q, %v; in %s", file, got, err, raw)
		}
	}
}
