package rawjson

import (
	"bytes"
	"slices"
	"strconv"
)

// NormalNumber returns the same text for equal numbers. It is exact, which float64 is not: sign, digits without outer zeros, "e"
// and the power of ten. Zero is "0". For other values it returns "".
func (v Value) NormalNumber() string {
	if v.Kind() != Number {
		return ""
	}
	return string(appendNormal(nil, v.Raw()))
}

// Int returns the value of a number that is an int64, in any spelling, and whether it is one.
func (v Value) Int() (int64, bool) {
	if v.Kind() != Number {
		return 0, false
	}
	if raw := v.Raw(); isInteger(raw) {
		i, err := strconv.ParseInt(string(raw), 10, 64)
		return i, err == nil
	}
	var room room
	return normalInt(appendNormal(room[:0], v.Raw()))
}

// room is memory on the stack for the text of most numbers and names.
type room [64]byte

// isInteger reports whether a number has neither a fraction nor an exponent.
func isInteger(literal []byte) bool { return !bytes.ContainsAny(literal, ".eE") }

func equalNumbers(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	if isInteger(a) && isInteger(b) {
		return string(bytes.TrimPrefix(a, []byte("-"))) == "0" && string(bytes.TrimPrefix(b, []byte("-"))) == "0"
	}
	var x, y room
	return bytes.Equal(appendNormal(x[:0], a), appendNormal(y[:0], b))
}

// appendNormal appends the text of NormalNumber.
func appendNormal(out, literal []byte) []byte {
	mantissa, exponent := literal, []byte(nil)
	if i := bytes.IndexAny(literal, "eE"); i >= 0 {
		mantissa, exponent = literal[:i], literal[i+1:]
	}
	mantissa, negative := bytes.CutPrefix(mantissa, []byte("-"))
	whole, fraction, _ := bytes.Cut(mantissa, []byte("."))
	begin := len(out)
	out = slices.Grow(out, len(literal)+len("e-9223372036854775808"))
	if negative {
		out = append(out, '-')
	}
	first, power := len(out), -int64(len(fraction))
	if whole = bytes.TrimLeft(whole, "0"); len(whole) == 0 {
		fraction = bytes.TrimLeft(fraction, "0")
	}
	out = append(append(out, whole...), fraction...)
	last := first + len(bytes.TrimRight(out[first:], "0"))
	if last == first {
		return append(out[:begin], '0')
	}
	power += int64(len(out) - last)
	return appendPower(append(out[:last], 'e'), exponent, power)
}

// appendPower appends exponent + shift. An exponent may have any number of digits.
func appendPower(out, exponent []byte, shift int64) []byte {
	down := len(exponent) > 0 && exponent[0] == '-'
	magnitude := bytes.TrimLeft(exponent, "+-0")
	if len(magnitude) <= 18 {
		var power int64
		for _, c := range magnitude {
			power = power*10 + int64(c-'0')
		}
		if down {
			power = -power
		}
		return strconv.AppendInt(out, power+shift, 10)
	}
	// The exponent is beyond 10^18 and shift is not, so the sign does not change.
	if down {
		shift = -shift
		out = append(out, '-')
	}
	sum := append([]byte{'0'}, magnitude...)
	for i := len(sum) - 1; shift != 0; i-- {
		shift += int64(sum[i] - '0')
		digit := (shift%10 + 10) % 10
		sum[i] = byte('0' + digit)
		shift = (shift - digit) / 10
	}
	return append(out, bytes.TrimLeft(sum, "0")...)
}

// normalInt parses a normal number that is an int64.
func normalInt(normal []byte) (int64, bool) {
	if string(normal) == "0" {
		return 0, true
	}
	digits, exponent, _ := bytes.Cut(normal, []byte("e"))
	if len(digits) > mostDigits {
		return 0, false
	}
	power, err := strconv.Atoi(string(exponent))
	if err != nil || power < 0 || power > mostDigits {
		return 0, false
	}
	var room room
	text := room[:copy(room[:], digits)]
	for range power {
		text = append(text, '0')
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	return n, err == nil
}

// mostDigits is the length of the longest int64, with its sign.
const mostDigits = len("-9223372036854775808")
