//go:build integration

package fields

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/test/openapi"
)

// trial is one write of one field, with its effect in the API server.
type trial struct {
	create bool
	// base is the number of the changed object.
	base int
	// cause are the names on the way to the written field, or to the list or map that contains it; nil for a write without a change.
	cause []string
	// whole says that cause is the field itself.
	whole bool
	// few says that the field has few values, which are all tried.
	few           bool
	asked, before map[string]any
	after         map[string]any
	wrote         map[string]wrote
	// again are the additional fields of a second, equal write.
	again map[string]wrote
	// raises says that the write raised the generation by one.
	raises bool
}

// mostValues is the number of values that are written to a field, unless it has so few that all are written. mostTried is the maximum for
// that.
const (
	mostValues = 2
	mostTried  = 3
)

// observe writes the fields of all endpoints of a kind, one at a time.
func (r *run) observe(ctx context.Context, gvk runtimeschema.GroupVersionKind, endpoints []*endpoint, wanted func(path) bool) ([]trial, error) {
	seeds, err := loadSeeds()
	if err != nil {
		return nil, err
	}
	variants := []*variant{nil}
	for i := range seeds[gvk.GroupKind()].Variants {
		variants = append(variants, &seeds[gvk.GroupKind()].Variants[i])
	}
	var out []trial
	for _, e := range endpoints {
		ref := schema.ResourceRef{Group: e.gvr.Group, Resource: e.gvr.Resource, Subresource: e.subresource}
		kind, err := r.kindOf(e, ref)
		if err != nil {
			return nil, err
		}
		types := r.types.kind(e.kind)
		if types == nil {
			return nil, fmt.Errorf("kind %s has no schema", e.kind)
		}
		for i, v := range variants {
			o := &observer{explorer: explorer{run: r, endpoint: e, kind: kind, types: types}, variant: i}
			o.wanted = func(p path) bool { return v.concerns(p) && wanted(p) }
			if o.base, o.sent, err = r.base(ctx, e, v); err != nil {
				return nil, fmt.Errorf("%s: %w", e, err)
			}
			if content := comparable(o.base); hasTime(content["spec"]) || hasTime(content["status"]) {
				time.Sleep(time.Second) // A write in the second of the creation would have the same time.
			}
			o.took = o.note
			if err := o.all(ctx); err != nil {
				return nil, fmt.Errorf("%s: %w", e, err)
			}
			out = append(out, o.trials...)
			silent, err := o.silent(ctx, len(variants))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", e, err)
			}
			if silent == nil {
				continue
			}
			if err := silent.all(ctx); err != nil {
				return nil, fmt.Errorf("%s: %w", e, err)
			}
			if err := silent.beside(ctx); err != nil {
				return nil, fmt.Errorf("%s: %w", e, err)
			}
			out = append(out, silent.trials...)
		}
	}
	return out, nil
}

// observer is an explorer that records the additional fields that the API server writes.
type observer struct {
	explorer
	variant int
	trials  []trial
	// suffix is a part of the names of new objects.
	suffix string
	// wanted are the fields to write.
	wanted func(path) bool
	// now is the field that is being written. few says that it has few values.
	now path
	few bool
	// choices are the fields with few values, and refused the fields that no new object could be given.
	choices, refused []place
	// several says that new objects get several values of a field.
	several bool
}

func (o *observer) all(ctx context.Context) error {
	if err := o.nothing(ctx); err != nil {
		return err
	}
	known := map[string]bool{}
	var fields []place
	o.types.walk(nil, o.types.root, nil, func(p path, m *openapi.Type) bool {
		if skipped(p) || o.elsewhere(p) {
			return false
		}
		if len(m.Properties) > 0 {
			return true
		}
		// A cause is a list or map as a whole, so that one field in it is enough.
		if inside := slices.IndexFunc(p, func(s step) bool { return s.any }); inside >= 0 {
			list := p[:inside].String()
			if known[list] {
				return false
			}
			known[list] = true
		}
		if m := o.types.Resolve(m); hasFew(m) {
			o.choices = append(o.choices, place{p, m})
		}
		if o.wanted(p) {
			fields = append(fields, place{p, m})
		}
		return true
	})
	for _, f := range fields {
		if err := o.values(ctx, f.path, f.model); err != nil {
			return fmt.Errorf("%s: %w", f.path, err)
		}
	}
	return nil
}

func hasFew(m *openapi.Type) bool { return len(m.Enum) > 0 || m.Type == "boolean" }

// elsewhere reports whether a field is written through another endpoint.
func (o *observer) elsewhere(p path) bool {
	has := func(subresource string) bool {
		return slices.ContainsFunc(o.endpoints, func(e *endpoint) bool { return e.gvr == o.endpoint.gvr && e.subresource == subresource })
	}
	return o.endpoint.subresource == "" && p[0].field == "status" && has("status") ||
		o.endpoint.subresource == "status" && p[0].field != "status"
}

