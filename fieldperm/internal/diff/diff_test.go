package diff

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/internal/rawjson"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/test/schematest"
)

const boxTypes = `types:
- name: box
  map:
    fields:
    - {name: apiVersion, type: {scalar: string}}
    - name: spec
      type:
        map:
          fields:
          - {name: atomic, type: {map: {elementRelationship: atomic, elementType: {scalar: string}}}}
          - {name: parts, type: {list: {elementRelationship: associative, keys: [name], elementType: {namedType: part}}}}
    - {name: status, type: {map: {elementType: {namedType: unknown}}}}
- name: part
  map:
    fields:
    - {name: name, type: {scalar: string}}
    - {name: image, type: {scalar: string}}
- name: unknown
  scalar: untyped
  list: {elementRelationship: atomic, elementType: {namedType: unknown}}
  map: {elementRelationship: separable, elementType: {namedType: unknown}}
`

// compileBox returns a kind without verbs.
func compileBox(t *testing.T) *schema.Kind { return schematest.Kind(t, boxTypes, "box", "Box") }

func scan(t *testing.T, text string) rawjson.Value {
	t.Helper()
	doc, err := rawjson.Scan([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return doc.Root()
}

// changesOf returns the changes as texts: the operation, the path, and after a > the whole around it.
func changesOf(t *testing.T, d *Differ, k *schema.Kind, deep bool, old, new string) []string {
	t.Helper()
	var was rawjson.Value
	if old != "" {
		was = scan(t, old)
	}
	d.Start(t.Context(), k, was, scan(t, new))
	defer d.End()
	d.Deep = deep
	var out []string
	d.Compare(func(c Change) {
		text := string(c.Operation) + " " + c.Place.Path.String()
		if c.Place.Whole != nil {
			text += " > " + c.Place.Whole.Path.String()
		}
		out = append(out, text)
	})
	if d.Err != nil {
		t.Fatal(d.Err)
	}
	return out
}

// Changes are found at leaves, items and atomic values, and what is inside a whole is reported with the outermost whole.
func TestD1_D2_D4_Changes(t *testing.T) {
	k := compileBox(t)
	d := &Differ{}
	for _, c := range []struct {
		name, old, new string
		deep           bool
		want           []string
	}{
		{"none", `{"spec":{}}`, ` { "spec" : {} } `, true, nil},
		{"a leaf", `{"status":{"a":1,"b":2}}`, `{"status":{"b":3,"a":1}}`, false, []string{`modified .status["b"]`}},
		{"a new object", ``, `{"apiVersion":"v1","status":{"a":{}}}`, false, []string{`added .apiVersion`, `added .status["a"]`}},
		{"an atomic map", `{"spec":{"atomic":{"a":"1"}}}`, `{"spec":{"atomic":{"a":"2"}}}`, false, []string{`modified .spec.atomic`}},
		{"its parts", `{"spec":{"atomic":{"a":"1"}}}`, `{"spec":{"atomic":{"a":"2"}}}`, true, []string{`modified .spec.atomic`, `modified .spec.atomic["a"] > .spec.atomic`}},
		{"an item", `{"spec":{"parts":[{"name":"a","image":"i"}]}}`, `{"spec":{"parts":[{"name":"a","image":"j"},{"name":"b","image":"k"}]}}`, true, []string{
			`modified .spec.parts[name="a"].image`, `added .spec.parts[name="b"]`, `added .spec.parts[name="b"].image > .spec.parts[name="b"]`, `added .spec.parts[name="b"].name > .spec.parts[name="b"]`,
		}},
		{"the order of items", `{"spec":{"parts":[{"name":"a"},{"name":"b"}]}}`, `{"spec":{"parts":[{"name":"b"},{"name":"a"}]}}`, false, []string{`reordered .spec.parts`}},
		{"a value of another form", `{"status":{"a":{"b":1}}}`, `{"status":{"a":[1]}}`, false, []string{`removed .status["a"]["b"]`, `added .status["a"]`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := changesOf(t, d, k, c.deep, c.old, c.new); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// Every place has its own parts, however many levels share memory, also in the next comparison.
func TestD1_PlacesKeepTheirParts(t *testing.T) {
	k := compileBox(t)
	r := rand.New(rand.NewPCG(11, 3617))
	d := &Differ{}
	var object func(path string, depth int, value string, leaves *[]string) string
	object = func(path string, depth int, value string, leaves *[]string) string {
		var members []string
		for i := range 1 + r.IntN(6) {
			at := fmt.Sprintf(`%s["%d"]`, path, i)
			if depth < 6 && r.IntN(3) == 0 {
				members = append(members, fmt.Sprintf(`"%d":%s`, i, object(at, depth+1, value, leaves)))
				continue
			}
			*leaves = append(*leaves, "modified "+at)
			members = append(members, fmt.Sprintf(`"%d":%q`, i, value))
		}
		return "{" + strings.Join(members, ",") + "}"
	}
	for range 50 {
		var want []string
		old := object(".status", 0, "old", &want)
		got := changesOf(t, d, k, false, `{"status":`+old+`}`, `{"status":`+strings.ReplaceAll(old, "old", "new")+`}`)
		if !slices.Equal(got, want) {
			t.Fatalf("got %q, want %q", got, want)
		}
	}
}

// A comparison keeps memory for the next one, but not that of a hostile object.
func TestDiffer_KeepsLittleMemory(t *testing.T) {
	k := compileBox(t)
	d := &Differ{}
	deep, wide := strings.Repeat(`{"a":`, 1000)+`1`+strings.Repeat(`}`, 1000), ""
	for i := range 1000 {
		wide += fmt.Sprintf(`"k%d":1,`, i)
	}
	changesOf(t, d, k, false, `{}`, `{"status":`+deep+`}`)
	changesOf(t, d, k, false, `{}`, `{"status":{`+wide[:len(wide)-1]+`}}`)
	places := 0
	for p := d.Root; p != nil; p = p.below {
		if places++; cap(p.changed) > mostParts || p.Node != nil || len(p.changed) > 0 {
			t.Errorf("place %d keeps %d parts in memory for %d, and its node: %t", places, len(p.changed), cap(p.changed), p.Node != nil)
		}
	}
	if places > mostPlaces {
		t.Errorf("%d places are kept", places)
	}
}
