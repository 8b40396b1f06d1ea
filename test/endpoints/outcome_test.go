//go:build integration

package endpoints

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/fieldperm/fieldperm/schema/endpoint"
)

// outcome is the result for a field of a body.
type outcome struct {
	// to are the fields of the stored object that had the value of the field afterwards.
	to map[string]bool
	// back says that the field was sent and accepted, but not stored; refused says that no value of it was accepted.
	back, refused bool
}

// outcomes are the results for the fields of one body, by their paths, in which every item and key of a map is [*].
type outcomes map[string]*outcome

func (o outcomes) at(path string) *outcome {
	if o[path] == nil {
		o[path] = &outcome{to: map[string]bool{}}
	}
	return o[path]
}

const markPrefix = "mk"

var markKey = regexp.MustCompile(`^` + markPrefix + `\d+$`)

// leaf is a value without parts in a tree.
type leaf struct {
	// path is its place. pattern is the same path with [*] for items and for keys that an edit invented.
	path, pattern string
	value         any
}

// flatten lists the leaves of a value below a path.
func flatten(path, pattern string, v any) []leaf {
	var out []leaf
	switch v := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			next := pattern + "." + k
			if markKey.MatchString(k) {
				next = pattern + "[*]"
			}
			out = append(out, flatten(path+"."+k, next, v[k])...)
		}
		if len(v) > 0 {
			return out
		}
	case []any:
		for i := range v {
			out = append(out, flatten(fmt.Sprintf("%s[%d]", path, i), pattern+"[*]", v[i])...)
		}
		if len(v) > 0 {
			return out
		}
	}
	return []leaf{{path, pattern, v}}
}

// changed lists the new or changed leaves of after, and the leaves of before that are gone.
func changed(before, after map[string]any) (new, gone []leaf) {
	was, is := map[string]any{}, map[string]any{}
	for _, l := range flatten("", "", before) {
		was[l.path] = l.value
	}
	for _, l := range flatten("", "", after) {
		is[l.path] = l.value
		if v, ok := was[l.path]; !ok || !reflect.DeepEqual(v, l.value) {
			new = append(new, l)
		}
	}
	for _, l := range flatten("", "", before) {
		if _, ok := is[l.path]; !ok {
			gone = append(gone, l)
		}
	}
	return new, gone
}

// telling reports whether a value was invented by one edit only.
func telling(v any) bool {
	switch v := v.(type) {
	case string:
		return markKey.MatchString(strings.TrimPrefix(v, qualified)) || strings.HasPrefix(v, "2001-01-01T") || len(v) >= 4 && v[0] == '1' && strings.Trim(v, "0123456789") == "" || strings.HasPrefix(v, "bWs")
	case int64:
		return v > 1000
	}
	return false
}

// sent are the leaves of an edit.
func (e *edit) sent() []leaf {
	path := ""
	for _, s := range e.path {
		if s.name == "" || markKey.MatchString(s.name) {
			path += "[*]"
		} else {
			path += "." + s.name
		}
	}
	if e.value == nil {
		return []leaf{{pattern: path}}
	}
	return flatten(path, path, e.value)
}

// learn records the results of accepted edits. It returns the other changes.
func (o outcomes) learn(edits []*edit, before, after map[string]any) []string {
	new, gone := changed(before, after)
	explained := map[string]bool{}
	for _, e := range edits {
		for _, l := range e.sent() {
			to := ""
			for _, n := range new {
				if same(l.value, n.value) && (n.pattern == l.pattern || telling(l.value) && to == "") {
					to = n.pattern
					explained[n.pattern] = true
					if n.pattern == l.pattern {
						break
					}
				}
			}
			if to == "" {
				o.at(l.pattern).back = true
			} else {
				o.at(l.pattern).to[to] = true
			}
		}
	}
	beside := map[string]bool{}
	for _, l := range append(new, gone...) {
		if !explained[l.pattern] && !strings.HasPrefix(l.pattern, ".metadata.managedFields") && l.pattern != ".metadata.generation" {
			beside[l.pattern] = true
		}
	}
	return slices.Sorted(maps.Keys(beside))
}

func same(a, b any) bool {
	if reflect.DeepEqual(a, b) {
		return true
	}
	// A quantity or an int-or-string may be stored in another type.
	return telling(a) && fmt.Sprint(a) == fmt.Sprint(b)
}

// summary has the common results of the outcomes below a path.
type summary struct {
	written, back, refused bool
	// to is the stored path, if all values below the path move together; moves reports whether they do.
	to    string
	moves bool
}

func (o outcomes) below(path string) (summary, []string) {
	s, children := summary{moves: true}, map[string]bool{}
	for from, out := range o {
		if from != path && !strings.HasPrefix(from, path+".") && !strings.HasPrefix(from, path+"[") {
			continue
		}
		rest := from[len(path):]
		if rest != "" {
			children[path+first(rest)] = true
		}
		if len(out.to) > 0 {
			for to := range out.to {
				target, ok := strings.CutSuffix(to, rest)
				if s.written && s.to != target {
					ok = false
				}
				s.moves = s.moves && ok
				s.to, s.written = target, true
			}
			continue
		}
		// One accepted write is better evidence than a refusal.
		s.back = s.back || out.back
		s.refused = s.refused || out.refused && !out.back
	}
	return s, slices.Sorted(maps.Keys(children))
}

// first is the first step of a path.
func first(path string) string {
	if path[0] == '[' {
		return path[:strings.IndexByte(path, ']')+1]
	}
	if i := strings.IndexAny(path[1:], ".["); i >= 0 {
		return path[:i+1]
	}
	return path
}

// collapse returns the smallest list of fields that are stored, and the fields for which the result is not known.
func (o outcomes) collapse(path string) (fields []endpoint.Field, refused []string) {
	s, children := o.below(path)
	switch {
	case s.written && !s.back && s.moves:
		return []endpoint.Field{{From: path, To: s.to}}, nil
	case !s.written && s.refused && !s.back:
		return nil, []string{path}
	case !s.written && !s.refused:
		return nil, nil
	case len(children) == 0:
		for _, to := range slices.Sorted(maps.Keys(o[path].to)) {
			fields = append(fields, endpoint.Field{From: path, To: to})
		}
		return fields, nil
	}
	for _, child := range children {
		f, r := o.collapse(child)
		fields, refused = append(fields, f...), append(refused, r...)
	}
	if out := o[path]; out != nil && len(out.to) > 0 {
		for _, to := range slices.Sorted(maps.Keys(out.to)) {
			fields = append(fields, endpoint.Field{From: path, To: to})
		}
	}
	return fields, refused
}