// nothing creates two new objects as two users, permanently, and sends the stored objects unchanged.
func (o *observer) nothing(ctx context.Context) error {
	o.now, o.few = nil, false
	t := &try{endpoint: o.endpoint}
	if o.endpoint.creatable {
		for i, suffix := range []string{"-one" + o.suffix, "-two" + o.suffix} {
			e := &edit{object: runtime.DeepCopyJSON(o.sent)}
			body := withName(e.object, o.name()+suffix)
			// A dry run allocates nothing, and gets the same address each time.
			url := o.endpoint.path() + "?fieldManager=fields"
			if metadata, _ := body["metadata"].(map[string]any); metadata["name"] != o.name()+suffix+"-new" {
				url = o.endpoint.path() + dryRun // Its name is in use, or its kind has a fixed name.
			}
			a, err := o.server.write(ctx, http.MethodPost, url, body, [][]string{nil, {"system:masters"}}[i])
			if err != nil {
				return err
			}
			if a.ok() {
				if err := o.took(ctx, t, &write{e, http.MethodPost, url, body, nil, a.object}); err != nil {
					return err
				}
			}
		}
	}
	if o.endpoint.updatable {
		_, err := o.update(ctx, t, &edit{object: o.base})
		return err
	}
	return nil
}

// values writes some values of a field, or all its possible values.
func (o *observer) values(ctx context.Context, p path, m *openapi.Type) error {
	o.now = p
	m = o.types.Resolve(m)
	most, candidates := mostValues, mostTried
	if o.few = hasFew(m); o.few {
		most, candidates = len(m.Enum)+2, len(m.Enum)+2
	}
	t := &try{endpoint: o.endpoint, path: p.String()}
	taken := 0
	some := func(object map[string]any, send func(context.Context, *try, *edit) (bool, error)) error {
		edits := o.types.edits(object, p, m)
		taken = 0
		for i := range edits[:min(len(edits), candidates)] {
			t.refused = ""
			done, err := send(ctx, t, &edits[i])
			if err != nil {
				return err
			}
			if done {
				taken++
			}
			if taken == most || strings.HasPrefix(t.refused, "ignored") {
				break
			}
		}
		return nil
	}
	if o.endpoint.updatable {
		if err := some(o.base, o.update); err != nil {
			return err
		}
	}
	if o.endpoint.creatable {
		if !o.several {
			most = max(most-1, 1)
		}
		if err := some(o.sent, o.create); err != nil {
			return err
		}
		if taken == 0 {
			o.refused = append(o.refused, place{p, m})
		}
	}
	return nil
}

// note records the additional fields of a write.
func (o *observer) note(ctx context.Context, _ *try, w *write) error {
	before := w.before
	t := trial{create: before == nil, base: o.variant, before: comparableOf(before), asked: comparable(w.body), after: comparable(w.after)}
	for _, s := range o.now {
		if s.any {
			break
		}
		t.cause = append(t.cause, s.field)
	}
	t.whole, t.few = len(t.cause) == len(o.now), o.few
	t.wrote = compare(o.kind, t.before, t.asked, t.after)
	t.raises = before != nil && generation(w.after) == generation(before)+1
	if !t.create && len(t.wrote) > 0 {
		a, err := o.server.write(ctx, w.method, w.url, w.body, nil)
		if err != nil {
			return err
		}
		if a.ok() {
			t.again = compare(o.kind, t.before, t.asked, comparable(a.object))
		}
	}
	o.trials = append(o.trials, t)
	return nil
}

// generation returns the generation of an object, 0 for none.
func generation(object map[string]any) int64 {
	out, _ := at(object, []string{"metadata", "generation"}).(int64)
	return out
}

func comparableOf(object map[string]any) map[string]any {
	if object == nil {
		return nil
	}
	return comparable(object)
}

// byKind are the endpoints of each kind, in stable versions.
func (r *run) byKind() map[runtimeschema.GroupVersionKind][]*endpoint {
	out := map[runtimeschema.GroupVersionKind][]*endpoint{}
	for _, e := range r.endpoints {
		// The effects of an alpha or beta version may change, so that they are not recorded.
		stable := !strings.Contains(e.gvr.Version, "alpha") && !strings.Contains(e.gvr.Version, "beta")
		if stable && e.kind.Group == e.gvr.Group && strings.Contains(e.String(), *only) {
			out[e.kind] = append(out[e.kind], e)
		}
	}
	return out
}

func kindsInOrder[V any](m map[runtimeschema.GroupVersionKind]V) []runtimeschema.GroupVersionKind {
	return slices.SortedFunc(maps.Keys(m), func(a, b runtimeschema.GroupVersionKind) int {
		return strings.Compare(a.String(), b.String())
	})
}
