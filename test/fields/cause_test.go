//go:build integration

package fields

import (
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fieldperm/fieldperm/schema"
	recorded "github.com/fieldperm/fieldperm/schema/endpoint"
)

// explain says of each field that the API server wrote in some trials of a kind because of what it did. What no single
// field explains is said to depend on several.
func explain(kind recorded.Kind, version string, trials []trial) []recorded.Write {
	var out []recorded.Write
	add := func(on string, field string, writes []recorded.Write) {
		for _, w := range writes {
			w.Kind, w.Versions, w.Field, w.On = kind, []string{version}, field, on
			out = append(out, w)
		}
	}
	for _, field := range fieldsWritten(trials, true) {
		add("CREATE", field.path, created(field, trials))
	}
	for _, field := range fieldsWritten(trials, false) {
		add("UPDATE", field.path, updated(field, trials))
	}
	return out
}

// target is a field that the API server wrote.
type target struct {
	path  string
	names []string
}

func fieldsWritten(trials []trial, create bool) []target {
	found := map[string]target{}
	for i := range trials {
		if t := &trials[i]; t.create == create {
			for path, w := range t.wrote {
				found[path] = target{path, w.names}
			}
		}
	}
	out := make([]target, 0, len(found))
	for _, path := range sorted(found) {
		out = append(out, found[path])
	}
	return out
}

// itsName stands for the name of the object.
type itsName struct{}

// moment stands for a time: no other write will have the same.
type moment struct{}

// result is what the field became in a trial, nil for nothing. It reports false where the request named the field.
func (f *target) result(t *trial) (any, bool) {
	if w, ok := t.wrote[f.path]; ok {
		if w.is == at(t.after, []string{"metadata", "name"}) {
			return itsName{}, true
		}
		if isTime(w.is) {
			return moment{}, true
		}
		return w.is, true
	}
	if f.names == nil {
		return nil, true
	}
	return nil, at(t.asked, f.names) == nil
}

// created explains what new objects get.
func created(f target, all []trial) []recorded.Write {
	var trials []*trial
	var results []any
	for i := range all {
		if t := &all[i]; t.create {
			if is, unnamed := f.result(t); unnamed {
				trials, results = append(trials, t), append(results, is)
			}
		}
	}
	first, different := results[0], false
	for _, r := range results {
		different = different || !reflect.DeepEqual(r, first)
	}
	if slices.ContainsFunc(results, func(r any) bool { return r == any(moment{}) }) {
		return []recorded.Write{{Varies: true}}
	}
	if !different {
		return []recorded.Write{became(first)}
	}
	// Two objects with nothing different but their names.
	plain := map[int]any{}
	for i, t := range trials {
		if t.cause != nil {
			continue
		}
		if known, ok := plain[t.base]; ok && !reflect.DeepEqual(known, results[i]) {
			return []recorded.Write{{Varies: true}}
		}
		plain[t.base] = results[i]
	}
	suspects, others := map[string][]string{}, map[string]bool{}
	for i, t := range trials {
		if t.cause != nil && !reflect.DeepEqual(plain[t.base], results[i]) {
			others[pathOf(t.cause)] = true
			if t.whole && t.few && !within(t.cause, f.names) && !within(f.names, t.cause) {
				suspects[pathOf(t.cause)] = t.cause
			}
		}
	}
	for _, path := range sorted(suspects) {
		if out := byValue(suspects[path], trials, results); out != nil {
			return out
		}
	}
	if len(others) == 0 {
		others["another object of the kind"] = true
	}
	return []recorded.Write{{DependsOn: sorted(others)}}
}

// became is a write of a result.
func became(result any) recorded.Write {
	if _, name := result.(itsName); name {
		return recorded.Write{Copies: ".metadata.name"}
	}
	return recorded.Write{Becomes: raw(result)}
}

func isTime(v any) bool {
	text, _ := v.(string)
	_, err := time.Parse(time.RFC3339, text)
	return err == nil
}

