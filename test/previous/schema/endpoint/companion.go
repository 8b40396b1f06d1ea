package endpoint

import (
	"reflect"
	"slices"
)

// Companions returns the writes of the API server to objects of a kind that may need a verb: those that are not free (D13), because their value
// is allocated, depends on a configuration or is not explained.
func Companions(of Kind, version string) []Write {
	free := FreeWrites()
	var out []Write
	for _, w := range Writes() {
		if w.Kind == of && slices.Contains(w.Versions, version) && !slices.ContainsFunc(free, w.equal) {
			out = append(out, w)
		}
	}
	return out
}

// equal reports whether two observations are the same one.
func (w *Write) equal(other Write) bool { return reflect.DeepEqual(*w, other) }

// CausedBy returns the fields whose change in a request causes the write, none if the cause is that the object is new.
func (w *Write) CausedBy() []string {
	if w.With != "" {
		return []string{w.With}
	}
	return w.DependsOn
}

// Creates reports whether the write is to a new object.
func (w *Write) Creates() bool { return w.On == create }
