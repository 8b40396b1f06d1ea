package oracle

import (
	"encoding/json"
	"slices"
	"strings"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
	"github.com/fieldperm/fieldperm/verbs"
)

// theme is the part of an object that the writes of a sequence change: the places of one verb.
type theme struct {
	verb, parameter string
	// place is the path of the verb, as field names. "" stands for any key or item.
	place []string
}

// named is a step of a path to the item of a list that has the name.
type named string

// themeOf draws the theme of a user: mostly a verb that the user holds on the resource, and for a user with the generic permission a verb
// of a barrier.
func (s *shard) themeOf(u *User, e *Endpoint) *theme {
	var from []string
	barred := false
	if u.generic(standing{e.Place, false}) && !s.oneIn(4) {
		for v := range s.barriers(e.Place, &Request{User: u, Endpoint: e}) {
			from = append(from, v.String())
		}
		from = append(from, s.barredIn(e.Kind)...)
		slices.Sort(from)
		barred = true
	}
	if len(from) == 0 {
		from, barred = u.Grants(e.Place), false
	}
	from = slices.DeleteFunc(from, func(v string) bool {
		return !strings.HasPrefix(v, "granular:") || v == verbs.All().String() || v == verbs.Creation().String()
	})
	if len(from) == 0 {
		from, barred = []string{"granular:label", "granular:annotation"}, true
	}
	// Draw verbs of single keys of a map more often: the user does not hold the verbs of the other keys.
	for _, v := range slices.Clone(from) {
		if strings.Contains(v, "(") {
			from = append(from, v, v)
		}
	}
	name, parameter, _ := strings.Cut(pick(s.draw, from), "(")
	if barred {
		parameter = "" // Choose a place beside the barrier.
	}
	if all := s.placesOf(e.Kind)[name]; len(all) > 0 {
		return &theme{verb: name, parameter: strings.TrimSuffix(parameter, ")"), place: pick(s.draw, all)}
	}
	return nil
}

// barredIn lists the verbs of a kind that its schemas make barriers.
func (s *shard) barredIn(kind runtimeschema.GroupVersionKind) []string {
	var out []string
	s.stored.Walk(kind, func(_ fieldpath.Pattern, n *schema.Node) {
		for _, p := range n.Permissions() {
			if p.MayBar() {
				out = append(out, p.Base().String())
			}
		}
	})
	return out
}

// placesOf lists the places of the verbs of a kind.
func (s *shard) placesOf(kind runtimeschema.GroupVersionKind) map[string][][]string {
	if known := s.stands[kind]; known != nil {
		return known
	}
	out := map[string][][]string{}
	s.stored.Walk(kind, func(at fieldpath.Pattern, n *schema.Node) {
		for _, p := range n.Permissions() {
			out[p.Base().String()] = append(out[p.Base().String()], at.Steps())
		}
	})
	s.stands[kind] = out
	return out
}

// path draws a place of the theme in an object, or a place beside it. It returns nil if there is none.
func (t *theme) path(d *draw, object map[string]any) []any {
	steps := t.place
	if len(steps) > 2 && d.oneIn(3) {
		steps = steps[:len(steps)-1] // Use the container of the place, and so the places beside it.
	}
	if len(steps) > 2 && strings.HasSuffix(steps[len(steps)-1], "/") {
		steps = steps[:len(steps)-1] // It stands for every key with this prefix.
	}
	all := t.expand(nil, nil, object, steps)
	if len(all) == 0 {
		return nil
	}
	path := pick(d, all)
	if m, ok := at(object, path).(map[string]any); ok && !d.oneIn(4) {
		path = slices.Concat(path, []any{pick(d, t.keys(m))})
	}
	if len(path) < 2 || path[0] == "metadata" && !slices.Contains([]any{"labels", "annotations", "finalizers", "ownerReferences"}, path[1]) {
		return nil // The path is the object itself.
	}
	return path
}

