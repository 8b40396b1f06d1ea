package fieldperm

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/schema"
)

// chargesAt reports whether a change is charged at a path.
func chargesAt(t *testing.T, k *schema.Kind, old, new, path string) bool {
	t.Helper()
	got, err := Diff(t.Context(), []byte(old), []byte(new), k, nil)
	if err != nil {
		t.Fatal(err)
	}
	return charges(got, path)
}

// D8: an apply converts the object to each version that has an entry. The conversion may drop an empty container, and with it the unowned
// parts. So the whole object is charged.
func TestD8_EmptyAppliedContainersAndAnEntryOfAnotherVersion(t *testing.T) {
	spec := structOf("spec", `"color":{"type":"string"},"size":{"type":"integer"},"box":{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"},"m":{"type":"object","x-kubernetes-map-type":"atomic","additionalProperties":{"type":"string"}}}}`)
	permissions := permission(".spec.color", "color", "") + "," + permission(".spec.box.b", "b", "")
	const whole = "."
	of := func(color, box string, owners ...string) string {
		return object("v1", fmt.Sprintf(`"spec":{"color":%q,"box":{%s}}`, color, box), owners...)
	}
	argo := func(fields string) string { return ownerIn("v2", "argo", "Apply", `{"f:spec":{"f:box":{`+fields+`}}}`) }
	entry := func(version, name, fields string) string {
		return ownerIn(version, name, "Update", `{"f:spec":{`+fields+`}}`)
	}
	creator, painter := entry("v2", "creator", `".":{},"f:color":{}`), entry("v1", "painter", `"f:color":{}`)
	bare := entry("v2", "creator", ``)
	both, here := `"a":"x","b":"y"`, ownerIn("v1", "argo", "Apply", `{"f:spec":{"f:box":{}}}`)
	colored, withB := entry("v2", "creator", `"f:color":{}`), ownerIn("v1", "argo", "Apply", `{"f:spec":{"f:box":{"f:b":{}}}}`)
	withColor, sized := ownerIn("v1", "argo", "Apply", `{"f:spec":{"f:color":{},"f:box":{}}}`), entry("v1", "x", `"f:size":{}`)
	boxed := func(field string) string { return entry("v1", "x", `"f:box":{"f:`+field+`":{}}`) }
	for name, c := range map[string]struct {
		old, new string
		charged  bool
	}{
		"another version comes":                                     {of("c", both, argo(""), creator), of("d", both, argo(""), bare, painter), true},
		"it is there before":                                        {of("c", both, argo(""), bare, painter), of("d", both, argo(""), bare, entry("v1", "another", `"f:color":{}`)), true},
		"no other version is there":                                 {of("c", both, here, painter), of("d", both, here, entry("v1", "another", `"f:color":{}`)), false},
		"owners stay":                                               {of("c", both, argo(""), bare, painter), of("d", both, argo(""), bare, painter), false},
		"it is applied with something in it":                        {of("c", both, argo(`"f:b":{}`), creator), of("d", both, argo(`"f:b":{}`), bare, painter), false},
		"another owns something in it":                              {of("c", both, argo(""), creator, entry("v2", "x", `"f:box":{"f:b":{}}`)), of("d", both, argo(""), bare, painter, entry("v2", "x", `"f:box":{"f:b":{}}`)), true},
		"another applies a value in it":                             {of("c", both, argo(""), creator, ownerIn("v2", "x", "Apply", `{"f:spec":{"f:box":{"f:b":{}}}}`)), of("d", both, argo(""), bare, painter, ownerIn("v2", "x", "Apply", `{"f:spec":{"f:box":{"f:b":{}}}}`)), false},
		"another applies a value in it in this version":             {of("c", both, argo(""), creator, ownerIn("v1", "x", "Apply", `{"f:spec":{"f:box":{"f:b":{}}}}`)), of("d", both, argo(""), bare, painter, ownerIn("v1", "x", "Apply", `{"f:spec":{"f:box":{"f:b":{}}}}`)), true},
		"the entry itself comes to another version":                 {of("c", both, argo("")), of("c", both, here), true},
		"it comes to another version, and others own what is in it": {of("c", `"b":"y"`, argo(""), entry("v1", "x", `".":{},"f:color":{},"f:box":{"f:b":{}}`)), of("c", `"b":"y"`, here, entry("v1", "x", `".":{},"f:color":{},"f:box":{"f:b":{}}`)), true},
		"it comes to another version with the entry of another":     {of("c", both, argo(""), ownerIn("v2", "x", "Apply", `{"f:spec":{"f:box":{"f:b":{}}}}`)), of("c", both, here, ownerIn("v1", "x", "Apply", `{"f:spec":{"f:box":{"f:b":{}}}}`)), true},
		"it comes to another version with a value":                  {of("c", both, argo(`"f:b":{}`)), of("c", both, ownerIn("v1", "argo", "Apply", `{"f:spec":{"f:box":{"f:b":{}}}}`)), false},
		"it is applied in this version":                             {of("c", both, here, creator), of("d", both, here, bare, painter), true},
		"and has nothing without an owner":                          {of("c", `"b":"y"`, here, creator, entry("v2", "x", `"f:box":{"f:b":{}}`)), of("d", `"b":"y"`, here, bare, painter, entry("v2", "x", `"f:box":{"f:b":{}}`)), false},
		"nothing but an empty struct is applied in it":              {of("c", `"a":"x","m":{}`, ownerIn("v1", "argo", "Apply", `{"f:spec":{"f:box":{"f:m":{}}}}`), creator), of("d", `"a":"x","m":{}`, ownerIn("v1", "argo", "Apply", `{"f:spec":{"f:box":{"f:m":{}}}}`), bare, painter), true},
		"nothing is in it here, and it is of another version":       {of("c", "", argo(""), creator), of("d", "", argo(""), bare, painter), true},
		"there is nothing in it":                                    {of("c", "", here, creator), of("d", "", here, bare, painter), false},
		"the field of another owner in it is removed":               {of("c", both, argo(""), painter, entry("v1", "x", `"f:box":{"f:b":{}}`)), of("c", `"a":"x"`, argo(""), painter), true},
		"nobody applies":                                            {of("c", both, entry("v2", "x", `"f:box":{}`), creator), of("d", both, entry("v2", "x", `"f:box":{}`), bare, painter), false},
		"all of it has owners, but for the rest":                    {of("c", `"b":"y"`, argo(""), creator), of("d", `"b":"y"`, argo(""), bare, painter), true},
		"a value of another is emptied, and owners stay":            {of("c", `"a":"x","m":{"k":"v"}`, here, colored, boxed("m")), of("c", `"a":"x","m":{}`, here, colored, boxed("m")), true},
		"a value of another becomes zero":                           {of("c", both, here, colored, boxed("b")), of("c", `"a":"x","b":""`, here, colored, boxed("b")), false},
		"a value of another changes":                                {of("c", both, here, colored, boxed("b")), of("c", `"a":"x","b":"z"`, here, colored, boxed("b")), false},
		"a value is emptied beside an applied one":                  {of("c", `"a":"x","b":"y","m":{"k":"v"}`, withB, colored, boxed("m")), of("c", `"a":"x","b":"y","m":{}`, withB, colored, boxed("m")), false},
		"a value is emptied, and all entries have one version":      {of("c", `"a":"x","m":{"k":"v"}`, here, boxed("m")), of("c", `"a":"x","m":{}`, here, boxed("m")), true},
		"a value of another goes, and all entries have one version": {of("c", both, here, boxed("b")), of("c", `"a":"x"`, here, entry("v1", "x", `"f:box":{}`)), true},
		"a value beside it goes":                                    {object("v1", `"spec":{"color":"c","size":1,"box":{"a":"x"}}`, withColor, sized), object("v1", `"spec":{"color":"c","box":{"a":"x"}}`, withColor), false},
		"an owner of a value goes":                                  {of("c", both, here, boxed("b")), of("c", both, here), true},
		"a value is emptied that nobody owns":                       {of("c", `"a":"x","m":{"k":"v"}`, here, colored), of("c", `"a":"x","m":{}`, here, colored), false},
		"zero is applied in it":                                     {of("c", `"a":"x","b":""`, withB, creator), of("d", `"a":"x","b":""`, withB, bare, painter), false},
	} {
		k := safesOf(t, lossless+said(permissions, permissions), spec, spec)("v1")
		if got := chargesAt(t, k, c.old, c.new, whole); got != c.charged {
			t.Errorf("%s: %s is charged: %t, want %t", name, whole, got, c.charged)
		}
		byNames := safesOf(t, byName+said(permissions, permissions), spec, spec)("v1")
		if chargesAt(t, byNames, c.old, c.new, whole) {
			t.Errorf("%s: %s is charged, though nothing is converted", name, whole)
		}
	}
}

