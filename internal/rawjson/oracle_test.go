package rawjson

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// decoded is a value as jsontext reads it.
type decoded struct {
	kind   Kind
	text   string // of a scalar
	names  []string
	values []*decoded
}

// decodeAll reads one value, and refuses text after it.
func decodeAll(data []byte) (*decoded, error) {
	d := jsontext.NewDecoder(bytes.NewReader(data), jsontext.AllowDuplicateNames(true))
	v, err := decodeNext(d)
	if err != nil {
		return nil, err
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("more: %w", err)
	}
	return v, nil
}

func decodeNext(d *jsontext.Decoder) (*decoded, error) {
	token, err := d.ReadToken()
	if err != nil {
		return nil, err
	}
	text := token.String()
	switch token.Kind() {
	case 'n':
		return &decoded{kind: Null, text: text}, nil
	case 't', 'f':
		return &decoded{kind: Bool, text: text}, nil
	case '0':
		return &decoded{kind: Number, text: text}, nil
	case '"':
		return &decoded{kind: String, text: text}, nil
	case jsontext.KindInvalid, jsontext.KindBeginObject, jsontext.KindEndObject, jsontext.KindBeginArray, jsontext.KindEndArray:
	}
	v, end := &decoded{kind: List}, jsontext.Kind(']')
	if token.Kind() == '{' {
		v.kind, end = Object, '}'
	}
	for d.PeekKind() != end {
		if v.kind == Object {
			name, err := d.ReadToken()
			if err != nil {
				return nil, err
			}
			v.names = append(v.names, name.String())
		}
		item, err := decodeNext(d)
		if err != nil {
			return nil, err
		}
		v.values = append(v.values, item)
	}
	_, err = d.ReadToken()
	return v, err
}

// String returns the same text for equal values. It computes numbers, so exponents must be small.
func (v *decoded) String() string {
	switch v.kind {
	case Number:
		_, exponent, _ := strings.Cut(strings.ToLower(v.text), "e")
		if n, err := strconv.Atoi(exponent); exponent != "" && (err != nil || n > 400 || n < -400) {
			return "beyond"
		}
		r, ok := new(big.Rat).SetString(v.text)
		if !ok {
			return "beyond"
		}
		return r.String()
	case String:
		return strconv.Quote(v.text)
	case List, Object:
		parts := make([]string, len(v.values))
		for i, item := range v.values {
			if parts[i] = item.String(); v.kind == Object {
				parts[i] = strconv.Quote(v.names[i]) + ":" + parts[i]
			}
		}
		if v.kind == Object && !v.ambiguous() {
			slices.Sort(parts)
		}
		return v.kind.String() + "{" + strings.Join(parts, ",") + "}"
	case Absent, Null, Bool:
	}
	return v.text
}

func (v *decoded) ambiguous() bool {
	names := slices.Sorted(slices.Values(v.names))
	return len(slices.Compact(names)) < len(v.names)
}

// differs returns where a Value differs from jsontext's reading, "" if it does not.
func (v *decoded) differs(got Value) string {
	if got.Kind() != v.kind {
		return fmt.Sprintf("%s: kind is %s, want %s", got.Raw(), got.Kind(), v.kind)
	}
	switch v.kind {
	case String:
		if got.Text() != v.text || !got.Is(v.text) || got.Is(v.text+"x") {
			return fmt.Sprintf("%s: means %q, want %q", got.Raw(), got.Text(), v.text)
		}
	case Number, Bool, Null:
		if string(got.Raw()) != v.text {
			return fmt.Sprintf("%s: want %s", got.Raw(), v.text)
		}
	case List:
		n := 0
		for i := got.Items(); i.Next(); n++ {
			if n >= len(v.values) {
				return fmt.Sprintf("%s: more than %d items", got.Raw(), len(v.values))
			}
			if at := v.values[n].differs(i.Value()); at != "" {
				return at
			}
		}
		if n != len(v.values) || got.IsEmpty() != (n == 0) {
			return fmt.Sprintf("%s: %d items, want %d", got.Raw(), n, len(v.values))
		}
	case Object:
		n := 0
		for m := got.Members(); m.Next(); n++ {
			if n >= len(v.values) || m.Name().String() != v.names[n] {
				return fmt.Sprintf("%s: name %d is %q", got.Raw(), n, m.Name())
			}
			if at := v.values[n].differs(m.Value()); at != "" {
				return at
			}
			last := n
			for i, name := range v.names {
				if name == v.names[n] {
					last = i
				}
			}
			if found, times := got.Find(v.names[n]); string(found.Raw()) == "" || times == 0 || v.values[last].differs(found) != "" {
				return fmt.Sprintf("%s: finds %q %d times: %s", got.Raw(), v.names[n], times, found.Raw())
			}
		}
		if n != len(v.values) || got.IsEmpty() != (n == 0) || got.Ambiguous() != v.ambiguous() {
			return fmt.Sprintf("%s: %d members, want %d; ambiguous %t", got.Raw(), n, len(v.values), got.Ambiguous())
		}
	case Absent:
	}
	return ""
}
