package plain

import (
	"bytes"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"math/big"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/fieldperm/fieldperm/fieldperm"
)

// kind is that of a decoded JSON value.
type kind byte

const (
	kindNull kind = iota
	kindBool
	kindNumber
	kindString
	kindList
	kindObject
)

// value is a decoded JSON value. A nil *value is an absent one, which is not null.
type value struct {
	kind kind
	// text is the string, or the normal spelling of a number or boolean: equal scalars of one kind
	// have equal texts.
	text    string
	items   []*value
	members []member
	index   map[string]*value
	// duplicate says that a member's name occurs twice, so that readers of the object may disagree.
	duplicate bool
	raw       []byte
	// sum is equal for equal values. It tells values that differ apart at once, so that a walk down to
	// a change does not compare what lies below at every level.
	sum uint64
}

type member struct {
	name  string
	value *value
}

// decode reads one JSON object; see decodeAny.
func decode(raw []byte) (*value, error) {
	v, err := decodeAny(raw)
	if err != nil {
		return nil, err
	}
	if v.kind != kindObject {
		return nil, &fieldperm.InvalidObjectError{Message: "is no JSON object: send the object as an API server does"}
	}
	return v, nil
}

// decodeAny reads one JSON value; invalid UTF-8, trailing bytes and nesting deeper than 10,000 are errors.
func decodeAny(raw []byte) (*value, error) {
	d := jsontext.NewDecoder(bytes.NewReader(raw), jsontext.AllowDuplicateNames(true))
	v, err := decodeNext(d, raw)
	if err != nil {
		return nil, &fieldperm.InvalidObjectError{Message: fmt.Sprintf("is no JSON: %v: send the object as an API server does", err)}
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, &fieldperm.InvalidObjectError{Message: "is followed by more JSON: send one object"}
	}
	return v, nil
}

func decodeNext(d *jsontext.Decoder, raw []byte) (*value, error) {
	v, err := decodeValue(d, raw)
	if err == nil {
		v.sum = v.checksum()
	}
	return v, err
}

func decodeValue(d *jsontext.Decoder, raw []byte) (*value, error) {
	token, err := d.ReadToken()
	if err != nil {
		return nil, err
	}
	switch token.Kind() {
	case 'n':
		return &value{kind: kindNull}, nil
	case 't', 'f':
		return &value{kind: kindBool, text: token.String()}, nil
	case '0':
		return &value{kind: kindNumber, text: normalNumber(token.String())}, nil
	case '"':
		return &value{kind: kindString, text: token.String()}, nil
	case '[':
		v := &value{kind: kindList}
		for d.PeekKind() != ']' {
			item, err := decodeNext(d, raw)
			if err != nil {
				return nil, err
			}
			v.items = append(v.items, item)
		}
		_, err := d.ReadToken()
		return v, err
	default:
		start := d.InputOffset() - 1
		v := &value{kind: kindObject, index: map[string]*value{}}
		for d.PeekKind() != '}' {
			name, err := d.ReadToken()
			if err != nil {
				return nil, err
			}
			key := name.String()
			child, err := decodeNext(d, raw)
			if err != nil {
				return nil, err
			}
			if _, twice := v.index[key]; twice {
				v.duplicate = true
			}
			v.index[key] = child
			v.members = append(v.members, member{key, child})
		}
		_, err := d.ReadToken()
		v.raw = raw[start:d.InputOffset()]
		return v, err
	}
}

func newScalar(k kind, text string) *value {
	v := &value{kind: k, text: text}
	v.sum = v.checksum()
	return v
}

// seed makes sums differ between processes, so that nobody can prepare values of equal sums.
var seed = maphash.MakeSeed()

// checksum adds members up, whose order does not count.
func (v *value) checksum() uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	_ = h.WriteByte(byte(v.kind))
	_, _ = h.WriteString(v.text)
	for _, item := range v.items {
		maphash.WriteComparable(&h, item.sum)
	}
	var members uint64
	for _, m := range v.members {
		members += maphash.Comparable(seed, struct {
			name string
			sum  uint64
		}{m.name, m.value.sum})
	}
	maphash.WriteComparable(&h, members)
	return h.Sum64()
}

// normalNumber spells equal numbers equally: sign, digits without outer zeros, power of ten. It is
// exact where a float64 would not be.
func normalNumber(literal string) string {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(literal), "e")
	negative := strings.HasPrefix(mantissa, "-")
	whole, fraction, _ := strings.Cut(strings.TrimPrefix(mantissa, "-"), ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	if digits == "" {
		return "0"
	}
	// An exponent may have any number of digits.
	power, ok := new(big.Int), true
	if exponent != "" {
		power, ok = power.SetString(exponent, 10)
	}
	if !ok {
		return literal
	}
	power.Sub(power, big.NewInt(int64(len(fraction))))
	trimmed := strings.TrimRight(digits, "0")
	power.Add(power, big.NewInt(int64(len(digits)-len(trimmed))))
	sign := ""
	if negative {
		sign = "-"
	}
	return sign + trimmed + "e" + power.String()
}

func (v *value) isScalar() bool {
	return v != nil && (v.kind == kindBool || v.kind == kindNumber || v.kind == kindString)
}

// get returns the member of an object, nil if it is absent or v is no object.
func (v *value) get(name string) *value {
	if v == nil || v.kind != kindObject {
		return nil
	}
	return v.index[name]
}

// equal compares as JSON values: the order of members does not count, unless a name occurs twice;
// then nobody can say which of them counts, and only the same sequence is equal. Absent is not null.
func equal(a, b *value) bool {
	if a == nil || b == nil {
		return a == b
	}
	if a.kind != b.kind || a.sum != b.sum {
		return false
	}
	switch a.kind {
	case kindNull:
		return true
	case kindList:
		return slices.EqualFunc(a.items, b.items, equal)
	case kindObject:
		if a.duplicate || b.duplicate {
			return slices.EqualFunc(a.members, b.members, func(x, y member) bool { return x.name == y.name && equal(x.value, y.value) })
		}
		if len(a.members) != len(b.members) {
			return false
		}
		for _, m := range a.members {
			if other, ok := b.index[m.name]; !ok || !equal(m.value, other) {
				return false
			}
		}
		return true
	default:
		return a.text == b.text
	}
}
