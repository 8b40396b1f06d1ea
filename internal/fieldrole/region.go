package fieldrole

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/fieldperm/fieldperm/internal/fieldtree"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

// region is a set of paths, with all that is below them: what was asked for, or what a verb covers at a place.
type region struct {
	steps []step
	// opaque says in words which part of the region is meant, if the steps cannot. "" means all of it.
	opaque string
}

// step is a step of the paths of a region. The zero step is every key or item.
type step struct {
	// name is a field or the key of a map, nil for every one.
	name *value
	// keys are the keys of items, "" for the value of the item itself. isNumber are those that are no strings.
	keys     map[string]value
	isNumber map[string]bool
}

// value is a value, or every value that begins with it.
type value struct {
	text     string
	isPrefix bool
}

func (v value) contains(other value) bool {
	if v.isPrefix {
		return strings.HasPrefix(other.text, v.text)
	}
	return v == other
}

// contains reports whether every path of the other step is one of s.
func (s *step) contains(other *step) bool {
	if s.name != nil && (other.name == nil || !s.name.contains(*other.name)) {
		return false
	}
	for key, v := range s.keys {
		if have, has := other.keys[key]; !has || !v.contains(have) {
			return false
		}
	}
	return true
}

// contains reports whether every path of the other region is certainly in r.
func (r *region) contains(other *region) bool {
	if r.opaque != "" || len(r.steps) > len(other.steps) {
		return false
	}
	for i := range r.steps {
		if !r.steps[i].contains(&other.steps[i]) {
			return false
		}
	}
	return true
}

// askedFor returns the region of a field that was asked for.
func askedFor(f *Field) *region {
	out := &region{}
	for i, e := range f.place.Path {
		s := step{}
		if !e.Any {
			s.name = &value{text: e.Name, isPrefix: f.isPrefix && i == len(f.place.Path)-1}
		}
		if of, has := f.place.Selection(i); has {
			s.keys = map[string]value{}
			for key, text := range of.Keys {
				s.keys[key] = value{text: text}
			}
			s.isNumber = numbers(f.place, i)
		}
		out.steps = append(out.steps, s)
	}
	return out
}

// numbers returns the keys of the items after a step that are no strings.
func numbers(p *fieldtree.Place, i int) map[string]bool {
	out := map[string]bool{}
	for _, c := range p.Above(i + 1).Node().Children {
		out[c.Name] = c.Type != "string"
	}
	return out
}

// covered returns the regions that a verb covers at a place: all of it, or the values of its parameter.
func covered(p *fieldtree.Place, of *fieldtree.Verb, one string, isOne bool) []*region {
	all := &region{}
	for _, e := range p.Path {
		s := step{}
		if !e.Any {
			// A schema singles out the keys with a prefix by a key that ends with a slash.
			s.name = &value{text: e.Name, isPrefix: strings.HasSuffix(e.Name, "/")}
		}
		all.steps = append(all.steps, s)
	}
	if !isOne {
		return []*region{all}
	}
	i, key, found := source(p, of.Parameter)
	if !found || of.Expression != "" {
		all.opaque = fmt.Sprintf("%s is %q", of.Parameter, one)
		return []*region{all}
	}
	values := []value{{text: one}}
	if of.TakesPrefix {
		values = append([]value{{text: one + "/", isPrefix: true}}, values...)
	}
	var out []*region
	for _, v := range values {
		limited := &region{steps: slices.Clone(all.steps)}
		s := &limited.steps[i]
		switch {
		case key != nil:
			s.keys, s.isNumber = map[string]value{*key: v}, numbers(p, i)
		case s.name == nil:
			s.name = &v
		case s.name.contains(v):
			s.name = &v
		case !v.contains(*s.name):
			continue // The key at the place gives the verb another parameter.
		}
		out = append(out, limited)
	}
	return out
}

// source returns the last step on the way to a place that gives a parameter, and the key of the items that does; nil if it is the key of a map.
func source(p *fieldtree.Place, parameter string) (int, *string, bool) {
	for i, e := range slices.Backward(p.Path) {
		above, below := p.Above(i).Node(), p.Above(i+1).Node()
		if strings.HasPrefix(above.Type, "[]") {
			for _, key := range slices.Sorted(maps.Keys(above.KeyEmits)) {
				if e.Any && above.KeyEmits[key] == parameter {
					return i, &key, true
				}
			}
			if e.Any && below.Emits == parameter {
				return i, new(string), true
			}
			continue
		}
		if above.Emits == parameter {
			return i, nil, true
		}
	}
	return 0, nil, false
}

// String returns the region in words.
func (r *region) String() string {
	if len(r.steps) == 0 {
		return "every field that no barrier guards"
	}
	head := &region{steps: r.steps[:len(r.steps)-1]}
	last := &r.steps[len(r.steps)-1]
	switch item, ofItem := last.keys[""]; {
	case r.opaque != "":
		return fmt.Sprintf("%s where %s", r.path(), r.opaque)
	case last.name != nil && last.name.isPrefix:
		return fmt.Sprintf("every key of %s with the prefix %s", head.path(), last.name.text)
	case ofItem && item.isPrefix:
		return fmt.Sprintf("every value of %s with the prefix %s", head.path(), item.text)
	case last.name == nil && len(last.keys) == 0:
		return "every entry of " + head.path()
	}
	return r.path()
}

// path returns the region as a path.
func (r *region) path() string {
	var out strings.Builder
	for i := range r.steps {
		out.WriteString(r.steps[i].String())
	}
	return out.String()
}

func (s *step) String() string {
	star := func(v value) string {
		if v.isPrefix {
			return v.text + "*"
		}
		return v.text
	}
	switch {
	case s.name != nil:
		return fieldpath.Element{Name: star(*s.name)}.String()
	case len(s.keys) == 0:
		return "[*]"
	}
	var texts []string
	for _, key := range slices.Sorted(maps.Keys(s.keys)) {
		text := star(s.keys[key])
		if !s.isNumber[key] {
			text = strconv.Quote(text)
		}
		texts = append(texts, key+"="+text)
	}
	return "[" + strings.Join(texts, ",") + "]"
}
