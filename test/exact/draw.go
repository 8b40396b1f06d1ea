package exact

import (
	"hash/fnv"
	"math/rand/v2"
	"strings"
)

// draw is the only source of randomness, so that a seed or a fuzzer's bytes repeat everything.
type draw struct{ *rand.Rand }

func newDraw(seed, stream uint64) *draw { return &draw{rand.New(rand.NewPCG(seed, stream))} }

// bytesDraw takes every decision from one byte, until the bytes are used up.
func bytesDraw(data []byte) *draw {
	h := fnv.New64a()
	_, _ = h.Write(data)
	return &draw{rand.New(&byteSource{data, rand.NewPCG(h.Sum64(), 3617)})}
}

type byteSource struct {
	data []byte
	rest rand.Source
}

// Uint64 repeats the byte, because rand takes high bits for one bound and low bits for another.
func (s *byteSource) Uint64() uint64 {
	if len(s.data) == 0 {
		return s.rest.Uint64()
	}
	b := s.data[0]
	s.data = s.data[1:]
	return uint64(b) * 0x0101010101010101
}

// oneIn is true once in n times.
func (d *draw) oneIn(n int) bool { return d.IntN(n) == 0 }

func pick[T any](d *draw, from []T) T { return from[d.IntN(len(from))] }

// There are few names and values, so that two objects share many of them. Each one tests a special case.
func (d *draw) name() string {
	return pick(d, []string{
		"a", "a", "b", "b", "c", "name", "a/x", "example.com/a", "A", "", "~1", ".a", "a.b", "é", "\U0001f600", "a\"b", "\\", "\x00", "[*]", "]", "0",
		"a\"].spec[\"b", "\u2028", "<&>", "\x7f", "f:a", ".",
	})
}

func (d *draw) text() string {
	if d.oneIn(60) {
		return strings.Repeat(pick(d, []string{"x", "é", "\\", "\""}), 1<<d.IntN(12))
	}
	return pick(d, []string{"a", "a", "b", "b", "c", "", "TCP", "a/x", "é", "\U0001f600", "\"", "\\", "\x00", "\n", "null", "1", "true", "{}", "a b", "\ufffd", "/"})
}

func (d *draw) number() string {
	return pick(d, []string{
		"0", "-0", "0.0", "1", "1", "1e0", "1.0", "10e-1", "2", "2", "-1", "80", "8E+1", "443", "1.5", "15e-1", "0.1", "100", "1e2",
		"9007199254740992", "9007199254740993", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809",
		"1e18", "1e19", "1e400", "10e399", "1e-400", "1e99999999999999999999", "1e-99999999999999999999", "10e99999999999999999998",
		"123456789012345678901234567890", "123456789012345678901234567891", "0e99999999999999999999", "0.1000000000000000055511151231257827",
	})
}

func (d *draw) scalar() *value {
	switch d.IntN(4) {
	case 0:
		return boolValue(d.oneIn(2))
	case 1:
		return numberValue(d.number())
	default:
		return textValue(d.text())
	}
}

// respell returns another literal for the same number.
func (d *draw) respell(literal string) string {
	digits, power := decimal(literal)
	if digits == "" {
		return pick(d, []string{"0", "-0", "0.0", "0e7", "-0.00E-3", "0e+0"})
	}
	if i, ok := integer(literal); ok && d.oneIn(2) {
		return numberText(i) + pick(d, []string{"", ".0", "e0", "E+0", "e-0", ".000"})
	}
	zeros := d.IntN(3)
	out := digits + strings.Repeat("0", zeros)
	shifted := addInt(power, -zeros)
	if d.oneIn(2) && len(out) > 1 && out[len(out)-2] != '-' {
		// Put a point before the last digit.
		out, shifted = out[:len(out)-1]+"."+out[len(out)-1:], addInt(shifted, 1)
	}
	if shifted.Sign() > 0 && d.oneIn(2) {
		return out + "E+" + shifted.String()
	}
	return out + "e" + shifted.String()
}
