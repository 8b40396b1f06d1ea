package oracle

import (
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/fieldperm/fieldperm/schema/endpoint"
	"github.com/fieldperm/fieldperm/test/exact"
)

// writing is one row of the fields that the API server writes because of another field (D13). The rows were recorded from an API server.
// Their meaning is computed here without fieldperm's code.
type writing struct {
	endpoint.Write
	path            *regexp.Regexp
	cause, original []string
}

var writings = rows(endpoint.FreeWrites())

func rows(recorded []endpoint.Write) map[endpoint.Kind][]writing {
	out := map[endpoint.Kind][]writing{}
	for _, w := range recorded {
		out[w.Kind] = append(out[w.Kind], writing{Write: w, path: matching(w.Field), cause: namesOn(w.With), original: namesOn(w.Copies)})
	}
	return out
}

// matching is an expression for the paths of a field in changes: [*] matches any item.
func matching(field string) *regexp.Regexp {
	return regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(field), `\[\*\]`, `\[[^\]]*\]`) + "$")
}

// namesOn splits a path that consists of names only, such as .spec.type.
func namesOn(path string) []string {
	if path == "" {
		return nil
	}
	return strings.Split(strings.TrimPrefix(path, "."), ".")
}

// written reports whether the API server has made a change because of another field (D13). Behind a barrier only the constants of a new
// object are free.
func written(c exact.Change) bool {
	for _, w := range writings[endpoint.Kind{Group: c.Kind.Group, Kind: c.Kind.Kind}] {
		if (w.On == "CREATE") == c.Create && w.path.MatchString(c.Path) && (!c.Barred || c.Create && w.Becomes != nil) && w.explains(c) {
			return true
		}
	}
	return false
}

// isCounter reports whether the API server counts in a field the changes of another.
func isCounter(kind endpoint.Kind, path string) bool {
	return slices.ContainsFunc(writings[kind], func(w writing) bool { return w.Counts && w.path.MatchString(path) })
}

func (w *writing) explains(c exact.Change) bool {
	var is []byte
	if w.cause != nil {
		before, after := c.Field(w.cause...)
		if same(before, after) {
			return false
		}
		is = after
	}
	if len(w.Is) > 0 {
		known := false
		for _, value := range w.Is {
			known = known || same(value, is)
		}
		if !known {
			return false
		}
	}
	old, new := c.Old(), c.New()
	if w.Present && old == nil || !w.Present && !same(w.From, old) {
		return false
	}
	switch {
	case w.Removed:
		return new == nil
	case w.Counts:
		return counted(old, new)
	case w.Copies != "":
		_, original := c.Field(w.original...)
		return new != nil && same(original, new)
	}
	return w.Becomes != nil && same(w.Becomes, new)
}

// same compares two values, nil for none.
func same(a, b []byte) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// counted reports whether a number, or a text that contains a number, grew by one.
func counted(old, new []byte) bool {
	number := func(raw []byte) (int, error) { return strconv.Atoi(strings.Trim(string(raw), `"`)) }
	was, err := number(old)
	is, err2 := number(new)
	return err == nil && err2 == nil && is == was+1
}
