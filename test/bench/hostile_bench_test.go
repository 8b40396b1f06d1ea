package bench

import (
	"bytes"
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/admission"
)

// body is the review of a case of size n.
func (h *hostile) body(tb testing.TB, n int) []byte {
	tb.Helper()
	old, object := h.make(n)
	body := trials.by(cmp.Or(h.user, "owner")).review(tb, []byte(old), []byte(object))
	if len(body) > maxBytes {
		tb.Fatalf("%s/%d: has %d bytes, and fieldperm reads at most %d: make it smaller", h.name, n, len(body), maxBytes)
	}
	return body
}

// maxBytes is the default limit of a body in fieldperm-webhook.
const maxBytes = 8 << 20

// decide processes a body once, and fails if the result differs from the case's expectation.
func (h *hostile) decide(ctx context.Context, d *desk, body []byte, n int) error {
	result, err := d.review(ctx, body)
	switch {
	case err != nil:
		return err
	case result.Allowed == h.denied || len(result.Requirements) != h.changes(n):
		return fmt.Errorf("allowed is %t with %d changes, want %t with %d: %.200s", result.Allowed, len(result.Requirements), !h.denied, h.changes(n), result.Message)
	}
	return nil
}

// BenchmarkHostile doubles the part that an attacker may choose: the time should double, not grow by the square.
func BenchmarkHostile(b *testing.B) {
	d := newDesk(b)
	for _, h := range hostileCases() {
		b.Run(h.name, func(b *testing.B) {
			for _, n := range []int{h.n, 2 * h.n, 4 * h.n} {
				b.Run(fmt.Sprint(n), func(b *testing.B) {
					body := h.body(b, n)
					measure(b, body, func(ctx context.Context) error { return h.decide(ctx, d, body, n) })
				})
			}
		})
	}
}

// Hostile input gets correct decisions. The sizes are small, because a test does not measure time.
func TestHostile_IsDecidedRightly(t *testing.T) {
	d := newDesk(t)
	for _, h := range hostileCases() {
		t.Run(h.name, func(t *testing.T) {
			n := max(10, h.n/100)
			if err := h.decide(t.Context(), d, h.body(t, n), n); err != nil {
				t.Error(err)
			}
		})
	}
}

var update = flag.Bool("update", false, "rewrite goldens")

// The changes of hostile input are listed in testdata/hostile.txt, path by path. Two Diffs without common code agreed on them.
func TestHostile_Changes(t *testing.T) {
	const n, golden = 12, "testdata/hostile.txt"
	d := newDesk(t)
	var out bytes.Buffer
	for _, h := range hostileCases() {
		in, err := admission.Read(h.body(t, n))
		if err != nil {
			t.Fatal(err)
		}
		result, err := d.ReviewDecoded(t.Context(), admission.Granular, in)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "%s: %d\n", h.name, len(result.Requirements))
		for _, r := range result.Requirements {
			fmt.Fprintf(&out, "\t%.300s\n", fmt.Sprint(r.Operation, " ", r.Path, " ", r.Chain, " ", r.Barrier))
		}
		in.Release()
	}
	if *update {
		if err := os.WriteFile(golden, out.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(out.Bytes(), want) {
		t.Errorf("changes are not those of %s: run with -update and look at the difference", golden)
	}
}

// Input that two readers would understand differently is an error and no decision.
func TestHostile_IsRefused(t *testing.T) {
	d := newDesk(t)
	good := trial("", `"free":{"x":1}`)
	for name, object := range map[string]string{
		"deeper than 10,000":                    trial("", `"free":`+within(10_000, `"a":`, "1", "")),
		"lists deeper than 10,000":              trial("", `"free":{"x":`+strings.Repeat("[", 10_000)+strings.Repeat("]", 10_000)+"}"),
		"a text that is not UTF-8":              trial("", `"free":{"x":"`+"\xff"+`"}`),
		"half a surrogate":                      trial("", `"free":{"x":"\ud800"}`),
		"an unknown escape":                     trial("", `"free":{"x":"\q"}`),
		"an object within bounds, then another": good + good,
		"a list for an object":                  `[` + good + `]`,
		"no end":                                good[:len(good)-1],
		"a number with a zero":                  trial("", `"free":{"x":01}`),
	} {
		t.Run(name, func(t *testing.T) {
			for side, pair := range map[string][2]string{"old": {object, good}, "new": {good, object}} {
				body := trials.by("owner").review(t, []byte(pair[0]), []byte(pair[1]))
				if result, err := d.review(t.Context(), body); err == nil {
					t.Errorf("%s: is decided: allowed is %t", side, result.Allowed)
				}
			}
		})
	}
	if err := (&hostile{changes: none}).decide(t.Context(), d, trials.by("owner").review(t, []byte(good), []byte(good)), 0); err != nil {
		t.Errorf("what all of these are made of: %v", err)
	}
}
