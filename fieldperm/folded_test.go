package fieldperm

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// D8: if a schema made a list atomic, an API server gives its owners the whole list in place of its parts.
func TestD8_OwnersOfAValueThatBecameAtomic(t *testing.T) {
	k, none := compileGadget(t)
	of := func(replicas int, owners ...string) string {
		return owned(fmt.Sprintf(`|,"spec":{"replicas":%d,"rules":[{"host":"h","admin":true}]}`, replicas), owners...)
	}
	parts := owner("creator", "Update", `{"f:spec":{"f:rules":{"k:{\"host\":\"h\"}":{".":{},"f:admin":{},"f:host":{}}}}}`)
	whole := owner("creator", "Update", `{"f:spec":{"f:rules":{}}}`)
	const scale = "modified .spec.replicas: * specification scale"
	expectDiff(t, k, none, of(2, parts), of(3, whole), scale)
	changed := strings.Replace(of(2, owner("me", "Update", `{"f:spec":{"f:rules":{}}}`)), `"host":"h","admin"`, `"host":"i","admin"`, 1)
	expectDiff(t, k, none, of(2, parts), changed, "modified .spec.rules: * specification rules")
	for name, owners := range map[string][]string{"nobody": nil, "another": {owner("other", "Update", `{"f:spec":{"f:rules":{}}}`)}} {
		if got, err := Diff(t.Context(), []byte(of(2, parts)), []byte(of(3, owners...)), k, none); err != nil || len(got) < 2 {
			t.Errorf("%s comes to own the whole: %q, %v", name, renderAll(got), err)
		}
	}
}

// D8: an API server folds the parts of a value that is atomic in the version of the entry.
func TestD8_OwnersOfAValueThatBecameAtomicInAnotherVersion(t *testing.T) {
	atomic := func(how, more string) string {
		return structOf("spec", `"color":{"type":"string"},"m":{"type":"object",`+how+`"properties":{"a":{"type":"string"}`+more+`}}`)
	}
	const whole = `"x-kubernetes-map-type":"atomic",`
	for name, first := range map[string]string{"in both": atomic(whole, ""), "in the other": atomic("", "")} {
		k := safesOf(t, lossless+said("", ""), first, atomic(whole, `,"extra":{"type":"string"}`))
		of := func(version, color string, owners ...string) string {
			return object(version, `"spec":{"color":"`+color+`","m":{"a":"1"}}`, owners...)
		}
		entry := func(m string) string { return ownerIn("v2", "creator", "Update", `{"f:spec":{"f:m":`+m+`}}`) }
		for _, version := range []string{"v1", "v2"} {
			got, err := Diff(t.Context(), []byte(of(version, "1", entry(`{"f:a":{}}`))), []byte(of(version, "2", entry(`{}`))), k(version), nil)
			if err != nil || len(got) != 1 {
				t.Errorf("%s, through %s: %q, %v; want the color alone", name, version, renderAll(got), err)
			}
		}
	}
}

// D8: no API server turns the parts of a value in one version into the whole value in another.
func TestD8_PartsInAnUnknownVersionAreNotTheWhole(t *testing.T) {
	k, none := compileGadget(t)
	of := func(entry string) string {
		return owned(`|,"spec":{"replicas":2,"rules":[{"host":"h","admin":true}]}`, entry)
	}
	parts := strings.Replace(owner("argo", "Apply", `{"f:spec":{"f:rules":{"k:{\"host\":\"h\"}":{".":{},"f:host":{}}}}}`), "/v1", "/v0", 1)
	got, err := Diff(t.Context(), []byte(of(parts)), []byte(of(owner("argo", "Apply", `{"f:spec":{"f:rules":{}}}`))), k, none)
	if err != nil || !slices.ContainsFunc(got, func(r Requirement) bool { return r.Barred() }) {
		t.Errorf("%q, %v; want the barrier in the list", renderAll(got), err)
	}
}

