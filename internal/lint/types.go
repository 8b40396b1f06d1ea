package lint

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/fieldperm/fieldperm/internal/finding"
)

// smallest is how many properties a type must have to be taken for the same type at two places.
const smallest = 2

// types finds fields of the same type below which the verbs are not the same. It looks at the storage version: versions-differ compares the others.
func (l *linter) types(o *object, d *definition) {
	v := d.storage()
	if v == nil || v.schema == nil {
		return
	}
	var order []string
	uses := map[string][]place{}
	var visit func(p place)
	visit = func(p place) {
		if properties, ok := p.schema["properties"].(map[string]any); ok && len(properties) >= smallest && len(p.path) > 0 {
			key := shape(p.schema)
			if uses[key] == nil {
				order = append(order, key)
			}
			uses[key] = append(uses[key], p)
		}
		for _, next := range p.below() {
			visit(next)
		}
	}
	for _, top := range v.root().below() {
		if top.name() != "metadata" && top.name() != "status" {
			visit(top)
		}
	}
	own := effective(o.uses(), v.name)
	var done []place
	for _, key := range order {
		// A type that is a part of a larger type that is used twice is compared with that one.
		places := slices.DeleteFunc(uses[key], func(p place) bool {
			return slices.ContainsFunc(done, func(outer place) bool {
				return len(outer.path) < len(p.path) && outer.path.Covers(p.path[:len(outer.path)])
			})
		})
		if len(places) < 2 {
			continue
		}
		done = append(done, places...)
		l.compareUses(o, v, places, own)
	}
}

// compareUses compares each use of a type with the first one that has verbs.
func (l *linter) compareUses(o *object, v *version, places []place, own map[string]*use) {
	var said []map[string]string
	model := -1
	for i, p := range places {
		said = append(said, inside(p, own))
		if model < 0 && len(said[i]) > 0 {
			model = i
		}
	}
	if model < 0 {
		return
	}
	for i, p := range places {
		at := firstDifference(said[model], said[i])
		if i == model || at == "" {
			continue
		}
		level, text := finding.Warning, fmt.Sprintf("%s has %s there and %s here", at, orNone(said[model][at]), orNone(said[i][at]))
		if len(said[i]) == 0 {
			level, text = finding.Note, "here no field below has a verb"
		}
		l.report(o, p.pointer, where([]string{v.name}, p.path), finding.Finding{
			Rule: usesDisagree, Level: level, Message: fmt.Sprintf("field %q has the same type as %q, and other verbs below: %s", p.path, places[model].path, text),
			Cure: "write the same verbs at each use", About: places[model].path.String(),
		})
	}
}

func orNone(verb string) string {
	if verb == "" {
		return "no verb"
	}
	return verb
}

// inside returns what the entries below a place say, by the path from there.
func inside(p place, own map[string]*use) map[string]string {
	out := map[string]string{}
	prefix := p.path.String()
	for path, u := range own {
		rest, ok := strings.CutPrefix(path, prefix)
		if !ok || rest == "" || rest[0] != '.' && rest[0] != '[' {
			continue
		}
		text := fmt.Sprintf("%q", u.Verb)
		if u.ParameterizedBy != "" {
			text += " by " + u.ParameterizedBy
		}
		if u.IsBarrier() {
			text += " as a barrier"
		}
		out[rest] = text
	}
	return out
}

// firstDifference returns the first path that one of the two says something else about, "" for none.
func firstDifference(a, b map[string]string) string {
	var out []string
	for path := range a {
		if a[path] != b[path] {
			out = append(out, path)
		}
	}
	for path := range b {
		if _, both := a[path]; !both {
			out = append(out, path)
		}
	}
	slices.Sort(out)
	if len(out) == 0 {
		return ""
	}
	return out[0]
}

// shape returns a text that is equal for schemas of the same type: without documentation, defaults, validations and permissions.
func shape(schema map[string]any) string {
	text, err := json.Marshal(shapeOf(schema))
	if err != nil {
		return fmt.Sprintf("%p", schema)
	}
	return string(text)
}

func shapeOf(schema map[string]any) map[string]any {
	out := map[string]any{}
	for key, value := range schema {
		inner, isSchema := value.(map[string]any)
		switch {
		case key == "properties" && isSchema:
			properties := map[string]any{}
			for name, property := range inner {
				if s, ok := property.(map[string]any); ok {
					properties[name] = shapeOf(s)
				}
			}
			out[key] = properties
		case (key == "items" || key == "additionalProperties") && isSchema:
			out[key] = shapeOf(inner)
		case key == "type", key == "format", strings.HasPrefix(key, "x-kubernetes-") && !strings.HasPrefix(key, "x-kubernetes-permission") && key != "x-kubernetes-validations":
			out[key] = value
		}
	}
	return out
}
