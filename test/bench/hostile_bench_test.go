package bench

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/internal/plain"
	"github.com/fieldperm/fieldperm/schema"
)

// body is the review of a case of size n.
func (h *hostile) body(tb testing.TB, n int) []byte {
	tb.Helper()
	old, object := h.make(n)
	body := trials.by(cmp.Or(h.user, "owner")).review(tb, []byte(old), []byte(object))
	if len(body) > maxBytes {
		tb.Fatalf("%s/%d: has %d bytes, of which nobody reads more than %d: make it smaller", h.name, n, len(body), maxBytes)
	}
	return body
}

// maxBytes is what fieldperm-webhook reads unless it is told otherwise.
const maxBytes = 8 << 20

// decide goes through a body once, and fails if what comes out is not what the case says.
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

// BenchmarkHostile doubles what an attacker may choose: the time should double, not square.
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

// Hostile input is decided as any other, and as the plain Diff says. The sizes are small: time is nothing for a test.
func TestHostile_IsDecidedRightly(t *testing.T) {
	d := newDesk(t)
	for _, h := range hostileCases() {
		t.Run(h.name, func(t *testing.T) {
			n := max(10, h.n/100)
			body := h.body(t, n)
			if err := h.decide(t.Context(), d, body, n); err != nil {
				t.Error(err)
			}
			result, err := d.review(t.Context(), body)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := rendered(result.Requirements), d.rendered(t, body); !slices.Equal(got, want) {
				t.Errorf("changes differ from those of the plain Diff:\ngot  %.500s\nwant %.500s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

// rendered are changes in words.
func rendered(requirements []fieldperm.Requirement) []string {
	var out []string
	for i := range requirements {
		r := &requirements[i]
		out = append(out, fmt.Sprint(r.Path, " ", r.Operation, " ", r.Chain, " ", r.Barrier))
	}
	slices.Sort(out)
	return out
}

// rendered are the changes that the plain Diff finds.
func (d *desk) rendered(t *testing.T, body []byte) []string {
	t.Helper()
	request, err := readStrictly(body)
	if err != nil {
		t.Fatal(err)
	}
	kind, err := d.permissions.KindFor(trials.kind, schema.ResourceRef{Group: trials.kind.Group, Version: trials.kind.Version, Resource: trials.resource})
	if err != nil {
		t.Fatal(err)
	}
	requirements, err := plain.Diff(request.OldObject.Raw, request.Object.Raw, kind, nil)
	if err != nil {
		t.Fatal(err)
	}
	return rendered(requirements)
}

// What no two readers would understand alike is an error and no decision.
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