// keys are the keys of the map, and the keys that the parameter makes.
func (t *theme) keys(m map[string]any) []string {
	if t.parameter == "" {
		return append(sortedKeys(m), "own", "example.com/own")
	}
	out := []string{t.parameter + "/own", t.parameter + "/other"}
	if !strings.Contains(t.parameter, "/") {
		out = append(out, t.parameter)
	}
	for _, key := range sortedKeys(m) {
		if !strings.HasSuffix(key, "/") && key != t.parameter && strings.HasPrefix(key, t.parameter+"/") {
			out = append(out, key)
		}
	}
	return out
}

func (t *theme) expand(out [][]any, path []any, v any, steps []string) [][]any {
	if len(steps) == 0 {
		return append(out, path)
	}
	switch v := v.(type) {
	case map[string]any:
		keys := []string{steps[0]}
		if steps[0] == "" {
			keys = t.keys(v)
		}
		for _, key := range keys {
			if _, there := v[key]; there || len(steps) == 1 {
				out = t.expand(out, append(slices.Clone(path), key), v[key], steps[1:])
			}
		}
	case []any:
		if len(steps) == 1 {
			return append(out, path) // Use the list itself.
		}
		for _, item := range v {
			if m, ok := item.(map[string]any); ok {
				if name, ok := m["name"].(string); ok {
					out = t.expand(out, append(slices.Clone(path), named(name)), m, steps[1:])
				}
			}
		}
		if len(out) == 0 {
			return append(out, path) // The items of this list have no names.
		}
	}
	return out
}

// at returns the value of an object at a path, nil for none.
func at(v any, path []any) any {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[step]
		case named:
			v = itemOf(v, step)
		}
	}
	return v
}

func itemOf(v any, name named) any {
	list, _ := v.([]any)
	for _, item := range list {
		if m, ok := item.(map[string]any); ok && m["name"] == string(name) {
			return m
		}
	}
	return nil
}

// plant puts a value at a path, and creates missing containers on the way.
func plant(object map[string]any, path []any, value any) {
	m := object
	for i, step := range path {
		key, ok := step.(string)
		if !ok {
			return
		}
		if i == len(path)-1 {
			m[key] = value
			return
		}
		if name, ok := path[i+1].(named); ok {
			list, _ := m[key].([]any)
			item, ok := itemOf(list, name).(map[string]any)
			if !ok {
				item = map[string]any{"name": string(name)}
				m[key] = append(slices.Clone(list), item)
			}
			plant(item, path[i+2:], value)
			return
		}
		m = child(m, key)
	}
}

// uproot removes the value at a path.
func uproot(object map[string]any, path []any) bool {
	key, ok := path[len(path)-1].(string)
	if !ok {
		return false
	}
	m, _ := at(object, path[:len(path)-1]).(map[string]any)
	if _, there := m[key]; !there {
		return false
	}
	delete(m, key)
	return true
}

// another draws a value that fits the place of this one.
func (d *draw) another(v any) any {
	switch v := v.(type) {
	case nil:
		return pick(d, []any{"a", "b"})
	case string:
		return pick(d, []any{v, v + "x", "a", "b"})
	case int64:
		return v + int64(d.IntN(2))
	case bool:
		return d.oneIn(2)
	}
	return v
}

// may reports whether the user could make this change of values, as the oracle would judge it in the version of the document. A refused
// change says little about the following ones.
func (s *shard) may(r *Request, old, new map[string]any) bool {
	before, err := json.Marshal(old)
	if err != nil {
		return false
	}
	after, err := json.Marshal(new)
	if err != nil || !s.stored.Knows(r.Endpoint.Kind) {
		return false
	}
	charges, err := s.stored.Charges(r.Endpoint.Kind, before, after, s.barriers(r.Endpoint.Place, r), r.version())
	return err == nil && len(uncovered(r.User, charges, []standing{{r.Endpoint.Place, false}})) == 0
}
