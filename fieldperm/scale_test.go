package fieldperm

import (
	"slices"
	"strings"
	"testing"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/test/schematest"
)

// D8: a write of a Scale changes owners that the webhook does not see, also if the write changes nothing.
func TestD8_AWriteOfAScaleChangesTheOwnersOfTheReplicas(t *testing.T) {
	compiled := schematest.Schema(t)
	k, err := compiled.KindFor(runtimeschema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"}, schema.ResourceRef{Group: "apps", Version: "v1", Resource: "deployments", Subresource: "scale"})
	if err != nil {
		t.Fatal(err)
	}
	of := func(replicas string) string {
		return `{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"x"},"spec":{` + replicas + `}}`
	}
	for name, c := range map[string]struct{ old, new, want string }{
		"nothing":           {`"replicas":3`, `"replicas":3`, "ownership"},
		"nothing, and none": {``, ``, "ownership"},
		"the replicas":      {`"replicas":3`, `"replicas":4`, "modified"},
	} {
		got, err := Diff(t.Context(), []byte(of(c.old)), []byte(of(c.new)), k, nil)
		if err != nil || len(got) != 1 || got[0].Path.String() != ".spec.replicas" || string(got[0].Operation) != c.want {
			t.Errorf("%s: %q, %v, want .spec.replicas alone, %s", name, renderAll(got), err, c.want)
		}
	}
	if got, err := Diff(t.Context(), nil, []byte(of(`"replicas":3`)), k, nil); err != nil || slices.ContainsFunc(got, func(r Requirement) bool { return r.Operation == Ownership }) {
		t.Errorf("a new one: %q, %v", renderAll(got), err)
	}
}

// D8: if a manager has two entries, an API server reads the last one.
func TestD8_TheLastOfTwoEntriesOfAManagerCounts(t *testing.T) {
	k, none := compileGadget(t)
	replicas, plain := owner("a", "Update", `{"f:spec":{"f:replicas":{}}}`), owner("a", "Update", `{"f:spec":{"f:plain":{}}}`)
	of := func(n string, owners ...string) string {
		return owned(`|,"spec":{"replicas":`+n+`,"plain":"p"}`, owners...)
	}
	expectDiff(t, k, none, of("2", replicas, plain), of("3", plain), "modified .spec.replicas: * specification scale")
	expectDiff(t, k, none, of("2", plain, replicas), of("2", replicas))
	expectDiff(t, k, none, of("2", replicas, plain), of("2", replicas), "ownership .spec.plain: * specification", "ownership .spec.replicas: * specification scale")
}

// D8: an API server drops an entry without a time first.
func TestD8_RemovedTimes(t *testing.T) {
	k, none := compileGadget(t)
	entry := func(at string) string {
		return strings.Replace(owner("a", "Update", `{"f:spec":{"f:replicas":{}}}`), `"time":"2026-01-01T00:00:00Z"`, at, 1)
	}
	of := func(n string, owners ...string) string {
		return owned(`|,"spec":{"replicas":`+n+`}`, owners...)
	}
	const now, later = `"time":"2026-01-01T00:00:00Z"`, `"time":"2027-01-01T00:00:00Z"`
	for name, c := range map[string]struct {
		old, new string
		lost     bool
	}{
		"later":                 {now, later, false},
		"gone":                  {now, `"time":null`, true},
		"before 1970":           {now, `"time":"1960-01-01T00:00:00Z"`, true},
		"the beginning of 1970": {now, `"time":"1970-01-01T00:00:00Z"`, true},
		"none before and after": {`"time":null`, `"time":null`, false},
		"none before":           {`"time":null`, now, false},
		"before 1970 all along": {`"time":"1960-01-01T00:00:00Z"`, `"time":"1960-01-01T00:00:00Z"`, false},
	} {
		for what, others := range map[string][2]string{"alone": {"", ""}, "beside others": {owner("b", "Apply", `{"f:spec":{"f:plain":{}}}`), ""}} {
			list := func(first, other string) []string {
				if other == "" {
					return []string{first}
				}
				return []string{first, other}
			}
			got, err := Diff(t.Context(), []byte(of("2", list(entry(c.old), others[0])...)), []byte(of("3", list(entry(c.new), others[1])...)), k, none)
			if err != nil {
				t.Fatal(err)
			}
			if lost := slices.ContainsFunc(got, func(r Requirement) bool { return r.Path.IsRoot() && r.Operation == Ownership }); lost != c.lost {
				t.Errorf("%s, %s: %q: the object is charged: %t, want %t", name, what, renderAll(got), lost, c.lost)
			}
		}
	}
}

// D8: the API server changes the uid without any manager.
func TestD8_FieldsThatTheServerWritesGetNoNewOwner(t *testing.T) {
	k, none := compileGadget(t)
	of := func(uid, n string, owners ...string) string {
		return owned(`,"uid":"`+uid+`"|,"spec":{"replicas":`+n+`}`, owners...)
	}
	const fields = `{"f:metadata":{"f:uid":{}}}`
	expectDiff(t, k, none, of("1", "2"), of("2", "3", owner("a", "Update", fields)), "modified .spec.replicas: * specification scale", "ownership .metadata.uid: * metadata")
	// The API server removes it.
	expectDiff(t, k, none, of("1", "2", owner("a", "Update", fields)), of("2", "3"), "modified .spec.replicas: * specification scale")
}
