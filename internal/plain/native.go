package plain

import "strconv"

// native returns the value as CEL takes it: nil for absent and null, int64 for integers that fit,
// float64 for other numbers.
func native(v *value) any {
	if v == nil {
		return nil
	}
	switch v.kind {
	case kindNull:
		return nil
	case kindBool:
		return v.text == "true"
	case kindNumber:
		return nativeNumber(v.text)
	case kindString:
		return v.text
	case kindList:
		out := make([]any, len(v.items))
		for i, item := range v.items {
			out[i] = native(item)
		}
		return out
	default:
		out := make(map[string]any, len(v.members))
		for _, m := range v.members {
			out[m.name] = native(m.value)
		}
		return out
	}
}

func nativeNumber(normal string) any {
	if i, ok := integer(normal); ok {
		return i
	}
	// Beyond float64 the result is infinite, as CEL would compute it.
	f, _ := strconv.ParseFloat(normal, 64)
	return f
}

// integer reads a normal number that is an int64.
func integer(normal string) (int64, bool) {
	if normal == "0" {
		return 0, true
	}
	mantissa, power := splitPower(normal)
	if power < 0 || power > 18 {
		return 0, false
	}
	text := mantissa
	for range power {
		text += "0"
	}
	i, err := strconv.ParseInt(text, 10, 64)
	return i, err == nil
}

func splitPower(normal string) (string, int) {
	for i := range len(normal) {
		if normal[i] == 'e' {
			power, err := strconv.Atoi(normal[i+1:])
			if err != nil {
				return normal[:i], -1
			}
			return normal[:i], power
		}
	}
	return normal, 0
}

// spell returns a scalar's text as a person or a parameter would have it: 80, not 8e1.
func (v *value) spell() string {
	if v.kind != kindNumber {
		return v.text
	}
	if i, ok := integer(v.text); ok {
		return strconv.FormatInt(i, 10)
	}
	return v.text
}
