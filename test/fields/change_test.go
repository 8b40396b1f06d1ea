//go:build integration

package fields

import (
	"encoding/json"
	"reflect"
	"slices"
	"strconv"

	recorded "github.com/fieldperm/fieldperm/schema/endpoint"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

// updated explains the effects of changes of stored objects. It reports for each change separately whether the result varies: the removal
// of a field may be certain even if a value for it is not.
func updated(f target, all []trial) []recorded.Write {
	var trials []*trial // These are the trials in which the request does not change the field.
	var caused []*trial // In these the API server changes it.
	for i := range all {
		t := &all[i]
		if t.create {
			continue
		}
		w, wrote := t.wrote[f.path]
		switch {
		case wrote && t.cause == nil:
			f.uncaused[class(w)] = true
		case wrote:
			trials, caused = append(trials, t), append(caused, t)
		case f.names == nil || reflect.DeepEqual(at(t.asked, f.names), at(t.before, f.names)):
			trials = append(trials, t)
		}
	}
	var out []recorded.Write
	add := func(w *recorded.Write) {
		if !slices.ContainsFunc(out, func(o recorded.Write) bool { return reflect.DeepEqual(o, *w) }) {
			out = append(out, *w)
		}
	}
	if f.uncaused != [2]bool{} {
		add(&recorded.Write{Varies: true})
	}
	counts := f.counts(caused)
	unexplained := map[string]bool{}
	for _, t := range caused {
		w := f.change(t, counts)
		above := f.everywhere(t, w, trials, counts)
		is := f.forValue(t, w, trials, counts)
		switch {
		case f.uncaused[class(t.wrote[f.path])]:
			// No field that was tried is its cause.
		case w.Varies:
			w.With = pathOf(t.cause)
			add(w)
		case !f.original(w, caused, counts):
			unexplained[pathOf(t.cause)] = true
		case above != nil:
			w.With = pathOf(above)
			add(w)
		case is != nil:
			w.With, w.Is = pathOf(t.cause), []json.RawMessage{is}
			add(w)
		default:
			unexplained[pathOf(t.cause)] = true
		}
	}
	out = joined(out)
	if len(unexplained) > 0 {
		out = append(out, recorded.Write{DependsOn: sorted(unexplained)})
	}
	return out
}

// class separates a write that removes a field from a write that sets it.
func class(w wrote) int {
	if w.is == nil {
		return 1
	}
	return 0
}

// varies reports whether the next write like the one of a trial may have another result.
func (f *target) varies(t *trial) bool {
	w := t.wrote[f.path]
	again, repeated := t.again[f.path]
	return w.is != nil && (f.differs || hasTime(w.is)) || t.again != nil && (!repeated || !reflect.DeepEqual(again.is, w.is))
}

// original reports whether the API server made the value of a change: in at least one trial the object had it in no other field. Otherwise
// the value may be copied or computed from there.
func (f *target) original(w *recorded.Write, caused []*trial, counts bool) bool {
	if w.Becomes == nil {
		return true
	}
	return slices.ContainsFunc(caused, func(t *trial) bool {
		return reflect.DeepEqual(f.change(t, counts), w) && !has(t.asked, t.wrote[f.path].is)
	})
}

// has reports whether a distinctive value occurs anywhere in an object. Values such as true, 0 and 1 are not distinctive.
func has(object, value any) bool {
	switch value {
	case true, false, "", int64(0), int64(1):
		return false
	}
	if reflect.DeepEqual(object, value) {
		return true
	}
	switch x := object.(type) {
	case map[string]any:
		return slices.ContainsFunc(sorted(x), func(name string) bool { return has(x[name], value) })
	case []any:
		return slices.ContainsFunc(x, func(item any) bool { return has(item, value) })
	}
	return false
}

// counts reports whether the field grew by one in each trial, from different numbers.
func (f *target) counts(trials []*trial) bool {
	from := map[string]bool{}
	for _, t := range trials {
		w := t.wrote[f.path]
		was, _ := w.was.(string)
		is, _ := w.is.(string)
		n, err := strconv.Atoi(was)
		if err != nil || is != strconv.Itoa(n+1) {
			return false
		}
		from[was] = true
	}
	return len(from) > 1
}

// change is the change of the field in one trial.
func (f *target) change(t *trial, counts bool) *recorded.Write {
	w := t.wrote[f.path]
	switch {
	case f.varies(t):
		return &recorded.Write{Varies: true}
	case counts:
		return &recorded.Write{Present: true, Counts: true}
	case w.is == nil:
		return &recorded.Write{Present: true, Removed: true}
	case t.whole && w.was == nil && reflect.DeepEqual(w.is, at(t.after, t.cause)) && !t.few:
		return &recorded.Write{Copies: pathOf(t.cause)}
	case w.was == nil:
		return &recorded.Write{Becomes: raw(w.is)}
	}
	return &recorded.Write{From: raw(w.was), Becomes: raw(w.is)}
}

// differently reports whether the API server had another effect in a trial, although the request left the field as it was.
func (f *target) differently(t *trial, w *recorded.Write, counts bool) bool {
	if _, wrote := t.wrote[f.path]; wrote {
		return !reflect.DeepEqual(f.change(t, counts), w)
	}
	was := f.before(t)
	switch {
	case w.Present:
		return was != nil
	case w.From != nil:
		return string(raw(was)) == string(w.From)
	}
	return was == nil
}

// before is the value of the field before a trial, or of the first item with the field.
func (f *target) before(t *trial) any {
	if f.names != nil {
		return at(t.before, f.names)
	}
	p, err := fieldpath.ParsePattern(f.path)
	if err != nil {
		return nil
	}
	return firstBelow(t.before, p.Steps())
}

func firstBelow(v any, steps []string) any {
	for i, name := range steps {
		if name != "" {
			object, _ := v.(map[string]any)
			v = object[name]
			continue
		}
		items, _ := v.([]any)
		for _, item := range items {
			if is := firstBelow(item, steps[i+1:]); is != nil {
				return is
			}
		}
		return nil
	}
	return v
}

// leastTrials is the number of writes below a field that have to agree before the field counts as the cause.
const leastTrials = 2

// everywhere returns the highest field above the written one for which every tried change had the same effect.
func (f *target) everywhere(t *trial, w *recorded.Write, trials []*trial, counts bool) []string {
	for n := 2; n <= len(t.cause); n++ {
		above := t.cause[:n]
		if within(f.names, above) {
			continue
		}
		agree, values := 0, map[string]bool{}
		for _, other := range trials {
			if !within(other.cause, above) {
				continue
			}
			if f.differently(other, w, counts) {
				agree = -1
				break
			}
			if _, wrote := other.wrote[f.path]; wrote {
				agree++
				values[string(raw(at(other.after, above)))] = true
			}
		}
		if agree >= leastTrials && len(values) >= leastTrials {
			return above
		}
	}
	return nil
}

// forValue returns the value of the cause, if every trial with this value had the same effect.
func (f *target) forValue(t *trial, w *recorded.Write, trials []*trial, counts bool) json.RawMessage {
	is := at(t.after, t.cause)
	if is == nil || !t.whole || !t.few {
		return nil
	}
	for _, other := range trials {
		if slices.Equal(other.cause, t.cause) && reflect.DeepEqual(at(other.after, t.cause), is) && f.differently(other, w, counts) {
			return nil
		}
	}
	return raw(is)
}
