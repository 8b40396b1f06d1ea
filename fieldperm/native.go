package fieldperm

import (
	"strconv"

	"github.com/fieldperm/fieldperm/internal/rawjson"
)

// native returns the value as CEL takes it: nil for absent and null, int64 for integers that fit,
// float64 for other numbers. Lists and objects are taken from known, which may be nil, and put there.
func native(v rawjson.Value, known map[rawjson.Value]any) any {
	if known == nil || !v.IsList() && !v.IsObject() {
		return decode(v, known)
	}
	out, ok := known[v]
	if !ok {
		out = decode(v, known)
		known[v] = out
	}
	return out
}

func decode(v rawjson.Value, known map[rawjson.Value]any) any {
	switch v.Kind() {
	case rawjson.Bool:
		return v.Raw()[0] == 't'
	case rawjson.Number:
		if i, ok := v.Int(); ok {
			return i
		}
		// A number that is too large for float64 becomes infinite, as in CEL.
		f, _ := strconv.ParseFloat(v.NormalNumber(), 64)
		return f
	case rawjson.String:
		return v.Text()
	case rawjson.List:
		out := []any{}
		for i := v.Items(); i.Next(); {
			out = append(out, native(i.Value(), known))
		}
		return out
	case rawjson.Object:
		out := map[string]any{}
		for m := v.Members(); m.Next(); {
			out[m.Name().String()] = native(m.Value(), known)
		}
		return out
	case rawjson.Absent, rawjson.Null:
	}
	return nil
}
