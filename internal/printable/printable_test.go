package printable

import "testing"

// TestText_EscapesWhatMovesTheCursor: the text says the same, and is one line.
func TestText_EscapesWhatMovesTheCursor(t *testing.T) {
	for text, want := range map[string]string{
		"web-1 ü 日本": "web-1 ü 日本", "a\x1b[2K\r\n": `a\x1b[2K\r\n`, "\u009b1A": `\u009b1A`, "\u202ex\u2066": `\u202ex\u2066`, "\xff\x00\x7f": `\xff\x00\x7f`, "\U000e0041": `\U000e0041`,
	} {
		if got := Text(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
	if got := string(JSON([]byte("{\n\"a\":\"\u202e\U000e0041ü\"}"))); got != "{\n\"a\":\""+`\u202e\udb40\udc41`+"ü\"}" {
		t.Errorf("JSON is %q", got)
	}
}
