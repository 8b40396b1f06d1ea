package convention

import (
	"strings"
	"testing"
)

func TestRegistry_Decode(t *testing.T) {
	r := builtIn(t)
	more, errs := r.Decode("registry.yaml", []byte("# ours\napiVersion: fieldperm.dev/v1alpha1\nkind: VerbRegistry\nverbs:\n- {verb: stage, meaning: where an object runs, owner: platform team}\n- {verb: example.com/budget, meaning: money, owner: example.com}\n"))
	if len(errs) > 0 || !more.Has("stage") || !more.Has("example.com/budget") || !more.Has("scale") || r.Has("stage") {
		t.Fatal(errs)
	}
	if _, errs := r.Decode("r.json", []byte(`{"apiVersion": "fieldperm.dev/v1alpha1", "kind": "VerbRegistry", "verbs": [{"verb": "stage", "meaning": "m", "owner": "o"}]}`)); len(errs) > 0 {
		t.Error(errs)
	}
	const head = "apiVersion: fieldperm.dev/v1alpha1\nkind: VerbRegistry\n"
	for file, want := range map[string]string{
		"":                                   "r.yaml: is empty: ",
		"a: [":                               "r.yaml: is no YAML or JSON: ",
		"[]":                                 "r.yaml:1:1: is no object: ",
		"apiVersion: v1\nkind: VerbRegistry": `r.yaml:1:13: apiVersion is not "fieldperm.dev/v1alpha1"`,
		"apiVersion: fieldperm.dev/v1alpha1": `r.yaml:1:1: kind is not "VerbRegistry"`,
		head:                                 "r.yaml:1:1: verbs is no list, or empty",
		head + "verbs: []":                   "verbs is no list, or empty",
		head + "verb: x":                     `r.yaml:3:1: key "verb" is unknown`,
		head + "verbs:\n- {verb: a}":         "r.yaml:4:3: meaning is missing",
		head + "verbs:\n- {verb: A, meaning: m, owner: o}":                                                             `r.yaml:4:10: verb "A" is not lowerCamelCase: use "a"`,
		head + "verbs:\n- {verb: scale, meaning: m, owner: o}":                                                         "is a verb of the built-in catalogue",
		head + "verbs:\n- {verb: a, meaning: m, owner: o, colour: red}":                                                `key "colour" is unknown`,
		head + "verbs:\n- {verb: a, meaning: m, owner: o}\n- {verb: a, meaning: m, owner: o}":                          `verb "a" stands twice, first in line 4`,
		head + "kind: VerbRegistry\nverbs: [{verb: a, meaning: m, owner: o}]":                                          "",
		head + "verbs:\n- &a {verb: a, meaning: m, owner: o}\n- *a":                                                    `stands twice`,
		head + "verbs: [{verb: a, meaning: m, owner: o}]\n---\n" + head + "verbs: [{verb: b, meaning: m, owner: o}]\n": "-",
	} {
		_, errs := r.Decode("r.yaml", []byte(file))
		var texts []string
		for _, err := range errs {
			texts = append(texts, err.Error())
		}
		got := strings.Join(texts, "\n")
		if want == "-" && got != "" || want != "-" && (got == "" || !strings.Contains(got, want)) {
			t.Errorf("%q: got %q, want %q", file, got, want)
		}
	}
}
