package oracle

import (
	"encoding/json"
	"slices"
	"strings"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/verbs"
)

// theme is the part of an object that the writes of a sequence are about: what has one verb.
type theme struct {
	verb, parameter string
	// place is where the verb stands, by the names of its fields; "" is any key or item.
	place []string
}

// named is a step of a path to the item of a list that has the name.
type named string

// themeOf draws what a user writes about: mostly one of the verbs held on the resource, for holders of the generic permission what is
// guarded against them.
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
	from = slices.DeleteFunc(from, func(v string) bool { return !strings.HasPrefix(v, "granular:") || v == verbs.All().String() })
	if len(from) == 0 {
		from, barred = []string{"granular:label", "granular:annotation"}, true
	}
	// Verbs of some keys of a map more often: what the others are, the user does not hold.
	for _, v := range slices.Clone(from) {
		if strings.Contains(v, "(") {
			from = append(from, v, v)
		}
	}
	name, parameter, _ := strings.Cut(pick(s.draw, from), "(")
	if barred {
		parameter = "" // What stands beside it.
	}
	if all := s.placesOf(e.Kind)[name]; len(all) > 0 {
		return &theme{verb: name, parameter: strings.TrimSuffix(parameter, ")"), place: pick(s.draw, all)}
	}
	return nil
}

// barredIn lists the verbs of a kind that its schemas make barriers.
func (s *shard) barredIn(kind runtimeschema.GroupVersionKind) []string {
	var out []string
	s.stored.Walk(kind, func(_ schema.Pattern, n *schema.Node) {
		for _, p := range n.Permissions() {
			if p.MayBar() {
				out = append(out, p.Base().String())
			}
		}
	})
	return out
}

// placesOf lists where the verbs of a kind stand.
func (s *shard) placesOf(kind runtimeschema.GroupVersionKind) map[string][][]string {
	if known := s.stands[kind]; known != nil {
		return known
	}
	out := map[string][][]string{}
	s.stored.Walk(kind, func(at schema.Pattern, n *schema.Node) {
		for _, p := range n.Permissions() {
			out[p.Base().String()] = append(out[p.Base().String()], at.Steps())
		}
	})
	s.stands[kind] = out
	return out
}

// path draws a place of the theme in an object, or one beside it. It is nil where there is none.
func (t *theme) path(d *draw, object map[string]any) []any {
	steps := t.place
	if len(steps) > 2 && d.oneIn(3) {
		steps = steps[:len(steps)-1] // Of what it stands beside.
	}
	if len(steps) > 2 && strings.HasSuffix(steps[len(steps)-1], "/") {
		steps = steps[:len(steps)-1] // It stands for every key that begins so.
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
		return nil // The object itself.
	}
	return path
}

// keys are those that the map has, and those that the parameter makes.
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
			return append(out, path) // The list itself.
		}
		for _, item := range v {
			if m, ok := item.(map[string]any); ok {
				if name, ok := m["name"].(string); ok {
					out = t.expand(out, append(slices.Clone(path), named(name)), m, steps[1:])
				}
			}
		}
		if len(out) == 0 {
			return append(out, path) // Its items have no names.
		}
	}
	return out
}

// at returns what an object has at a path, nil for nothing.
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

// plant puts a value at a path, and makes what is missing on the way.
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

// uproot takes away what is at a path.
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

// another draws a value that could stand where this one does.
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

// may reports whether the user could make this change of values, as the oracle would judge it in the document's version. What is refused
// tells little about what comes next.
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
