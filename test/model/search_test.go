package model

import (
	"fmt"
	"hash/maphash"
	"reflect"
	"strings"
)

// A system is a protocol with its environment: finitely many states, and the possible events of each.
type system[S comparable] interface {
	initial() []S
	// steps calls do for every possible event of a state, always in the same order.
	steps(from S, do func(step, S))
	harmed(S) bool
}

// A step is one atomic action.
type step struct {
	actor  string
	number int // number of the actor, if there are several
	action string
}

// outcome is the result of a complete search.
type outcome struct {
	states int
	// A shortest way to harm, in words. Empty if there is none.
	trace string
}

// search visits every state that can be reached, nearest first, until there is harm. It stores whole states and not only their hashes, so
// two states are never taken for one. More states than most are an error: then the search is not complete and proves nothing.
func search[S comparable](sys system[S], most int) (outcome, error) {
	seen := newVisited[S]()
	for _, s := range sys.initial() {
		seen.add(s, -1)
	}
	for at := 0; at < len(seen.states); at++ {
		if sys.harmed(seen.states[at]) {
			return outcome{states: len(seen.states), trace: trace(sys, seen, at)}, nil
		}
		if len(seen.states) > most {
			return outcome{}, fmt.Errorf("search: more than %d states: make the model smaller", most)
		}
		sys.steps(seen.states[at], func(_ step, to S) { seen.add(to, at) })
	}
	return outcome{states: len(seen.states)}, nil
}

// visited is a set of states in the order in which they were reached, each with its predecessor. The table holds indexes into it, so that a
// state is stored once.
type visited[S comparable] struct {
	states []S
	from   []int32
	table  []int32 // index + 1; 0 is free
	seed   maphash.Seed
}

func newVisited[S comparable]() *visited[S] {
	return &visited[S]{table: make([]int32, 1<<12), seed: maphash.MakeSeed()}
}

func (v *visited[S]) add(s S, from int) {
	slot := v.slot(s)
	if v.table[slot] != 0 {
		return
	}
	v.states, v.from = append(v.states, s), append(v.from, int32(from))
	v.table[slot] = int32(len(v.states))
	if 2*len(v.states) < len(v.table) {
		return
	}
	v.table = make([]int32, 2*len(v.table))
	for i, s := range v.states {
		v.table[v.slot(s)] = int32(i + 1)
	}
}

// slot returns the position of a state in the table, or its free position.
func (v *visited[S]) slot(s S) uint64 {
	mask := uint64(len(v.table) - 1)
	slot := maphash.Comparable(v.seed, s) & mask
	for v.table[slot] != 0 && v.states[v.table[slot]-1] != s {
		slot = (slot + 1) & mask
	}
	return slot
}

// trace describes the way to a state: each step, and its changes.
func trace[S comparable](sys system[S], seen *visited[S], at int) string {
	var way []int
	for ; at >= 0; at = int(seen.from[at]) {
		way = append([]int{at}, way...)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "  0. begin: %s\n", strings.Join(changes(*new(S), seen.states[way[0]]), ", "))
	for i, to := range way[1:] {
		from, after := seen.states[way[i]], seen.states[to]
		var taken *step
		sys.steps(from, func(candidate step, s S) {
			if taken == nil && s == after {
				taken = &candidate
			}
		})
		fmt.Fprintf(&text, "%3d. %s %d %s: %s\n", i+1, taken.actor, taken.number, taken.action, strings.Join(changes(from, after), ", "))
	}
	return text.String()
}

// changes lists the fields in which two states differ, with the new value.
func changes[S comparable](before, after S) []string {
	var list []string
	var walk func(name string, a, b reflect.Value)
	walk = func(name string, a, b reflect.Value) {
		if a.Equal(b) {
			return
		}
		switch {
		case a.Kind() == reflect.Struct:
			for i := range a.NumField() {
				field := a.Type().Field(i)
				inner := field.Name
				switch {
				case field.Anonymous:
					inner = name
				case name != "":
					inner = name + "." + inner
				}
				walk(inner, a.Field(i), b.Field(i))
			}
		case a.Kind() == reflect.Array:
			for i := range a.Len() {
				walk(fmt.Sprintf("%s[%d]", name, i), a.Index(i), b.Index(i))
			}
		default:
			// Use a copy, because fmt calls no String method on a value that was read from an unexported field.
			value := reflect.New(b.Type()).Elem()
			if b.Kind() == reflect.Bool {
				value.SetBool(b.Bool())
			} else {
				value.SetUint(b.Uint())
			}
			list = append(list, fmt.Sprintf("%s=%v", name, value))
		}
	}
	walk("", reflect.ValueOf(before), reflect.ValueOf(after))
	return list
}
