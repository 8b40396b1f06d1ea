//go:build integration

package fields

import (
	"context"
	"net/http"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
)

// silent returns an observer of new objects that leave out each field of the sample that the API server then sets by itself. The sample
// has a value for such a field, so that its default is not seen otherwise. It returns nil if there is no such field.
func (o *observer) silent(ctx context.Context, variants int) (*observer, error) {
	if !o.endpoint.creatable {
		return nil, nil
	}
	out := *o
	creating := *o.endpoint
	creating.updatable = false
	out.endpoint, out.trials, out.variant, out.suffix = &creating, nil, o.variant+variants, "-silent"
	out.took = out.note
	out.sent = runtime.DeepCopyJSON(o.sent)
	found := false
	for _, place := range fieldsOf(nil, o.sent) {
		if _, ok := get(out.sent, place); !ok {
			continue // What holds it is left out.
		}
		body := runtime.DeepCopyJSON(out.sent)
		remove(body, place)
		a, err := o.server.write(ctx, http.MethodPost, creating.path()+dryRun, withName(runtime.DeepCopyJSON(body), o.name()), nil)
		if err != nil {
			return nil, err
		}
		if a.ok() && there(a.object, place) {
			out.sent, found = body, true
		}
	}
	if !found {
		return nil, nil
	}
	return &out, nil
}

// beside writes the fields that no new object could be given once more, beside each value of each field of the same struct that has few
// values. What the API server sets may depend on a field that not every such value allows.
func (o *observer) beside(ctx context.Context) error {
	isBeside := func(a, b path) bool {
		inList := func(p path) bool { return slices.ContainsFunc(p, func(s step) bool { return s.any }) }
		return len(a) == len(b) && !inList(a) && !inList(b) && a.String() != b.String() && a[:len(a)-1].String() == b[:len(b)-1].String()
	}
	base := (o.variant + 1) * 1000
	for _, choice := range o.choices {
		if !slices.ContainsFunc(o.refused, func(f place) bool { return isBeside(f.path, choice.path) }) {
			continue
		}
		edits := o.types.edits(o.sent, choice.path, choice.model)
		for i := range edits[:min(len(edits), len(choice.model.Enum)+2)] {
			base++
			x := *o
			x.trials, x.refused, x.sent, x.variant, x.several = nil, nil, edits[i].object, base, true
			x.took, x.now, x.few = x.note, nil, false
			if done, err := x.create(ctx, &try{endpoint: x.endpoint}, &edits[i]); err != nil {
				return err
			} else if !done {
				continue
			}
			for _, f := range o.refused {
				if !isBeside(f.path, choice.path) {
					continue
				}
				if err := x.values(ctx, f.path, f.model); err != nil {
					return err
				}
			}
			if len(x.trials) > 1 {
				o.trials = append(o.trials, x.trials...)
			}
		}
	}
	return nil
}

// fieldsOf returns the places of all fields of an object except its identity and metadata, a field before the fields in it.
func fieldsOf(at []any, value any) [][]any {
	var out [][]any
	below := func(key any) []any { return append(at[:len(at):len(at)], key) }
	switch x := value.(type) {
	case map[string]any:
		for _, name := range sorted(x) {
			if len(at) == 0 && (name == "apiVersion" || name == "kind" || name == "metadata") {
				continue
			}
			out = append(append(out, below(name)), fieldsOf(below(name), x[name])...)
		}
	case []any:
		for i := range x {
			out = append(out, fieldsOf(below(i), x[i])...)
		}
	}
	return out
}
