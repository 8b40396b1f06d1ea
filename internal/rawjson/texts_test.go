package rawjson

import (
	"bytes"
	"strings"
	"testing"
)

// A string keeps its text when the bytes that it was made of change, and when more strings follow in its block and in others.
func TestTexts_StringsKeepTheirText(t *testing.T) {
	texts := NewTexts(16)
	var all, want []string
	for i := range 3 * largestBlock / 4 {
		text := bytes.Repeat([]byte{byte('a' + i%26)}, i)
		all, want = append(all, texts.Of(text)), append(want, strings.Repeat(string(rune('a'+i%26)), i))
		clear(text)
	}
	for i := range all {
		if all[i] != want[i] {
			t.Errorf("%d: %q, want %q", i, all[i], want[i])
		}
	}
}
