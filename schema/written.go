package schema

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strconv"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/fieldperm/fieldperm/schema/endpoint"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

// Written holds the cases in which the API server writes a node by itself because another field of the object changes (D13). It comes
// only from recorded observations of an API server, because a document of a client could use it to free a field from every check.
type Written struct {
	cases []WrittenCase
	// key identifies the content of a Written.
	key string
}

// Cases returns the cases. Callers must not change the slice.
func (w *Written) Cases() []WrittenCase { return w.cases }

// WrittenCase is one write of the API server. The zero WrittenCase never holds.
type WrittenCase struct {
	onCreate        bool
	cause, original []string
	// without leads to a field that the object must not have, empty for none.
	without []string
	// is are the values that the cause must have; empty means any value.
	is []any
	// from is the required old value of the node in an update. present means that there must be some old value, whichever it is.
	from    any
	present bool
	effect  effect
	becomes any
}

// effect is the change of the node.
type effect int

const (
	effectNone effect = iota
	effectValue
	effectRemoved
	effectCounts
	effectCopies
)

// OnCreate reports whether the case applies to new objects; otherwise it applies to updates.
func (c *WrittenCase) OnCreate() bool { return c.onCreate }

// Constant reports whether a new object that does not set the node always gets the same value there, or always if it has the cause, or
// lacks the field Without. A client that sends this value gains nothing by it.
func (c *WrittenCase) Constant() bool { return c.onCreate && c.effect == effectValue }

// Cause returns the names on the path from the object's root to the field that must change in the request. An empty path is the object
// itself, which must be new. Callers must not change the slice.
func (c *WrittenCase) Cause() []string { return c.cause }

// Without returns the names on the path to a field that the object must not have, empty for none. Callers must not change the slice.
func (c *WrittenCase) Without() []string { return c.without }

// Original returns the names on the path to the field whose value the node gets, empty if the value does not come from a field. Callers
// must not change the slice.
func (c *WrittenCase) Original() []string { return c.original }

// ByServer reports whether the API server changes the node from oldSelf to self, given the new values of the cause and the original. All
// are decoded JSON, nil for absent. The caller checks whether the cause changed.
func (c *WrittenCase) ByServer(oldSelf, self, cause, original any) bool {
	if len(c.is) > 0 && !contained(c.is, cause) {
		return false
	}
	if c.present && oldSelf == nil || !c.present && !reflect.DeepEqual(c.from, oldSelf) {
		return false
	}
	switch c.effect {
	case effectNone:
	case effectValue:
		return self != nil && reflect.DeepEqual(c.becomes, self)
	case effectRemoved:
		return self == nil
	case effectCounts:
		return counts(oldSelf, self)
	case effectCopies:
		return self != nil && reflect.DeepEqual(original, self)
	}
	return false
}

func contained(values []any, v any) bool {
	for i := range values {
		if v != nil && reflect.DeepEqual(values[i], v) {
			return true
		}
	}
	return false
}

// counts reports whether self is oldSelf plus one, in the same number type.
func counts(oldSelf, self any) bool {
	switch old := oldSelf.(type) {
	case int64:
		return old < math.MaxInt64 && self == any(old+1)
	case string:
		n, err := strconv.ParseInt(old, 10, 64)
		return err == nil && n < math.MaxInt64 && self == any(strconv.FormatInt(n+1, 10))
	}
	return false
}

// Written returns the cases in which the API server writes the node by itself, nil for none.
func (n *Node) Written() *Written { return n.parts.Written }

// Key identifies the content.
func (w *Written) Key() string { return w.key }

// NewWritten makes it of recorded writes. key is a unique text for them.
func NewWritten(writes []endpoint.Write, key string) (*Written, error) {
	w := &Written{key: key}
	for i := range writes {
		c, err := newWrittenCase(&writes[i])
		if err != nil {
			return nil, err
		}
		w.cases = append(w.cases, c)
	}
	return w, nil
}

func newWrittenCase(w *endpoint.Write) (WrittenCase, error) {
	c := WrittenCase{onCreate: w.On == "CREATE", present: w.Present}
	if !w.Predictable() {
		return WrittenCase{}, fmt.Errorf("written on %s with %q: is not predictable", w.On, w.With)
	}
	var err error
	if c.cause, err = names(w.With); err != nil {
		return WrittenCase{}, err
	}
	if c.original, err = names(w.Copies); err != nil {
		return WrittenCase{}, err
	}
	if c.without, err = names(w.Without); err != nil {
		return WrittenCase{}, err
	}
	for _, raw := range w.Is {
		v, err := decoded(raw)
		if err != nil {
			return WrittenCase{}, err
		}
		c.is = append(c.is, v)
	}
	if c.from, err = decoded(w.From); err != nil {
		return WrittenCase{}, err
	}
	switch {
	case w.Becomes != nil:
		c.effect = effectValue
		c.becomes, err = decoded(w.Becomes)
	case w.Removed:
		c.effect = effectRemoved
	case w.Counts:
		c.effect = effectCounts
	case w.Copies != "":
		c.effect = effectCopies
	}
	return c, err
}

func decoded(raw json.RawMessage) (any, error) {
	if raw == nil {
		return nil, nil
	}
	var v any
	err := utiljson.Unmarshal(raw, &v)
	return v, err
}

// names returns the steps of a path that leads to one field.
func names(path string) ([]string, error) {
	p, err := fieldpath.ParsePattern(path)
	if err != nil {
		return nil, err
	}
	for _, e := range p {
		if e.Any {
			return nil, fmt.Errorf("path %q names any item: name one field", path)
		}
	}
	return p.Steps(), nil
}
