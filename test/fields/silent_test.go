//go:build integration

package fields

import (
	"context"
	"net/http"

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
