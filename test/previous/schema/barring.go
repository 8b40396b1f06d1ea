package schema

import (
	"slices"
	"strings"

	"github.com/fieldperm/fieldperm/test/previous/schema/fieldpath"
)

// passage is a guard on the way to a field, or below it. depth is the number of steps to it.
type passage struct {
	*guard
	depth int
}

// barring returns the guards from the root to a field, and on to each place below it that has a barrier, from general to specific. Each way has a
// barrier. The places are the patterns of entries. A key with an entry of its own, where the pattern has all keys, has more verbs that pass a barrier
// of the pattern, so that it needs nothing besides. It returns false if there is no room.
func (o *overlay) barring(field fieldpath.Pattern, r *room) ([][]passage, bool) {
	w := &barringWalk{field: field, room: r, hasRoom: true}
	at := []*overlay{o}
	var way []passage
	for i := 0; len(at) > 0 && i < len(field); i++ {
		way = passed(way, at, i)
		at = below(at, func(name string) bool { return !field[i].Any && isSameKey(name, field[i].Name) })
	}
	w.visit(at, at, way, len(field))
	return w.out, w.hasRoom
}

// barringWalk finds the ways to the places at and below a field.
type barringWalk struct {
	field   fieldpath.Pattern
	room    *room
	hasRoom bool
	out     [][]passage
}

// visit finds the ways to a place and to those below it. own are the overlays of the pattern of the place, at those of all patterns that it matches.
func (w *barringWalk) visit(own, at []*overlay, above []passage, depth int) {
	way := passed(above, at, depth)
	if w.hasRoom = w.hasRoom && w.room.holds(way); !w.hasRoom {
		return
	}
	bars := func(on passage) bool { return on.bars() }
	if slices.ContainsFunc(way[len(above):], bars) || depth == len(w.field) && slices.ContainsFunc(way, bars) {
		w.out = append(w.out, way)
	}
	all, names := []*overlay(nil), map[string][]*overlay{}
	for _, o := range own {
		if o.any != nil {
			all = append(all, o.any)
		}
		for name, below := range o.fields {
			names[name] = append(names[name], below)
		}
	}
	if len(all) > 0 {
		w.visit(all, everyKey(at), way, depth+1)
	}
	for _, name := range sortedKeys(names) {
		next := everyKey(at)
		for _, o := range at {
			if below := o.fields[name]; below != nil {
				next = append(next, below)
			}
		}
		w.visit(names[name], next, way, depth+1)
	}
}

// passed returns the guards on a way that goes on through one place.
func passed(way []passage, at []*overlay, depth int) []passage {
	way = way[:len(way):len(way)]
	for _, o := range at {
		if o.guard != nil && o.guard.entry.Verb != "" {
			way = append(way, passage{o.guard, depth})
		}
	}
	return way
}

// below returns the overlays of a key one step below a place: those of all keys before those of its names.
func below(at []*overlay, isOf func(name string) bool) []*overlay {
	out := everyKey(at)
	for _, o := range at {
		for _, name := range sortedKeys(o.fields) {
			if isOf(name) {
				out = append(out, o.fields[name])
			}
		}
	}
	return out
}

// everyKey returns the overlays of all keys one step below a place.
func everyKey(at []*overlay) []*overlay {
	var out []*overlay
	for _, o := range at {
		if o.any != nil {
			out = append(out, o.any)
		}
	}
	return out
}

// isSameKey reports whether two names may stand for one key. A name that ends in a slash stands for all keys that begin with it.
func isSameKey(a, b string) bool {
	stands := func(prefix, key string) bool { return strings.HasSuffix(prefix, "/") && strings.HasPrefix(key, prefix) }
	return a == b || stands(a, b) || stands(b, a)
}
