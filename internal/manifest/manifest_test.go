package manifest

import (
	"reflect"
	"strings"
	"testing"
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
		"YAML on the dashes":    {"--- {a: 1}\n--- {b: 2}\n", []string{`{"a":1}`, `{"b":2}`}},
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
		"after the last":     {"a: 1\n---\n[b]\n{c: 1}\n", "document 2 is no YAML"},
		"its line":           {"a: 1\n---\nb: 1\nb: 2\n", "line 4: "},
		"JSON key on dashes": {"---\n" + `{"a":1,"a":2}`, `key "a" already set`},
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

// Split goes on after a faulty document, so that its caller can report every fault of a file.
func TestSplit(t *testing.T) {
	documents, err := Split([]byte("a: 1\n---\nb: [\n---\nnull\n--- # empty\n---\nc: 1\n"))
	if err != nil || len(documents) != 4 {
		t.Fatalf("got %v %v, want 4 documents", documents, err)
	}
	for i, want := range []string{`{"a":1}`, "", "null", `{"c":1}`} {
		if got := documents[i]; string(got.JSON) != want || (got.Err != nil) != (want == "") {
			t.Errorf("document %d: got %q %v, want %q", i+1, got.JSON, got.Err, want)
		}
	}
}

func TestSplitRefuses(t *testing.T) {
	for name, test := range map[string]struct{ raw, want string }{
		"no JSON after a brace": {"{\n\"a\": 1,\n}", "line 3: "},
		"invalid UTF-8":         {"a: \xff\n", ErrEncoding.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Split([]byte(test.raw)); err == nil || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("got %v, want it to start with %q", err, test.want)
			}
		})
	}
}

func TestSplit_KeepsTheTextAndItsPlace(t *testing.T) {
	for name, file := range map[string]string{
		"YAML": "# head\n---\na: 1\n--- # second\nb: 2\n---\n# nothing\n---\nc: 3\n",
		"JSON": "{\"a\": 1}\n\n{\"b\":\n 2}\n{\"c\": 3}\n",
	} {
		documents, err := Split([]byte(file))
		if err != nil || len(documents) != 3 {
			t.Fatalf("%s: %v %v", name, documents, err)
		}
		lines := strings.SplitAfter(file, "\n")
		for i, d := range documents {
			rest := strings.Join(lines[d.Line:], "")
			key := string("abc"[i])
			if !strings.Contains(string(d.Text), key) {
				t.Errorf("%s: document %d is %q", name, i, d.Text)
			}
			// A separator is blank in the text, so only its line counts.
			at := strings.Count(string(d.Text[:strings.Index(string(d.Text), key)]), "\n")
			if got := strings.SplitAfter(rest, "\n")[at]; !strings.Contains(got, key) {
				t.Errorf("%s: document %d begins at line %d, where the key is not: %q", name, i, d.Line, got)
			}
		}
	}
}
