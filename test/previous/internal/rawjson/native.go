package rawjson

import "strconv"

// Native returns a value as CEL takes it: nil for absent and null, int64 for integers that fit, float64 for other numbers. Lists and
// objects are taken from known, which may be nil, and put there.
func Native(v Value, known map[Value]any) any {
	if known == nil || !v.IsList() && !v.IsObject() {
		return decodeNative(v, known)
	}
	out, ok := known[v]
	if !ok {
		out = decodeNative(v, known)
		known[v] = out
	}
	return out
}

func decodeNative(v Value, known map[Value]any) any {
	switch v.Kind() {
	case Bool:
		return v.Raw()[0] == 't'
	case Number:
		if i, ok := v.Int(); ok {
			return i
		}
		// A number that is too large for float64 becomes infinite, as in CEL.
		f, _ := strconv.ParseFloat(v.NormalNumber(), 64)
		return f
	case String:
		return v.Text()
	case List:
		out := []any{}
		for i := v.Items(); i.Next(); {
			out = append(out, Native(i.Value(), known))
		}
		return out
	case Object:
		out := map[string]any{}
		for m := v.Members(); m.Next(); {
			out[m.Name().String()] = Native(m.Value(), known)
		}
		return out
	case Absent, Null:
	}
	return nil
}
