package fieldperm

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

func TestD12_ChangesWithoutAnOwner(t *testing.T) {
	k, none := compileGadget(t)
	const mine = `{"f:spec":{"f:replicas":{},"f:selector":{},"f:containers":{"k:{\"name\":\"a\"}":{"f:image":{}}}},"f:metadata":{"f:finalizers":{"v:\"a/x\"":{}}}}`
	for _, c := range []struct {
		name, old, new string
		want           bool
	}{
		{"the request's own", owned(`|,"spec":{"replicas":1}`), owned(`|,"spec":{"replicas":2}`, owner("me", "Update", mine)), false},
		{"another field", owned(`|,"spec":{"plain":"a"}`), owned(`|,"spec":{"plain":"b"}`, owner("me", "Update", mine)), true},
		{"part of an owned whole", owned(`|,"spec":{"selector":{"a":"b"}}`), owned(`|,"spec":{"selector":{"a":"c"}}`, owner("me", "Update", mine)), false},
		{"an item's field", owned(`|,"spec":{"containers":[{"name":"a","image":"i"}]}`), owned(`|,"spec":{"containers":[{"name":"a","image":"j"}]}`, owner("me", "Update", mine)), false},
		{"another item", owned(`|`), owned(`|,"spec":{"containers":[{"name":"b","image":"j"}]}`, owner("me", "Update", mine)), true},
		{"a member of a set", owned(`|`), owned(`,"finalizers":["a/x"]|`, owner("me", "Update", mine)), false},
		{"nobody owns anything", owned(`|,"spec":{"plain":"a"}`), owned(`|,"spec":{"plain":"b"}`), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			rs, err := Diff(t.Context(), []byte(c.old), []byte(c.new), k, none)
			if err != nil || len(rs) == 0 {
				t.Fatal(rs, err)
			}
			if got := Unattributed([]byte(c.new), &rs[0]); got != c.want {
				t.Errorf("%s: unattributed %v, want %v", render(rs[0]), got, c.want)
			}
		})
	}
	d := Denial{Requirement: &Requirement{}, Unattributed: true}
	if m := d.Message(Subject{}); !strings.Contains(m, "a default of the API server, a mutating webhook or a policy made it") {
		t.Error(m)
	}
}

// A barrier in a new item is found by position (D2), and managers own items by their keys. So an item has the owners of all items of its list.
func TestD12_AnItemByPositionHasTheOwnersOfItsList(t *testing.T) {
	path := func(list string, i int, field string) fieldpath.Path {
		return fieldpath.Path{}.Field("spec").Field(list).Index(i).Field(field)
	}
	const own = `{"f:spec":{"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:port":{},"f:target":{}},"k:{\"port\":90,\"protocol\":\"TCP\"}":{".":{},"f:port":{}}}}}`
	const two = `,"spec":{"ports":[{"port":90,"protocol":"TCP","target":1},{"port":80,"target":1}]}`
	for _, c := range []struct {
		name, spec, managed string
		path                fieldpath.Path
		want                bool
	}{
		{"its manager owns it", two, own, path("ports", 1, "target"), false},
		{"its manager owns another field", two, own, path("ports", 0, "target"), false},
		{"of no manager", two, `{"f:spec":{"f:replicas":{}}}`, path("ports", 1, "target"), true},
		{"by position", two, `{"f:spec":{"f:ports":{"i:1":{"f:target":{}}}}}`, path("ports", 1, "target"), false},
		{"by value", `,"spec":{"ports":["a"]}`, `{"f:spec":{"f:ports":{"v:\"a\"":{}}}}`, path("ports", 0, "target"), false},
		{"two items with its keys", `,"spec":{"ports":[{"port":90},{"port":80},{"port":80,"target":1}]}`, own, path("ports", 0, "target"), false},
		{"no such item", two, own, path("ports", 2, "target"), false},
		{"in an item of a list", `,"spec":{"containers":[{"name":"a","ports":[{"port":80,"target":1}]}]}`,
			`{"f:spec":{"f:containers":{"k:{\"name\":\"a\"}":{"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{"f:target":{}}}}}}}`,
			fieldpath.Path{}.Field("spec").Field("containers").Item([]fieldpath.Key{{Name: "name", Value: []byte(`"a"`)}}).Field("ports").Index(0).Field("target"), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			new := owned(`|`+c.spec, owner("me", "Apply", c.managed))
			if got := Unattributed([]byte(new), &Requirement{Operation: Added, Path: c.path}); got != c.want {
				t.Errorf("%s of %s: unattributed %v, want %v", c.path, new, got, c.want)
			}
		})
	}
}

// TestD12_P8_AttributionIsBounded: it is for a message, and a user can write managedFields.
func TestD12_P8_AttributionIsBounded(t *testing.T) {
	const n = 20_000
	var items, keys strings.Builder
	for i := range n {
		fmt.Fprintf(&items, `,{"port":%d}`, i)
		fmt.Fprintf(&keys, `,"k:{\"port\":%d}":{"f:other":{}}`, i)
	}
	new := owned(`|,"spec":{"ports":[`+items.String()[1:]+`]}`, owner("me", "Apply", `{"f:spec":{"f:ports":{`+keys.String()[1:]+`}}}`))
	path := fieldpath.Path{}.Field("spec").Field("ports").Index(n - 1).Field("target")
	if Unattributed([]byte(new), &Requirement{Operation: Added, Path: path}) {
		t.Error("the change has no owner, although not all keys were compared")
	}
}
