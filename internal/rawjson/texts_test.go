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

// TestName_IsDoesNotDecodeWhatIsTooLong: objects are searched for thousands of names, and one of theirs may be long and escaped.
func TestName_IsDoesNotDecodeWhatIsTooLong(t *testing.T) {
	doc, err := Scan([]byte(`{"` + strings.Repeat(`\u003c`, 1000) + `":1,"a":2}`))
	if err != nil {
		t.Fatal(err)
	}
	root := doc.Root()
	if n := testing.AllocsPerRun(100, func() {
		if !root.Get("b").IsAbsent() {
			t.Fatal("found")
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
	if got := root.Get("a"); string(got.Raw()) != "2" {
		t.Errorf("a name is not found: %s", got.Raw())
	}
	if got := root.Get(strings.Repeat("<", 1000)); string(got.Raw()) != "1" {
		t.Errorf("a long escaped name is not found: %s", got.Raw())
	}
}
