package exact

import (
	"math/big"
	"slices"
	"strconv"
	"strings"
)

type kind byte

const (
	null kind = iota
	boolean
	number
	text
	list
	object
)

// value is a JSON value as it is written: members have an order and may share a name, and numbers are literals. A nil *value is missing.
type value struct {
	kind kind
	// text is the string itself, or the literal of a number or boolean.
	text    string
	items   []*value
	members []member
}

type member struct {
	name  string
	value *value
}

func textValue(s string) *value            { return &value{kind: text, text: s} }
func numberValue(s string) *value          { return &value{kind: number, text: s} }
func boolValue(b bool) *value              { return &value{kind: boolean, text: strconv.FormatBool(b)} }
func objectValue(members ...member) *value { return &value{kind: object, members: members} }

func (v *value) is(k kind) bool { return v != nil && v.kind == k }

func (v *value) isScalar() bool { return v.is(boolean) || v.is(number) || v.is(text) }

// get returns a member of an object. If several have the name, it returns the last one, as most readers do.
func (v *value) get(name string) *value {
	if !v.is(object) {
		return nil
	}
	for _, m := range slices.Backward(v.members) {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

// set gives an object one member of the name.
func (v *value) set(name string, to *value) {
	v.unset(name)
	if to != nil {
		v.members = append(v.members, member{name, to})
	}
}

func (v *value) unset(name string) {
	v.members = slices.DeleteFunc(v.members, func(m member) bool { return m.name == name })
}

func (v *value) names() []string {
	var out []string
	if v.is(object) {
		for _, m := range v.members {
			out = append(out, m.name)
		}
		slices.Sort(out)
		out = slices.Compact(out)
	}
	return out
}

// repeats reports whether a name occurs twice.
func (v *value) repeats() bool { return v.is(object) && len(v.names()) < len(v.members) }

// count returns how often an object has a name.
func (v *value) count(name string) int {
	n := 0
	for _, m := range v.members {
		if m.name == name {
			n++
		}
	}
	return n
}

// withoutNulls returns the value without the members that are null. Null itself becomes nothing.
func (v *value) withoutNulls() *value {
	if v == nil || v.kind == null {
		return nil
	}
	c := &value{kind: v.kind, text: v.text}
	for _, item := range v.items {
		if kept := item.withoutNulls(); kept != nil {
			item = kept
		}
		c.items = append(c.items, item)
	}
	for _, m := range v.members {
		if kept := m.value.withoutNulls(); kept != nil {
			c.members = append(c.members, member{m.name, kept})
		}
	}
	return c
}

func (v *value) clone() *value {
	if v == nil {
		return nil
	}
	c := &value{kind: v.kind, text: v.text}
	for _, item := range v.items {
		c.items = append(c.items, item.clone())
	}
	for _, m := range v.members {
		c.members = append(c.members, member{m.name, m.value.clone()})
	}
	return c
}

// canonical is the same text for equal values and another text for different values: numbers count by their exact value, and the order of
// members counts only if a name occurs twice. The text of a missing value is "".
func (v *value) canonical() string {
	if v == nil {
		return ""
	}
	switch v.kind {
	case null, boolean:
		return v.kind.String() + v.text
	case number:
		return "#" + normal(v.text)
	case text:
		return strconv.Quote(v.text)
	case list:
		var parts []string
		for _, item := range v.items {
			parts = append(parts, item.canonical())
		}
		return "[" + strings.Join(parts, ",") + "]"
	default:
		var parts []string
		for _, m := range v.members {
			parts = append(parts, strconv.Quote(m.name)+":"+m.value.canonical())
		}
		if v.repeats() {
			return "twice{" + strings.Join(parts, ",") + "}"
		}
		slices.Sort(parts)
		return "{" + strings.Join(parts, ",") + "}"
	}
}

func (k kind) String() string {
	return [...]string{"null", "boolean", "number", "text", "list", "object"}[k]
}

// normal writes a number as digits without zeros at either end and a power of ten, 0 as "0".
func normal(literal string) string {
	digits, power := decimal(literal)
	if digits == "" {
		return "0"
	}
	return digits + "e" + power.String()
}

// decimal returns a number's digits with its sign, without zeros at either end, and its power of ten.
func decimal(literal string) (string, *big.Int) {
	sign, power, fraction := "", new(big.Int), 0
	var digits []byte
	afterPoint := false
	for i := 0; i < len(literal); i++ {
		switch c := literal[i]; c {
		case '-':
			sign = "-"
		case '.':
			afterPoint = true
		case 'e', 'E':
			power.SetString(strings.TrimPrefix(literal[i+1:], "+"), 10)
			i = len(literal)
		default:
			digits = append(digits, c)
			if afterPoint {
				fraction++
			}
		}
	}
	power.Sub(power, big.NewInt(int64(fraction)))
	for len(digits) > 0 && digits[len(digits)-1] == '0' {
		digits = digits[:len(digits)-1]
		power.Add(power, big.NewInt(1))
	}
	for len(digits) > 0 && digits[0] == '0' {
		digits = digits[1:]
	}
	if len(digits) == 0 {
		return "", new(big.Int)
	}
	return sign + string(digits), power
}

// integer returns a number's value if it is an int64.
func integer(literal string) (int64, bool) {
	digits, power := decimal(literal)
	if digits == "" {
		return 0, true
	}
	if power.Sign() < 0 || power.Cmp(big.NewInt(18)) > 0 {
		return 0, false
	}
	i, err := strconv.ParseInt(digits+strings.Repeat("0", int(power.Int64())), 10, 64)
	return i, err == nil
}

// plainText is the form of a scalar in paths and parameters.
func (v *value) plainText() string {
	if v.kind != number {
		return v.text
	}
	if i, ok := integer(v.text); ok {
		return strconv.FormatInt(i, 10)
	}
	return normal(v.text)
}

// native is the form of a value in expressions.
func (v *value) native() any {
	switch {
	case v == nil || v.kind == null:
		return nil
	case v.kind == boolean:
		return v.text == "true"
	case v.kind == text:
		return v.text
	case v.kind == list:
		out := make([]any, len(v.items))
		for i, item := range v.items {
			out[i] = item.native()
		}
		return out
	case v.kind == object:
		out := map[string]any{}
		for _, m := range v.members {
			out[m.name] = m.value.native()
		}
		return out
	}
	if i, ok := integer(v.text); ok {
		return i
	}
	f, _ := strconv.ParseFloat(v.text, 64)
	return f
}

func numberText(i int64) string { return strconv.FormatInt(i, 10) }

func addInt(a *big.Int, b int) *big.Int { return new(big.Int).Add(a, big.NewInt(int64(b))) }
