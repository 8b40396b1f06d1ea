//go:build integration

package fields

import (
	"testing"

	recorded "github.com/fieldperm/fieldperm/schema/endpoint"
)

// updates makes a trial in which the change of one field to a value has an effect on .spec.out.
func updates(cause string, value, was, is, again any, beside map[string]any) trial {
	object := func(v, out any) map[string]any {
		spec := map[string]any{}
		for name, beside := range beside {
			spec[name] = beside
		}
		if v != nil {
			spec[cause] = v
		}
		if out != nil {
			spec["out"] = out
		}
		return map[string]any{"spec": spec}
	}
	out := []string{"spec", "out"}
	return trial{
		cause: []string{"spec", cause}, whole: true, few: true,
		before: object("before", was), asked: object(value, was), after: object(value, is),
		wrote: map[string]wrote{".spec.out": {out, was, is}}, again: map[string]wrote{".spec.out": {out, was, again}},
	}
}

// D13: only a write that the API server makes for a cause each time, and for no other reason, is free in a recording.
func TestD13_ResultsOfATrial(t *testing.T) {
	created := func(value string) trial {
		return trial{create: true, wrote: map[string]wrote{".spec.out": {[]string{"spec", "out"}, nil, value}}}
	}
	nothing := updates("", nil, nil, "made", "made", nil)
	nothing.cause = nil
	for name, c := range map[string]struct {
		trials  []trial
		made    bool // The value for type A is free.
		removed bool // The removal for type B is free.
	}{
		"each time":             {[]trial{updates("type", "A", nil, "made", "made", nil), updates("type", "B", "old", nil, nil, nil)}, true, true},
		"another value again":   {[]trial{updates("type", "A", nil, "made", "other", nil), updates("type", "B", "old", nil, nil, nil)}, false, true},
		"not removed again":     {[]trial{updates("type", "A", nil, "made", "made", nil), updates("type", "B", "old", nil, "old", nil)}, true, false},
		"a time":                {[]trial{updates("type", "A", nil, map[string]any{"at": "2026-01-01T00:00:00Z"}, map[string]any{"at": "2026-01-01T00:00:00Z"}, nil), updates("type", "B", "old", nil, nil, nil)}, false, true},
		"allocated":             {[]trial{created("one"), created("two"), updates("type", "A", nil, "made", "made", nil), updates("type", "B", "old", nil, nil, nil)}, false, true},
		"the value of a field":  {[]trial{updates("type", "A", nil, "made", "made", map[string]any{"from": "made"}), updates("type", "B", "old", nil, nil, nil)}, false, true},
		"for nothing":           {[]trial{nothing, updates("type", "A", nil, "made", "made", nil), updates("type", "B", "old", nil, nil, nil)}, false, true},
		"another with the same": {[]trial{updates("type", "A", nil, "made", "made", nil), updates("type", "A", nil, "other", "other", nil), updates("type", "B", "old", nil, nil, nil)}, false, true},
	} {
		made, removed := false, false
		for _, w := range explain(recorded.Kind{Kind: "Thing"}, "v1", c.trials) {
			if w.On != "UPDATE" || !w.Predictable() {
				continue
			}
			removed = removed || w.Removed
			made = made || w.Becomes != nil
		}
		if made != c.made || removed != c.removed {
			t.Errorf("%s: the value is free: %v, want %v; the removal is: %v, want %v", name, made, c.made, removed, c.removed)
		}
	}
}
