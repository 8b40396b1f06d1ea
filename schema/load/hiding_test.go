package load

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/fieldperm"
)

// TestC2_AnotherSpellingHidesNoGuardedValue: encoding/json reads the names of fields in every case, in the order of the object, so that "liſt" after "list"
// takes its place. U+017F is another s. A change of one of the two needs the verbs of the barriers in the other.
func TestC2_AnotherSpellingHidesNoGuardedValue(t *testing.T) {
	const (
		inSettings = "{path: .spec.settings.limits.max, verb: example.com/max, excluded: true}"
		inList     = "{path: '.spec.list[*].secret', verb: example.com/secret, excluded: true}"
		onList     = "{path: '.spec.list[*]', verb: example.com/secret, excludedWhen: 'has(self.secret)'}"
		settings   = `"settings":{"limits":{"max":1},"other":1}`
		list       = `"list":[{"secret":"a"}]`
	)
	for name, c := range map[string]struct {
		entry, old, new string
		barred          bool
	}{
		"a name above":                      {inSettings, settings, settings + `,"settingſ":null`, true},
		"a name above, with the first case": {inSettings, settings, `"Settings":{},` + settings, true},
		"a name below another":              {inSettings, settings, `"settings":{"limitſ":null,"limits":{"max":1},"other":1}`, true},
		"a list":                            {inList, list, list + `,"liſt":[]`, true},
		"a condition on a hidden item":      {onList, list + `,"liſt":[]`, list, true},
		"a condition on any item":           {onList, `"list":[{"a":"b"}],"liſt":[]`, `"list":[{"a":"b"}]`, true},
		"one that goes":                     {inSettings, settings + `,"settingſ":null`, settings, true},
		"one that changes":                  {inSettings, settings + `,"settingſ":{"a":1}`, settings + `,"settingſ":{"a":2}`, true},
		"one of three":                      {inSettings, settings + `,"Settings":1,"SETTINGS":2`, settings + `,"Settings":1,"SETTINGS":3`, true},
		"two of three":                      {inSettings, settings + `,"Settings":1,"SETTINGS":2`, settings + `,"Settings":3,"SETTINGS":3`, true},
		"one whose order of names changes":  {inSettings, settings + `,"settingſ":{"a":1,"b":2}`, settings + `,"settingſ":{"b":2,"a":1}`, false},
		"two whose order changes":           {inSettings, settings + `,"Settings":1`, `"Settings":1,` + settings, false},
		"a value that a condition forbids":  {`{path: '.spec.items[*].secret', verb: example.com/x, excludedWhen: "self == 'host'"}`, `"items":{"x":{"secret":"host"}},"Items":null`, `"items":{"x":{"secret":"host"}}`, true},
		"in a list without keys":            {"{path: '.spec.rows[*].a.b', verb: example.com/x, excluded: true}", `"rows":[{"a":{"b":1}}]`, `"rows":[{"a":{"b":1},"A":null}]`, true},
		"nothing guarded":                   {inSettings, settings + `,"free":1`, settings + `,"free":1,"Free":2`, false},
		"the guarded part is not there":     {inSettings, `"settings":{"other":1}`, `"settings":{"other":1},"Settings":null`, false},
		"the only spelling":                 {inSettings, settings, strings.Replace(settings, `"other":1`, `"other":2`, 1), false},
		"another field":                     {inSettings, settings, settings + `,"setting":null`, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := compileWorkloads(t, unknownVaults(), permissionSchema("a", "example.com", "Vault", c.entry))
			object := func(spec string) string {
				return `{"apiVersion":"example.com/v1","kind":"Vault","metadata":{"name":"a"},"spec":{` + spec + `}}`
			}
			if got := isBarred(t, s, gvk("example.com", "v1", "Vault"), object(c.old), object(c.new)); got != c.barred {
				t.Errorf("barred %t, want %t", got, c.barred)
			}
		})
	}
}