// D8: the parts of a value have owners in one version, and the value is atomic in another version with the same names. An owner of a part
// does not own the whole, and an entry in the first version keeps its parts.
func TestD8_PartsInAVersionWithTheSameNamesAreNotTheWhole(t *testing.T) {
	m := func(how string) string {
		return structOf("spec", `"m":{"type":"object",`+how+`"properties":{"a":{"type":"string"},"b":{"type":"string"}}}`)
	}
	guarded := permission(".spec.m.b", "secret", always)
	const atomic, granular = `"x-kubernetes-map-type":"atomic",`, `"x-kubernetes-map-type":"granular",`
	const whole, part, parts = `{}`, `{"f:a":{}}`, `{"f:a":{},"f:b":{}}`
	for name, c := range map[string]struct{ v1, v2, was, owned, is, owns string }{
		"a part becomes the whole": {atomic, granular, "v2", part, "v1", whole},
		"the whole becomes a part": {granular, atomic, "v2", whole, "v1", part},
		"a part is added":          {atomic, granular, "v2", part, "v2", parts},
		"a part is lost":           {atomic, granular, "v2", parts, "v2", part},
	} {
		k := safesOf(t, byName+said(guarded, guarded), m(c.v1), m(c.v2))("v1")
		of := func(version, fields string) string {
			return object("v1", `"spec":{"m":{"a":"1","b":"2"}}`, ownerIn(version, "argo", "Apply", `{"f:spec":{"f:m":`+fields+`}}`))
		}
		if !asks(t, k, nil, of(c.was, c.owned), of(c.is, c.owns), secretVerb) {
			t.Errorf("%s: the barrier is passed", name)
		}
	}
}

// D8: a version may not be served, or not be known, and its values may have parts that this version does not have. An API server that folds
// an entry leaves no part in it.
func TestD8_PartsInAVersionWhoseTypesAreNotKnown(t *testing.T) {
	m := structOf("spec", `"m":{"type":"object","x-kubernetes-map-type":"atomic","properties":{"a":{"type":"string"},"b":{"type":"string"}}}`)
	guarded := permission(".spec.m.b", "secret", always)
	k := safesOf(t, byName+`"fieldperm.dev/permission-verbs":`+quoted(`{"v1":[`+guarded+`]}`)+unserved, m, m)("v1")
	const whole, part, parts = `{}`, `{"f:a":{}}`, `{"f:a":{},"f:b":{}}`
	for _, version := range []string{"v2", "v0"} {
		of := func(fields string) string {
			return object("v1", `"spec":{"m":{"a":"1","b":"2"}}`, ownerIn(version, "argo", "Apply", `{"f:spec":{"f:m":`+fields+`}}`))
		}
		for name, c := range map[string]struct {
			owned, owns string
			charged     bool
		}{
			"a part is added":          {part, parts, true},
			"a part is lost":           {parts, part, true},
			"the whole becomes a part": {whole, part, true},
			"the parts are folded":     {parts, whole, false},
		} {
			if asks(t, k, nil, of(c.owned), of(c.owns), secretVerb) != c.charged {
				t.Errorf("%s in %s: the barrier holds: %t, want %t", name, version, !c.charged, c.charged)
			}
		}
	}
}

// D8: an API server gives the whole of an atomic value to the owner of a part, so who makes a manager own a part needs the verbs of the whole.
func TestD8_APartOfAnAtomicValueIsTheWhole(t *testing.T) {
	m := structOf("spec", `"m":{"type":"object","x-kubernetes-map-type":"atomic","properties":{"a":{"type":"string"},"b":{"type":"string"}}}`)
	k := safesOf(t, byName+said(permission(".spec.m.b", "secret", always), ""), m, m)("v1")
	of := func(owners ...string) string { return object("v1", `"spec":{"m":{"a":"1","b":"2"}}`, owners...) }
	for _, operation := range []string{"Apply", "Update"} {
		if !asks(t, k, nil, of(), of(ownerIn("v1", "argo", operation, `{"f:spec":{"f:m":{"f:a":{}}}}`)), secretVerb) {
			t.Errorf("%s: the barrier is passed", operation)
		}
	}
}

// D4: a set in an atomic value is compared by position, and each member that differs there has its own path.
func TestD4_MembersOfASetInAWhole(t *testing.T) {
	m := structOf("spec", `"m":{"type":"object","x-kubernetes-map-type":"atomic","properties":{"s":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}}}}`)
	k := safesOf(t, byName+said("", ""), m, m)("v1")
	of := func(set string) []byte { return []byte(object("v1", `"spec":{"m":{"s":`+set+`}}`)) }
	for _, c := range []struct{ old, new string }{{`["x","y"]`, `["y"]`}, {`["x"]`, `["y"]`}, {`["x","y"]`, `["y","z"]`}, {`["y"]`, `["x","y"]`}} {
		got, err := DiffParts(t.Context(), of(c.old), of(c.new), k, nil)
		if err != nil || !slices.ContainsFunc(got, func(r Requirement) bool { return r.Path.String() == `.spec.m.s[="x"]` }) {
			t.Errorf("%s to %s: %q, %v; want the member x", c.old, c.new, renderAll(got), err)
		}
	}
}
