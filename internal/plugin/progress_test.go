package plugin

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

func TestProgress_SaysWhatWasDoneHowFastAndWhatIsLeft(t *testing.T) {
	for _, c := range []struct {
		progress *progress
		total    int64
		since    time.Duration
		want     string
	}{
		{&progress{what: "Roles", unit: "objects", size: 1, done: 500}, 2000, time.Second, "Roles: 500 of 2000, 500 objects/s, 3s left"},
		{&progress{what: "Roles", unit: "objects", size: 1, done: 500}, 0, time.Second, "Roles: 500, 500 objects/s"},
		{&progress{what: "Roles", unit: "objects", size: 1, done: 2000}, 2000, 2 * time.Second, "Roles: 2000 of 2000, 1000 objects/s, 0s left"},
		{&progress{what: "Roles", unit: "objects", size: 1, done: 1}, 0, 0, "Roles: 1, 1000 objects/s"},
		// More than the API server said: how much is left is not known.
		{&progress{what: "Roles", unit: "objects", size: 1, done: 30}, 20, time.Second, "Roles: 30 of 20, 30 objects/s"},
		{&progress{what: "audit.log", unit: "MiB", size: 1 << 20, done: 2 << 20}, 3 << 20, 2 * time.Second, "audit.log: 2 of 3 MiB, 1 MiB/s, 1s left"},
		{&progress{what: "audit.log", unit: "MiB", size: 1 << 20, done: 2 << 20}, 0, time.Second, "audit.log: 2 MiB, 2 MiB/s"},
	} {
		if got := c.progress.text(c.total, c.since); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

// The terminal gets a line now and then, not one for each byte, and the line goes away. What others named cannot write to the terminal.
func TestProgress_SaysLittle(t *testing.T) {
	var out bytes.Buffer
	p := &progress{out: &out, unit: "MiB", size: 1 << 20, totals: map[string]int64{}}
	if n, err := io.Copy(io.Discard, p.reader(iotest.OneByteReader(strings.NewReader(strings.Repeat("x", 1000))), "\x1b[2Jlog", 1000)); n != 1000 || err != nil || p.done != 1000 {
		t.Fatal(n, err, p.done)
	}
	if n := strings.Count(out.String(), "\r"); n == 0 || n > 100 || strings.Contains(out.String(), "\x1b[2J") {
		t.Errorf("%d lines for 1000 bytes: %q", n, out.String())
	}
	p.clear()
	if !strings.HasSuffix(out.String(), "\r\x1b[K") {
		t.Errorf("the line stays: %q", out.String())
	}
	p.step("next", 3)
	if p.done != 3 {
		t.Errorf("%d of the next were done, want 3", p.done)
	}
}

func TestProgress_SaysNothingInAPipe(t *testing.T) {
	streams, _, _, errOut := genericiooptions.NewTestIOStreams()
	p := (&options{streams: streams}).newProgress("objects", 1)
	p.total("Roles", 1)
	p.step("Roles", 1)
	p.clear()
	in := strings.NewReader("x")
	if p != nil || errOut.Len() > 0 || p.reader(in, "x", 1) != io.Reader(in) {
		t.Errorf("%+v, %q", p, errOut)
	}
}
