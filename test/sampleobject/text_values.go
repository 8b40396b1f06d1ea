package sampleobject

import (
	"regexp/syntax"
	"strings"
	"unicode/utf8"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
)

// maxText bounds the length of texts made for minLength and for repeats.
const maxText = 4096

// texts returns likely strings: those of the format, then those of the pattern, then common ones.
func (s *search) texts(schema *apiextensions.JSONSchemaProps) []string {
	out := formatted()[schema.Format]
	if schema.Pattern != "" {
		out = append(out, patterned(schema)...)
	}
	if schema.Format == "" && schema.Pattern == "" {
		out = append(out, plain(schema)...)
	}
	out = append(out, s.words...)
	return append(out, common()...)
}

// plain returns strings of the minimum length. The empty string is last, because rules seldom accept it.
func plain(schema *apiextensions.JSONSchemaProps) []string {
	least := 1
	if schema.MinLength != nil {
		least = max(1, int(min(*schema.MinLength, maxText)))
	}
	var out []string
	for _, letter := range "abcdefghijklmnop" {
		out = append(out, strings.Repeat(string(letter), least))
	}
	return append(out, strings.Repeat("a", least+1), strings.Repeat("0", least), "")
}

// patterned returns strings that match the pattern, shorter ones first.
func patterned(schema *apiextensions.JSONSchemaProps) []string {
	tree, err := syntax.Parse(schema.Pattern, syntax.Perl)
	if err != nil {
		return nil
	}
	least := 0
	if schema.MinLength != nil {
		least = int(min(*schema.MinLength, maxText))
	}
	var out []string
	// The number of repeats for the minimum length depends on the length of the repeated part.
	for _, extra := range []int{0, 1, 2, least, (least + 1) / 2, (least + 2) / 3, (least + 3) / 4} {
		for pick := range 8 {
			text := spell(tree, extra, pick)
			out = append(out, text)
			// A pattern without an end anchor accepts a suffix, and one without a start anchor accepts a prefix.
			if missing := least - utf8.RuneCountInString(text); missing > 0 {
				out = append(out, text+strings.Repeat("a", missing), strings.Repeat("a", missing)+text)
			}
		}
	}
	return out
}

// spell returns a string that matches an expression without its anchors. Each repeat occurs extra times more than it must, and each
// choice uses alternative number pick.
func spell(re *syntax.Regexp, extra, pick int) string {
	var b strings.Builder
	spellTo(&b, re, extra, pick)
	return b.String()
}

func spellTo(b *strings.Builder, re *syntax.Regexp, extra, pick int) {
	if b.Len() > maxText {
		return
	}
	repeat := func(times int) {
		for range times {
			spellTo(b, re.Sub[0], extra, pick)
		}
	}
	switch re.Op {
	case syntax.OpLiteral:
		b.WriteString(string(re.Rune))
	case syntax.OpCharClass:
		b.WriteRune(member(re.Rune, pick))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		b.WriteRune(rune('a' + pick))
	case syntax.OpStar, syntax.OpQuest:
		if re.Op == syntax.OpQuest {
			extra = min(extra, 1)
		}
		repeat(extra)
	case syntax.OpPlus:
		repeat(1 + extra)
	case syntax.OpRepeat:
		times := re.Min + extra
		if re.Max >= 0 {
			times = min(times, re.Max)
		}
		repeat(times)
	case syntax.OpCapture:
		repeat(1)
	case syntax.OpConcat:
		for _, part := range re.Sub {
			spellTo(b, part, extra, pick)
		}
	case syntax.OpAlternate:
		spellTo(b, re.Sub[pick%len(re.Sub)], extra, pick)
	default:
		// Anchors and empty expressions add nothing.
	}
}

// member returns letter number pick of a class if it has letters, else character number pick of its first range.
func member(ranges []rune, pick int) rune {
	for i := 0; i+1 < len(ranges); i += 2 {
		low, high := max(ranges[i], 'a'), min(ranges[i+1], 'z')
		if low <= high {
			return low + rune(pick)%(high-low+1)
		}
	}
	for i := 0; i+1 < len(ranges); i += 2 {
		low, high := max(ranges[i], '!'), min(ranges[i+1], '~')
		if low <= high {
			return low + rune(pick)%(high-low+1)
		}
	}
	if len(ranges) == 0 {
		return 'a'
	}
	return ranges[0]
}

// formatted returns strings for the formats that the API server checks.
func formatted() map[string][]string {
	return map[string][]string{
		"bsonobjectid": {"507f1f77bcf86cd799439011"},
		"byte":         {"YQ==", "Yg==", "Yw=="},
		"cidr":         {"192.0.2.0/24", "198.51.100.0/24", "2001:db8::/32"},
		"creditcard":   {"4111111111111111"},
		"date":         {"2000-01-01", "2000-01-02", "2000-01-03"},
		"date-time":    {"2000-01-01T00:00:00Z", "2000-01-02T00:00:00Z", "2000-01-03T00:00:00Z"},
		"datetime":     {"2000-01-01T00:00:00Z", "2000-01-02T00:00:00Z"},
		"duration":     {"1m", "1h", "1s"},
		"email":        {"a@example.com", "b@example.com"},
		"hexcolor":     {"#000000", "#ffffff"},
		"hostname":     {"a.example.com", "b.example.com", "a"},
		"ipv4":         {"192.0.2.1", "192.0.2.2", "192.0.2.3"},
		"ipv6":         {"2001:db8::1", "2001:db8::2"},
		"isbn":         {"0321751043", "978-0321751041"},
		"isbn10":       {"0321751043"},
		"isbn13":       {"978-0321751041"},
		"mac":          {"00:00:5e:00:53:01", "00:00:5e:00:53:02"},
		"password":     {"a", "b", "c"},
		"rgbcolor":     {"rgb(0,0,0)", "rgb(1,1,1)"},
		"ssn":          {"111-11-1111"},
		"uri":          {"https://a.example.com", "https://b.example.com"},
		"uuid":         {"00000000-0000-4000-8000-000000000000", "00000000-0000-4000-8000-000000000001"},
		"uuid3":        {"00000000-0000-3000-8000-000000000000"},
		"uuid4":        {"00000000-0000-4000-8000-000000000000"},
		"uuid5":        {"00000000-0000-5000-8000-000000000000"},
	}
}

// common returns values that rules often parse: names, quantities, addresses, durations, URLs, times.
func common() []string {
	return []string{
		"a", "0", "1", "a.b", "example.com", "a.example.com/b", "a/b", "1Gi", "100m", "1h", "192.0.2.1", "192.0.2.0/24",
		"2001:db8::1", "https://example.com", "https://example.com/a", "v1", "v1.0.0", "1.0.0", "2000-01-01T00:00:00Z",
		"00000000-0000-4000-8000-000000000000", "YQ==", "#000000", "/a", "A", "example.com:443", "*.example.com", "a@example.com", "",
	}
}
