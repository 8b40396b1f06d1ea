package rawjson

import (
	"bytes"
	"math"
	"strconv"
)

// NormalNumber returns the same text for equal numbers. It is exact, which float64 is not: sign, digits without outer zeros, "e"
// and the power of ten. Zero is "0". For other values it returns "".
func (v Value) NormalNumber() string {
	if v.Kind() != Number {
		return ""
	}
	return normalNumber(v.Raw())
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
	return normalInt(v.NormalNumber())
}

// isInteger reports whether a number has neither a fraction nor an exponent.
func isInteger(literal []byte) bool { return !bytes.ContainsAny(literal, ".eE") }

func equalNumbers(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	if isInteger(a) && isInteger(b) {
		return string(bytes.TrimPrefix(a, []byte("-"))) == "0" && string(bytes.TrimPrefix(b, []byte("-"))) == "0"
	}
	return normalNumber(a) == normalNumber(b)
}

func normalNumber(literal []byte) string {
	mantissa, exponent := literal, []byte(nil)
	if i := bytes.IndexAny(literal, "eE"); i >= 0 {
		mantissa, exponent = literal[:i], literal[i+1:]
	}
	mantissa, negative := bytes.CutPrefix(mantissa, []byte("-"))
	whole, fraction, _ := bytes.Cut(mantissa, []byte("."))
	digits := append(append(make([]byte, 0, len(literal)+24), whole...), fraction...)
	digits = bytes.TrimLeft(digits, "0")
	if len(digits) == 0 {
		return "0"
	}
	trimmed := bytes.TrimRight(digits, "0")
	shift := int64(len(digits) - len(trimmed) - len(fraction))
	out := make([]byte, 0, len(literal)+24)
	if negative {
		out = append(out, '-')
	}
	out = append(append(out, trimmed...), 'e')
	return string(appendPower(out, exponent, shift))
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
func normalInt(normal string) (int64, bool) {
	if normal == "0" {
		return 0, true
	}
	for i := range len(normal) {
		if normal[i] != 'e' {
			continue
		}
		power, err := strconv.Atoi(normal[i+1:])
		if err != nil || power < 0 || power > len(strconv.Itoa(math.MaxInt64)) {
			return 0, false
		}
		text := append([]byte(nil), normal[:i]...)
		for range power {
			text = append(text, '0')
		}
		n, err := strconv.ParseInt(string(text), 10, 64)
		return n, err == nil
	}
	return 0, false
}
