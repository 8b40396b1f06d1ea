package shorten

import (
	"strings"
	"testing"
)

func TestText(t *testing.T) {
	for name, c := range map[string]struct{ text, want, within string }{
		"empty":               {"", "", ""},
		"as long as allowed":  {"12345678", "12345678", "12345678"},
		"too long":            {"123456789", "12345678…", "12345…"},
		"splits no character": {"1234567äöü", "1234567…", "12345…"},
		"much too long":       {strings.Repeat("x", 1000), "xxxxxxxx…", "xxxxx…"},
	} {
		if got := Text(c.text, 8); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		if got := Within(c.text, 8); got != c.within || len(got) > 8 {
			t.Errorf("%s: within 8 bytes %q, want %q", name, got, c.within)
		}
	}
}
