package celjson

import (
	"bytes"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/fieldperm/fieldperm/internal/rawjson"
)

// Of returns the CEL value of a JSON value. An absent value is null. Numbers are int if they are integers that fit, and else double. The value
// must not be used after the release of the document. It is safe for concurrent use.
func Of(v rawjson.Value) ref.Val { return (*tree)(nil).value(v) }

// decoded returns the value with everything in it.
func decoded(v rawjson.Value) ref.Val {
	return types.DefaultTypeAdapter.NativeToValue(native(v))
}

// native decodes as the API server does. 1.0 is a double, as in its own expressions.
func native(v rawjson.Value) any {
	switch v.Kind() {
	case rawjson.Number:
		if f, ok := rawjson.Native(v, nil).(int64); ok && bytes.ContainsAny(v.Raw(), ".eE") {
			return float64(f)
		}
	case rawjson.List:
		out := []any{}
		for i := v.Items(); i.Next(); {
			out = append(out, native(i.Value()))
		}
		return out
	case rawjson.Object:
		out := map[string]any{}
		for m := v.Members(); m.Next(); {
			out[m.Name().String()] = native(m.Value())
		}
		return out
	case rawjson.Absent, rawjson.Null, rawjson.Bool, rawjson.String:
	}
	return rawjson.Native(v, nil)
}

// comparison gathers the comparisons of the elements of two values. An element that differs decides; else an error is the result. In the
// comparisons of cel-go an error counts as equal.
type comparison struct{ err ref.Val }

// differs adds the comparison of two elements and reports whether it decides.
func (c *comparison) differs(one, other ref.Val) bool {
	equal := types.Equal(one, other)
	if equal != types.True && equal != types.False && c.err == nil {
		c.err = equal
	}
	return equal == types.False
}

// result is the result if no element differs.
func (c *comparison) result() ref.Val {
	if c.err != nil {
		return c.err
	}
	return types.True
}

// sized returns nil if two values have the same size, else what their comparison is: false, or the error of a size.
func sized(one, other traits.Sizer) ref.Val {
	for _, size := range []ref.Val{one.Size(), other.Size()} {
		if types.IsUnknownOrError(size) {
			return size
		}
	}
	if one.Size() != other.Size() {
		return types.False
	}
	return nil
}
