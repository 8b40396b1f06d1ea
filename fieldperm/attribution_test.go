package fieldperm

import (
	"strings"
	"testing"
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
	if m := d.Message(Subject{}); !strings.Contains(m, "a mutating webhook or policy made it") {
		t.Error(m)
	}
}
