//go:build integration

package fields

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"

	recorded "github.com/fieldperm/fieldperm/schema/endpoint"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

// explain finds the cause of each field that the API server wrote by itself in some trials of a kind. If no single field explains the
// write, the result says that it depends on several fields.
func explain(kind recorded.Kind, version string, trials []trial) []recorded.Write {
	var out []recorded.Write
	add := func(on string, field string, writes []recorded.Write) {
		for _, w := range writes {
			w.Kind, w.Versions, w.Field, w.On = kind, []string{version}, field, on
			out = append(out, w)
		}
	}
	differs := map[string]bool{}
	for _, field := range fieldsWritten(trials, true) {
		writes := created(field, trials)
		add("CREATE", field.path, writes)
		differs[field.path] = slices.ContainsFunc(writes, func(w recorded.Write) bool { return w.Varies })
	}
	for _, field := range fieldsWritten(trials, false) {
		field.differs = differs[field.path]
		add("UPDATE", field.path, updated(field, trials))
	}
	add("UPDATE", ".metadata.generation", raising(trials))
	return out
}

// raising returns the parts of the metadata of which every change raises the generation. All other parts of an object raise it too, or the
// kind has none.
func raising(trials []trial) []recorded.Write {
	always := map[string]bool{}
	for i := range trials {
		t := &trials[i]
		if t.create || len(t.cause) != 2 || t.cause[0] != "metadata" || reflect.DeepEqual(at(t.before, t.cause), at(t.after, t.cause)) {
			continue
		}
		path := pathOf(t.cause)
		if other, known := always[path]; !known || other {
			always[path] = t.raises
		}
	}
	var out []recorded.Write
	for _, path := range sorted(always) {
		if always[path] {
			out = append(out, recorded.Write{With: path, Present: true, Counts: true})
		}
	}
	return out
}

// target is a field that the API server wrote.
type target struct {
	path  string
	names []string
	// differs says that two new objects got different values: then the value of an update in a dry run does not predict the next one.
	differs bool
	// uncaused says that an update without a change set the field, or, under true, removed it.
	uncaused [2]bool
}

func fieldsWritten(trials []trial, create bool) []target {
	found := map[string]target{}
	for i := range trials {
		if t := &trials[i]; t.create == create {
			for path, w := range t.wrote {
				found[path] = target{path: path, names: w.names}
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

// moment stands for a time: no other write has the same time.
type moment struct{}

// result is the value of the field after a trial, nil for none. It reports false if the request itself set the field.
func (f *target) result(t *trial) (any, bool) {
	if w, ok := t.wrote[f.path]; ok {
		if w.is == at(t.after, []string{"metadata", "name"}) {
			return itsName{}, true
		}
		if hasTime(w.is) {
			return moment{}, true
		}
		return w.is, true
	}
	if f.names == nil {
		return nil, true
	}
	return nil, at(t.asked, f.names) == nil
}

// created explains the values that new objects get.
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
	// The two objects differ only in their names.
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
	suspects, others, wholes := map[string][]string{}, map[string]bool{}, map[string][]string{}
	for i, t := range trials {
		if t.cause != nil && !reflect.DeepEqual(plain[t.base], results[i]) {
			others[pathOf(t.cause)] = true
			if t.whole && !within(t.cause, f.names) && !within(f.names, t.cause) {
				wholes[pathOf(t.cause)] = t.cause
			}
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
	for _, path := range sorted(wholes) {
		if out := byPresence(wholes[path], trials, results); out != nil {
			return out
		}
	}
	if len(others) == 0 {
		others["another object of the kind"] = true
	}
	return []recorded.Write{{DependsOn: sorted(others)}}
}

// became is a write with a result.
func became(result any) recorded.Write {
	if _, name := result.(itsName); name {
		return recorded.Write{Copies: ".metadata.name"}
	}
	return recorded.Write{Becomes: raw(result)}
}

// hasTime reports whether a value is or contains a time. Two writes within one second get the same time.
func hasTime(v any) bool {
	switch x := v.(type) {
	case map[string]any:
		return slices.ContainsFunc(sorted(x), func(name string) bool { return hasTime(x[name]) })
	case []any:
		return slices.ContainsFunc(x, hasTime)
	case string:
		_, err := time.Parse(time.RFC3339, x)
		return err == nil
	}
	return false
}

// byValue returns a write for each value of the cause in the stored objects, nil if the cause does not explain all results.
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

// byPresence returns a write for the objects without the cause, and one for those with it, whatever its value is. It returns nil if this
// does not explain all results, or if only one value was seen.
func byPresence(cause []string, trials []*trial, results []any) []recorded.Write {
	found := map[bool][]any{}
	values := map[string]bool{}
	for i, t := range trials {
		value := at(t.after, cause)
		isSet := value != nil
		if known := found[isSet]; len(known) > 0 && !reflect.DeepEqual(known[0], results[i]) {
			return nil
		}
		if found[isSet] = append(found[isSet], results[i]); isSet {
			values[string(raw(value))] = true
		}
	}
	if len(found[false]) == 0 || len(values) < mostValues {
		return nil
	}
	var out []recorded.Write
	if found[false][0] != nil {
		w := became(found[false][0])
		w.Without = pathOf(cause)
		out = append(out, w)
	}
	if found[true][0] != nil {
		w := became(found[true][0])
		w.With = pathOf(cause)
		out = append(out, w)
	}
	return out
}

// joined combines writes that differ only in the value of their cause.
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

// within reports whether names lead to above or below it.
func within(names, above []string) bool {
	return len(names) >= len(above) && slices.Equal(names[:len(above)], above)
}

func pathOf(names []string) string {
	out := ""
	for _, name := range names {
		out = fieldpath.Extend(out, name)
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
