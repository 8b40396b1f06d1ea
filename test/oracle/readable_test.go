package oracle

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/test/exact"
)

// renamedThing is a definition whose version v2 has another name for .spec.size. v1 is stored.
func renamedThing() *custom {
	spec := func(name string) properties {
		return properties{"type": "object", "properties": properties{"spec": properties{"type": "object", "properties": properties{name: properties{"type": "integer"}}}}}
	}
	return &custom{group: "g" + drawnGroup, renamed: "size", versions: []version{
		{name: "v1", served: true, storage: true, schema: spec("size")},
		{name: "v2", served: true, schema: spec("size" + another)},
	}}
}

// embeddingThing is a definition whose specification is an embedded resource.
func embeddingThing() *custom {
	spec := properties{"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true}
	return &custom{group: "g" + drawnGroup, versions: []version{
		{name: "v1", served: true, storage: true, schema: properties{"type": "object", "properties": properties{"spec": spec}}},
	}}
}

const ownedInV2 = `{"apiVersion":"g.oracle.test/v1","metadata":{"managedFields":[{"apiVersion":"g.oracle.test/v2","fieldsV1":{"f:spec":{"f:sizeOtherwise":{}}}}]},"spec":{"size":3}}`

// The oracle judges the form of an object that readers receive, and owners by the names of the stored version.
func TestOracle_StoredResourcesAreJudgedAsTheyAreRead(t *testing.T) {
	for name, c := range map[string]struct {
		custom    *custom
		raw, want string
		unseen    bool
	}{
		"a null annotation of fieldperm's own kinds": {nil, `{"metadata":{"annotations":{"a":null}}}`, `{"metadata":{"annotations":{"a":""}}}`, false},
		"a null in an item":                          {nil, `{"metadata":{"ownerReferences":[{"apiVersion":"v1","controller":null,"kind":"A","name":"a","uid":"1"}]}}`, `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"A","name":"a","uid":"1"}]}}`, false},
		"null in the metadata of an embedded resource": {embeddingThing(), `{"apiVersion":"g.oracle.test/v1","metadata":{},"spec":{"apiVersion":"v1","data":null,"kind":"A","metadata":{"labels":{"a":null},"name":null}}}`,
			`{"apiVersion":"g.oracle.test/v1","metadata":{},"spec":{"apiVersion":"v1","data":null,"kind":"A","metadata":{"labels":{"a":""}}}}`, false},
		"no labels":                          {nil, `{"metadata":{"labels":{}}}`, `{"metadata":{}}`, false},
		"a field that the version prunes":    {renamedThing(), `{"metadata":{},"spec":{"size":3,"gone":1}}`, `{"metadata":{},"spec":{"size":3}}`, true},
		"the owner of what v2 has otherwise": {renamedThing(), ownedInV2, strings.Replace(ownedInV2, "sizeOtherwise", "size", 1), false},
	} {
		got, unseen, err := readable(c.custom, []byte(c.raw), false)
		if err != nil || string(got) != c.want || unseen != c.unseen {
			t.Errorf("%s: %s, %t, %v; want %s, %t", name, got, unseen, err, c.want, c.unseen)
		}
	}
}

// The oracle judges an empty map that a new object was created with.
func TestOracle_ANewObjectKeepsItsEmptyMaps(t *testing.T) {
	const raw = `{"metadata":{"annotations":null,"labels":{}}}`
	for isNew, want := range map[bool]string{true: `{"metadata":{"labels":{}}}`, false: `{"metadata":{}}`} {
		if got, _, err := readable(nil, []byte(raw), isNew); err != nil || string(got) != want {
			t.Errorf("new %t: %s, %v; want %s", isNew, got, err, want)
		}
	}
}

// Only for a write through another name of the field may the owner of the field be unknown.
func TestOracle_TheOwnerOfAFieldThatAnotherVersionRenames(t *testing.T) {
	old, _, err := readable(renamedThing(), []byte(ownedInV2), false)
	if err != nil {
		t.Fatal(err)
	}
	through := func(version string) *Request {
		r := &Request{Endpoint: &Endpoint{}}
		r.Endpoint.Kind.Version = version
		return r
	}
	loss := exact.Charge{Operation: "ownership", Path: ".spec.size"}
	for name, c := range map[string]struct {
		custom  *custom
		charge  exact.Charge
		version string
		want    bool
	}{
		"through the other name":      {renamedThing(), loss, "v1", true},
		"through the same name":       {renamedThing(), loss, "v2", false},
		"a value":                     {renamedThing(), exact.Charge{Operation: "removed", Path: ".spec.size"}, "v1", false},
		"another field":               {renamedThing(), exact.Charge{Operation: "ownership", Path: ".spec.sizes"}, "v1", false},
		"a definition without rename": {&custom{versions: renamedThing().versions}, loss, "v1", false},
		"another kind":                {nil, loss, "v1", false},
	} {
		if got := c.custom.ownedOtherwise(through(c.version), c.charge, old); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}

// A field that another applier empties becomes null. This is not a change of its value.
func TestOracle_FieldsThatAnApplyEmpties(t *testing.T) {
	for name, c := range map[string]struct {
		old, new string
		want     bool
	}{
		"emptied":       {`{"a":{"b":{"c":1}}}`, `{"a":{"b":null}}`, true},
		"gone":          {`{"a":{"b":{"c":1}}}`, `{"a":{}}`, false},
		"left":          {`{"a":{"b":{"c":1}}}`, `{"a":{"b":{}}}`, false},
		"empty before":  {`{"a":{"b":{}}}`, `{"a":{"b":null}}`, false},
		"no struct":     {`{"a":{"b":1}}`, `{"a":{"b":null}}`, false},
		"another value": {`{"a":{"b":{"c":1}}}`, `{"a":{"b":{"c":2}}}`, false},
	} {
		if got := isEmptied(".a.b", []byte(c.old), []byte(c.new)); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}

// An author who vouches for a conversion keeps every field. So does the oracle's conversion.
func TestOracle_TheConversionKeepsEveryField(t *testing.T) {
	for raw, want := range map[string]string{
		`{"apiVersion":"g/v1","spec":{"size":1}}`:                        `{"size":1}`,
		`{"apiVersion":"g/v2","spec":{"sizeOtherwise":1}}`:               `{"size":1}`,
		`{"apiVersion":"g/v2","spec":{"size":"a"}}`:                      `{"sizeOtherwise":"a"}`,
		`{"apiVersion":"g/v2","spec":{"size":"a","sizeOtherwise":null}}`: `{"size":null,"sizeOtherwise":"a"}`,
		`{"apiVersion":"g/v2"}`:                                          `null`,
	} {
		object, err := parseObject([]byte(raw))
		if err != nil {
			t.Fatal(err)
		}
		renamedThing().rename(object, "v1")
		if got, err := json.Marshal(object["spec"]); err != nil || string(got) != want {
			t.Errorf("%s becomes %s, %v; want %s", raw, got, err, want)
		}
	}
}
