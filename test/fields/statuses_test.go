//go:build integration

package fields

import (
	"context"
	"reflect"
	"slices"
	"testing"

	recorded "github.com/fieldperm/fieldperm/schema/endpoint"
	"github.com/fieldperm/fieldperm/test/cluster"
	"github.com/fieldperm/fieldperm/test/openapi"
)

// C2, D11: only for some built-in resources does the API server store the status of a new object, and of none that of an updated one.
func TestD11_WhichNewObjectsKeepTheirStatus(t *testing.T) {
	plane, err := cluster.Start(t.Context(), cluster.Config{Dir: t.TempDir(), ExtraArgs: serverFlags("AllAlpha=true,AllBeta=true")})
	must(t, err)
	t.Cleanup(func() { must(t, plane.Stop()) })
	r := prepare(t, plane.Admin())
	kept := map[string]bool{}
	for _, e := range r.endpoints {
		hasStatus := slices.ContainsFunc(r.endpoints, func(o *endpoint) bool { return o.gvr == e.gvr && o.subresource == "status" })
		if !e.creatable || e.subresource != "" || !hasStatus || !recorded.BuiltIn(e.gvr.Group, e.gvr.Resource) {
			continue
		}
		stored, sent, err := r.base(t.Context(), e, nil)
		must(t, err)
		x := &explorer{run: r, endpoint: e, types: r.types.kind(e.kind), base: stored, sent: sent}
		x.took = func(_ context.Context, f *try, w *write) error {
			asked, _ := get(w.body, w.place)
			is, _ := get(w.after, w.place)
			was, _ := get(stored, w.place)
			if !reflect.DeepEqual(asked, is) || reflect.DeepEqual(is, was) {
				return nil
			}
			kept[e.gvr.Resource] = true
			if w.before != nil || !recorded.StatusOnCreate(e.gvr.Group, e.gvr.Resource) {
				t.Errorf("%s stores %s of the object, %v", e, f.path, is)
			}
			return nil
		}
		x.types.walk(nil, x.types.root, nil, func(p path, m *openapi.Type) bool {
			if p[0].field != "status" {
				return false
			}
			if len(m.Properties) > 0 {
				return true
			}
			f := &try{endpoint: e, path: p.String()}
			m = x.types.Resolve(m)
			for _, edits := range [][]edit{x.types.edits(x.base, p, m), x.types.edits(x.sent, p, m)} {
				for i := range edits[:min(len(edits), mostValues)] {
					send := x.update
					if _, isStored := get(edits[i].object, []any{"metadata", "uid"}); !isStored {
						send = x.create
					}
					_, err := send(t.Context(), f, &edits[i])
					must(t, err)
				}
			}
			return true
		})
	}
	if len(kept) != 1 || !kept["nodes"] {
		t.Errorf("kept is the status of new %v", kept)
	}
}
