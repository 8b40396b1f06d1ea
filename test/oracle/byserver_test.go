package oracle

import (
	"bytes"
	"testing"

	"github.com/fieldperm/fieldperm/test/exact"
	"github.com/fieldperm/fieldperm/test/store"
)

// TestOracle_TheServersStatusIsNotTheUsers: a controller of the API server may write the status between two steps of a user.
func TestOracle_TheServersStatusIsNotTheUsers(t *testing.T) {
	charges := []exact.Charge{{Path: ".status.observedGeneration"}, {Path: ".statusOfMine"}}
	written := func(manager string) []byte {
		return []byte(`{"metadata":{"managedFields":[{"manager":"` + manager + `","subresource":"status"}]}}`)
	}
	if got := byUser(charges, written("fieldperm"), false); len(got) != 1 || got[0].Path != ".statusOfMine" {
		t.Errorf("by fieldperm: %v", got)
	}
	if got := byUser(charges, written("alice"), false); len(got) != 2 {
		t.Errorf("by a user: %v", got)
	}
	if got := byUser(charges, written("alice"), true); len(got) != 1 {
		t.Errorf("by a user, then by fieldperm: %v", got)
	}
	object := func(entries string) []byte {
		return []byte(`{"kind":"CustomResourceDefinition","metadata":{"name":"x","managedFields":[` + entries + `]}}`)
	}
	const alice, server, later = `{"manager":"alice","subresource":"status"}`, `{"manager":"kube-apiserver","subresource":"status"}`, `{"manager":"kube-apiserver","subresource":"status","time":"2"}`
	for name, c := range map[string]struct {
		old, new string
		want     bool
	}{
		"an entry of the server":                {alice + "," + server, alice + "," + later, true},
		"that of a user as well":                {server, alice + "," + later, false},
		"a manager loses a field to the server": {`{"manager":"alice","subresource":"status","fieldsV1":{"f:a":{},"f:b":{}}},` + server, `{"manager":"alice","subresource":"status","fieldsV1":{"f:b":{}}},` + later, true},
		"a manager gains one from the server":   {`{"manager":"alice","subresource":"status","fieldsV1":{"f:b":{}}},` + later, `{"manager":"alice","subresource":"status","fieldsV1":{"f:a":{},"f:b":{}}},` + server, false},
		"none":                                  {alice + "," + server, alice + "," + server, false},
		"an entry of the server, of no status":  {alice + `,{"manager":"kube-apiserver"}`, alice + `,{"manager":"kube-apiserver","time":"2"}`, false},
	} {
		if _, got := byServer(&Event{Old: object(c.old), New: object(c.new)}, &Request{Name: "x", Endpoint: &Endpoint{}}); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
	const own = store.Prefix + "fieldperm.dev/permissionschemas/x"
	// fieldperm's write of a status drops a null that a merge patch left in an item.
	was := []byte(`{"kind":"PermissionSchema","metadata":{"name":"x","ownerReferences":[{"uid":"1","controller":null}],"managedFields":[` + alice + `]}}`)
	is := []byte(`{"kind":"PermissionSchema","metadata":{"name":"x","ownerReferences":[{"uid":"1"}],"managedFields":[` + alice + `,{"manager":"fieldperm","subresource":"status"}]},"status":{}}`)
	other := bytes.Replace(is, []byte(`"uid":"1"`), []byte(`"uid":"2"`), 1)
	for want, after := range map[bool][]byte{true: is, false: other} {
		if _, got := byServer(&Event{Key: own, Old: was, New: after}, &Request{Name: "x", Endpoint: &Endpoint{}}); got != want {
			t.Errorf("a null in an item: %t, want %t", got, want)
		}
	}
	// It also drops a map that server-side apply left empty.
	empty := bytes.Replace(was, []byte(`"name":"x",`), []byte(`"name":"x","labels":{},`), 1)
	if _, got := byServer(&Event{Key: own, Old: empty, New: is}, &Request{Name: "x", Endpoint: &Endpoint{}}); !got {
		t.Error("an empty map is a write of the user")
	}
}
