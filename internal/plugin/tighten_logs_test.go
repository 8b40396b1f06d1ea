package plugin

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// TestProgress_SaysHowMuchWasRead reads a file of 3 MiB of which 2 MiB are there yet.
func TestProgress_SaysHowMuchWasRead(t *testing.T) {
	for _, test := range []struct {
		size int64
		want string
	}{
		{3 << 20, "\raudit.log: 2 MiB of 3 MiB, 66% "},
		// Standard input has no size.
		{0, "\raudit.log: 2 MiB "},
	} {
		var out bytes.Buffer
		p := &progress{in: bytes.NewReader(make([]byte, 2<<20)), out: &out, name: "audit.log", size: test.size}
		if n, err := io.Copy(io.Discard, p); n != 2<<20 || err != nil {
			t.Fatal(n, err)
		}
		p.say()
		if !strings.HasSuffix(out.String(), test.want) {
			t.Errorf("got %q, want %q", out.String(), test.want)
		}
		p.end()
		if !strings.HasSuffix(out.String(), "\r\x1b[K") {
			t.Errorf("the line stays: %q", out.String())
		}
	}
}

// TestProgress_SaysLittle reads a file byte by byte. The terminal gets a line now and then, not one for each byte.
func TestProgress_SaysLittle(t *testing.T) {
	var out bytes.Buffer
	p := &progress{in: iotest.OneByteReader(strings.NewReader(strings.Repeat("x", 1000))), out: &out, name: "x"}
	if _, err := io.Copy(io.Discard, p); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "\r"); n == 0 || n > 100 {
		t.Errorf("%d lines for 1000 bytes", n)
	}
}