// TestC8_AnotherSpellingHidesNoPartOfPods: a controller that decodes the template makes Pods without what is hidden.
func TestC8_AnotherSpellingHidesNoPartOfPods(t *testing.T) {
	const template = `"metadata":{"labels":{"plain":"a"}},"spec":{"containers":[{"name":"web","securityContext":{"runAsNonRoot":true}}],"initContainers":[{"name":"guard"}],"nodeSelector":{"pin":"a"}}`
	for path, more := range map[string][2]string{
		".spec.initContainers[*]":             {`"initContainers"`, `"initContainerſ":[],"initContainers"`},
		".spec.initContainers":                {`"spec"`, `"ſpec":{"initContainers":[]},"spec"`},
		".spec.containers[*].securityContext": {`"containers"`, `"containerſ":[{"name":"web"}],"containers"`},
		".spec.nodeSelector.pin":              {`"nodeSelector"`, `"nodeſelector":null,"nodeSelector"`},
		".metadata.labels.plain":              {`"labels"`, `"labelſ":null,"labels"`},
		".spec.volumes[*]":                    {`"containers"`, `"containerſ":[{"name":"web"}],"containers"`},
	} {
		for _, definition := range []string{runnerWith(runner("{type: object, "+keepUnknown+"}"), `{"path":".spec.template","include":"podTemplate"}`)} {
			s := compileWorkloads(t, definition, permissionSchema("a", "", "Pod", fmt.Sprintf("{path: '%s', verb: example.com/x, excluded: true}", path)))
			object := func(template string) string {
				return `{"apiVersion":"example.com/v1","kind":"Runner","metadata":{"name":"a"},"spec":{"template":{` + template + `}}}`
			}
			want := path != ".spec.volumes[*]"
			if got := isBarred(t, s, gvk("example.com", "v1", "Runner"), object(template), object(strings.Replace(template, more[0], more[1], 1))); got != want {
				t.Errorf("%s: barred %t, want %t", path, got, want)
			}
		}
	}
}

// TestC1_TheKeyOfAnItemHasOneSpelling: a program that ignores the case of names may take the item for the one with the other key. Where a key occurs in two
// spellings, keys do not identify the items (D5).
func TestC1_TheKeyOfAnItemHasOneSpelling(t *testing.T) {
	definition := strings.Replace(unknownVaults(), keepUnknown+", properties: {", keepUnknown+", properties: {rows: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [key], items: {type: object, required: [key], "+keepUnknown+", properties: {key: {type: string}}}}, ", 1)
	s := compileWorkloads(t, definition, permissionSchema("a", "example.com", "Vault", "{path: .spec.rows, verb: example.com/rows}, {path: '.spec.rows[*].key', parameterSource: row}, {path: '.spec.rows[*]', verb: example.com/row, parameterizedBy: row}"))
	k, err := s.Kind(gvk("example.com", "v1", "Vault"))
	if err != nil {
		t.Fatal(err)
	}
	for row, want := range map[string]string{`{"key":"dev","image":"b"}`: "granular:example.com/row(dev)", `{"key":"dev","image":"b","Key":"web"}`: "granular:example.com/rows", `{"Key":"web","image":"b","key":"dev"}`: "granular:example.com/rows"} {
		object := func(row string) []byte {
			return []byte(`{"apiVersion":"example.com/v1","kind":"Vault","metadata":{"name":"a"},"spec":{"rows":[` + row + `]}}`)
		}
		needed, err := fieldperm.Diff(t.Context(), object(`{"key":"dev","image":"a"}`), object(row), k, nil)
		if err != nil || len(needed) == 0 {
			t.Fatal(needed, err)
		}
		for _, r := range needed {
			if got := r.Chain[len(r.Chain)-1].String(); got != want {
				t.Errorf("%s: %s needs %s, want %s", row, r.Path, got, want)
			}
		}
	}
}