// byValue returns a write for each value that the cause has in the stored objects, nil if the cause does not explain all
// of the results.
func byValue(cause []string, trials []*trial, results []any) []recorded.Write {
	type group struct{ value, result any }
	var groups []group
	for i, t := range trials {
		value := at(t.after, cause)
		switch value.(type) {
		case map[string]any, []any:
			return nil
		}
		known := slices.IndexFunc(groups, func(g group) bool { return reflect.DeepEqual(g.value, value) })
		if known < 0 {
			groups = append(groups, group{value, results[i]})
		} else if !reflect.DeepEqual(groups[known].result, results[i]) {
			return nil
		}
	}
	var out []recorded.Write
	for _, g := range groups {
		if g.value == nil || g.result == nil {
			continue
		}
		w := became(g.result)
		w.With, w.Is = pathOf(cause), []json.RawMessage{raw(g.value)}
		out = append(out, w)
	}
	return joined(out)
}

// joined puts writes together that differ only in what their cause is.
func joined(writes []recorded.Write) []recorded.Write {
	var out []recorded.Write
	for _, w := range writes {
		is := w.Is
		w.Is = nil
		same := slices.IndexFunc(out, func(o recorded.Write) bool { o.Is = nil; return reflect.DeepEqual(o, w) })
		if same < 0 {
			w.Is = is
			out = append(out, w)
			continue
		}
		for _, v := range is {
			if !slices.ContainsFunc(out[same].Is, func(k json.RawMessage) bool { return string(k) == string(v) }) {
				out[same].Is = append(out[same].Is, v)
			}
		}
	}
	for i := range out {
		slices.SortFunc(out[i].Is, func(a, b json.RawMessage) int { return strings.Compare(string(a), string(b)) })
	}
	return out
}

// updated explains what changes of stored objects cause.
func updated(f target, all []trial) []recorded.Write {
	var trials []*trial // Those in which the request leaves the field alone.
	var caused []*trial // And the API server does not.
	for i := range all {
		t := &all[i]
		if t.create {
			continue
		}
		w, wrote := t.wrote[f.path]
		switch {
		case wrote && t.cause == nil, wrote && isTime(w.is), wrote && t.again != nil && !reflect.DeepEqual(t.again[f.path].is, w.is):
			return []recorded.Write{{Varies: true}}
		case wrote:
			trials, caused = append(trials, t), append(caused, t)
		case f.names == nil || reflect.DeepEqual(at(t.asked, f.names), at(t.before, f.names)):
			trials = append(trials, t)
		}
	}
	counts := f.counts(caused)
	var out []recorded.Write
	unexplained := map[string]bool{}
	for _, t := range caused {
		w := f.change(t, counts)
		if above := f.everywhere(t, w, trials, counts); above != nil {
			w.With = pathOf(above)
		} else if is := f.forValue(t, w, trials, counts); is != nil {
			w.With, w.Is = pathOf(t.cause), []json.RawMessage{is}
		} else {
			unexplained[pathOf(t.cause)] = true
			continue
		}
		if !slices.ContainsFunc(out, func(o recorded.Write) bool { return reflect.DeepEqual(o, *w) }) {
			out = append(out, *w)
		}
	}
	out = joined(out)
	if len(unexplained) > 0 {
		out = append(out, recorded.Write{DependsOn: sorted(unexplained)})
	}
	return out
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

// change is what became of the field in one trial.
func (f *target) change(t *trial, counts bool) *recorded.Write {
	w := t.wrote[f.path]
	switch {
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

// differently reports whether the API server did something else in a trial than the change, though the field was the same.
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

// before is what a trial found in the field, or in the first item that has it.
func (f *target) before(t *trial) any {
	if f.names != nil {
		return at(t.before, f.names)
	}
	p, err := schema.ParsePattern(f.path)
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

// leastTrials is how many writes below a field have to agree before it is taken for the cause.
const leastTrials = 2

// everywhere returns the highest field on the way to what was written of which every change that was tried had the same
// effect.
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

// forValue returns the value of the cause, if every trial that gave it had the same effect.
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

// within reports whether names lead to above or below it.
func within(names, above []string) bool {
	return len(names) >= len(above) && slices.Equal(names[:len(above)], above)
}

func pathOf(names []string) string {
	out := ""
	for _, name := range names {
		out += rendered(name)
	}
	return out
}

func raw(v any) json.RawMessage {
	out, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return out
}
