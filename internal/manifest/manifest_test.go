package manifest

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/schema/load"
)

func TestDocuments(t *testing.T) {
	for name, test := range map[string]struct {
		raw  string
		want []string
	}{
		"empty":                 {"", nil},
		"comments only":         {"# one\n---\n# two\n", nil},
		"YAML":                  {"a: 1\n", []string{`{"a":1}`}},
		"YAML documents":        {"---\na: 1\n---\n# nothing\n---\nb: 2\n", []string{`{"a":1}`, `{"b":2}`}},
		"YAML with a brace":     {"{a: 1}\n---\n{b: 2}\n", []string{`{"a":1}`, `{"b":2}`}},
		"JSON is kept as it is": {`{"a": 1.50, "a": 2}`, []string{`{"a": 1.50, "a": 2}`}},
		"JSON documents":        {`{"a":1}` + "\n" + `{"b":2}`, []string{`{"a":1}`, `{"b":2}`}},
		"JSON between dashes":   {`{"a":1}` + "\n---\n" + `{"b":2}`, []string{`{"a":1}`, `{"b":2}`}},
	} {
		t.Run(name, func(t *testing.T) {
			documents, err := Documents([]byte(test.raw))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, d := range documents {
				got = append(got, string(d))
			}
			if !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestDocumentsRefuses(t *testing.T) {
	for name, test := range map[string]struct{ raw, want string }{
		"JSON cut off":       {`{"a":`, "document 1 is no JSON"},
		"second JSON":        {`{"a":1} {"b"`, "document 2 is no JSON"},
		"YAML cut off":       {"a: [", "document 1 is no YAML"},
		"more on the line":   {"{a: 1} {b: 2}", "document 1 is no JSON"},
		"more below":         {"[a]\n{b: 2}\n", "document 1 is no YAML"},
		"second YAML":        {"a: 1\n---\nb: [", "document 2 is no YAML"},
		"duplicate YAML key": {"a: 1\na: 2\n", `key "a" already set`},
		"deep JSON":          {strings.Repeat(`{"a":`, 100_000), "document 1 is no JSON"},
		"deep YAML":          {strings.Repeat("[", 100_000), "document 1 is no YAML"},
		"invalid UTF-8":      {"a: \xff\xfe\n", "is not UTF-8"},
		"invalid UTF-8 JSON": {`{"a":"` + "\xff" + `"}`, "is not UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Documents([]byte(test.raw)); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q in it", err, test.want)
			}
		})
	}
}

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	var want []string
	for i, file := range []string{"a.yaml", "b.yml", "c.json", "README.md", "sub/d.yaml"} {
		path := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, fmt.Append(nil, i), 0o600); err != nil {
			t.Fatal(err)
		}
		if i < 3 {
			want = append(want, path)
		}
	}
	if got, err := load.Paths(dir); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("directory: got %q %v, want %q", got, err, want)
	}
	readme := filepath.Join(dir, "README.md")
	if got, err := load.Paths(readme); err != nil || !reflect.DeepEqual(got, []string{readme}) {
		t.Errorf("file that is named: got %q %v", got, err)
	}
	if got, err := load.Paths(filepath.Join(dir, "none")); err == nil {
		t.Errorf("missing: got %q, want an error", got)
	}
}
