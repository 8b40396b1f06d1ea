package oracle

import (
	"fmt"
	"strings"
	"testing"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/test/exact"
	"github.com/fieldperm/fieldperm/test/store"
	"github.com/fieldperm/fieldperm/verbs"
)

func TestOracle_TheRepairOfAddressesDeletesAtAnyTime(t *testing.T) {
	const managed = `{"metadata":{"labels":{"ipaddress.kubernetes.io/managed-by":"ipallocator.k8s.io"}}}`
	for name, c := range map[string]struct {
		old, new, resource string
		want               bool
	}{
		"deleted":                            {managed, "", "things", true},
		"deleted with its Service":           {managed, "", "services", true},
		"made with its Service":              {"", managed, "services", true},
		"made with something else":           {"", managed, "things", false},
		"deleted, and not the allocator's":   {`{"metadata":{}}`, "", "things", false},
		"deleted by a request that names it": {managed, "", "ipaddresses", false},
	} {
		e := &Event{Key: store.Prefix + "ipaddresses/10.0.0.1"}
		if c.old != "" {
			e.Old = []byte(c.old)
		}
		if c.new != "" {
			e.New = []byte(c.new)
		}
		if _, got := byServer(e, &Request{Endpoint: &Endpoint{Place: Place{Resource: c.resource}}}); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}

func TestOracle_AScaleWriteSetsTheVersionOfAnEntry(t *testing.T) {
	of := func(versions ...string) []byte {
		var entries []string
		for _, v := range versions {
			entries = append(entries, fmt.Sprintf(`{"apiVersion":"g.example/%s"}`, v))
		}
		return []byte(`{"metadata":{"managedFields":[` + strings.Join(entries, ",") + `]}}`)
	}
	request := func(sub string) *Request {
		return &Request{Endpoint: &Endpoint{Place: Place{Sub: sub}, Kind: runtimeschema.GroupVersionKind{Version: "v1"}}}
	}
	removed, added := exact.Charge{Operation: "removed", Path: `.metadata.labels["a"]`}, exact.Charge{Operation: "added", Path: ".spec.a"}
	for name, c := range map[string]struct {
		sub      string
		charge   exact.Charge
		webhook  bool
		old, new []byte
		want     bool
	}{
		"it comes":                   {"scale", removed, true, of("v2"), of("v2", "v1"), true},
		"it was there":               {"scale", removed, true, of("v2", "v1"), of("v2", "v1"), false},
		"another comes":              {"scale", removed, true, of("v2"), of("v2", "v3"), false},
		"something is added":         {"scale", added, true, of("v2"), of("v2", "v1"), false},
		"nothing is converted":       {"scale", removed, false, of("v2"), of("v2", "v1"), false},
		"the write is of the object": {"", removed, true, of("v2"), of("v2", "v1"), false},
		"the write is of its status": {"status", removed, true, of("v2"), of("v2", "v1"), false},
	} {
		w := &world{table: newTable()}
		v := &Verdict{Charges: []exact.Charge{c.charge}, custom: &custom{webhook: c.webhook}, Event: &Event{Old: c.old, New: c.new}}
		if got := w.tolerate(request(c.sub), v); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}

// TestOracle_W4_ASetForAllIsNotForTheFloor: the object behind an endpoint on the floor has barriers, but a write through the endpoint has
// none.
func TestOracle_W4_ASetForAllIsNotForTheFloor(t *testing.T) {
	own := Place{Group: "fieldperm.dev", Resource: "permissionschemas"}
	status := own
	status.Sub = "status"
	// A set that does not refuse writes is no barrier anywhere.
	tried := &v1alpha1.UncoveredPermissionSet{Spec: v1alpha1.UncoveredPermissionSetSpec{ValidationActions: []v1alpha1.ValidationAction{v1alpha1.ValidationWarn}}}
	w := &world{sets: []*set{{object: &v1alpha1.UncoveredPermissionSet{}, verbs: []verbs.Verb{verbs.All()}}, {object: tried, verbs: []verbs.Verb{verbs.All()}}}}
	for place, want := range map[Place]int{own: 1, status: 0, {Group: "apps", Resource: "deployments", Sub: "status"}: 1, {Group: "coordination.k8s.io", Resource: "leases"}: 0} {
		if got := w.barriers(own, &Request{Endpoint: &Endpoint{Place: place}}); len(got) != want {
			t.Errorf("%v: %d barriers, want %d", place, len(got), want)
		}
	}
}

func TestOracle_AStatusMayComeWithTheFirstGeneration(t *testing.T) {
	const after = `{"kind":"PermissionSchema","metadata":{"generation":1,"managedFields":[{"manager":"fieldperm","subresource":"status"}]},"status":{}}`
	for before, want := range map[string]bool{
		`{"kind":"PermissionSchema","metadata":{}}`:                           true,
		`{"kind":"PermissionSchema","metadata":{"generation":1}}`:             true,
		`{"kind":"PermissionSchema","metadata":{"generation":2}}`:             false,
		`{"kind":"PermissionSchema","metadata":{"labels":{"a":"b"}}}`:         false,
		`{"kind":"PermissionSchema","metadata":{},"spec":{"kind":"Nothing"}}`: false,
	} {
		if _, got := byServer(&Event{Old: []byte(before), New: []byte(after)}, &Request{Endpoint: &Endpoint{}}); got != want {
			t.Errorf("%s: %t, want %t", before, got, want)
		}
	}
}