// D8: a container that is applied empty in the names of another version is charged as the whole object, because its contents are not
// known.
func TestD8_EmptyAppliedContainersByTheNamesOfAnotherVersion(t *testing.T) {
	inner := `{"type":"object","properties":{"a":{"type":"string"}}}`
	here, there := structOf("spec", `"color":{"type":"string"},"out":{"type":"string","nullable":true},"box":`+inner), structOf("spec", `"color":{"type":"string"},"crate":`+inner)
	color := permission(".spec.color", "color", "")
	k := safesOf(t, lossless+said(color, color), here, there)("v1")
	of := func(color, owned string, owners ...string) string {
		return object("v1", fmt.Sprintf(`"spec":{"color":%q,"box":{"a":"x"}}`, color), append(owners, ownerIn("v2", "argo", "Apply", `{"f:spec":{`+owned+`}}`))...)
	}
	creator, painter := ownerIn("v2", "creator", "Update", `{"f:spec":{"f:color":{}}}`), ownerIn("v1", "painter", "Update", `{"f:spec":{"f:color":{}}}`)
	if !chargesAt(t, k, of("c", `"f:crate":{}`, creator), of("d", `"f:crate":{}`, painter), ".") {
		t.Error("the crate is the box, and it goes")
	}
	if !chargesAt(t, k, of("c", `"f:crate":{"f:a":{}}`, creator), of("d", `"f:crate":{"f:a":{}}`, painter), ".") {
		t.Error("the value in the crate may be null")
	}
	if chargesAt(t, k, of("c", `"f:crate":{}`, painter), of("d", `"f:crate":{}`, painter), ".") {
		t.Error("no version comes")
	}
	moved := func(out string) string {
		return object("v1", fmt.Sprintf(`"spec":{"color":"c","out":%s,"box":{"a":"x"}}`, out), ownerIn("v1", "x", "Update", `{"f:metadata":{"f:labels":{"f:a":{}}},"f:spec":{"f:out":{}}}`), ownerIn("v2", "argo", "Apply", `{"f:spec":{"f:color":{},"f:crate":{}}}`))
	}
	if !chargesAt(t, k, moved(`"x"`), moved("null"), ".") {
		t.Error("the other version may have the value in the crate")
	}
	if !chargesAt(t, k, moved(`"x"`), moved(`"y"`), ".") {
		t.Error("the other version may have a part of the value in the crate")
	}
	labelled := func(label string) string {
		return strings.Replace(moved("null"), `"name":"x"`, `"name":"x","labels":{`+label+`}`, 1)
	}
	if labelled("") == moved("null") || chargesAt(t, k, labelled(`"a":"b"`), labelled(""), ".") {
		t.Error("a label is not in the crate")
	}
	whole := strings.Replace(there, `"crate":{`, `"crate":{"x-kubernetes-map-type":"atomic",`, 1)
	if chargesAt(t, safesOf(t, lossless+said(color, color), here, whole)("v1"), of("c", `"f:crate":{},"f:color":{}`, creator), of("d", `"f:crate":{},"f:color":{}`, painter), ".") {
		t.Error("the crate is atomic: its owner owns its contents")
	}
}
