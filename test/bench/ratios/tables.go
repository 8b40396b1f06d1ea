package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

const (
	reviewBenchmark  = "BenchmarkReview"
	hostileBenchmark = "BenchmarkHostile"
	// linear is the maximum factor of the time when the bytes double: 2 is linear and 4 quadratic, this value is half way. A smaller value
	// would fail: deep or long input no longer fits into a processor's caches.
	linear = 2.83
	// mostMemory is the maximum of the bytes that a decision allocates over the bytes of the body, for hostile input.
	mostMemory = 16
	// manyTimes is the minimum factor by which decoding and comparing has to be slower.
	manyTimes = 30
)

// The approaches of BenchmarkReview.
const (
	ours    = "fieldperm"
	decoded = "smd"
	tokens  = "tokenscan"
)

// columns starts a table with figures on the right and names on the left.
func columns(out io.Writer, heads ...string) *tabwriter.Writer {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	row(w, "", heads...)
	return w
}

func row(w io.Writer, name string, cells ...string) {
	fmt.Fprintf(w, "%-*s\t%s\t\n", nameWidth, name, strings.Join(cells, "\t"))
}

// nameWidth is the width of the longest name.
const nameWidth = 28

func printReviews(out io.Writer, all *results) {
	cases := all.below(reviewBenchmark)
	if len(cases) == 0 {
		return
	}
	fmt.Fprintln(out, "\nReviews: processor time of each approach, and the ratios")
	w := columns(out, ours, decoded, tokens, ours+"/"+tokens, decoded+"/"+ours, "allocs", "B/op")
	for _, name := range cases {
		s, _ := all.of(reviewBenchmark + "/" + name + "/" + ours)
		var cells []string
		for _, approach := range []string{ours, decoded, tokens} {
			cells = append(cells, all.took(name, approach))
		}
		cells = append(cells, all.ratio(name, ours, tokens), all.ratio(name, decoded, ours), fmt.Sprintf("%.0f", s.allocations), fmt.Sprintf("%.0f", s.allocated))
		row(w, name, cells...)
	}
	_ = w.Flush()
}

func (r *results) took(name, approach string) string {
	s, ok := r.of(reviewBenchmark + "/" + name + "/" + approach)
	if !ok {
		return "-"
	}
	return duration(s.cost)
}

// duration has three digits.
func duration(nanoseconds float64) string {
	d := time.Duration(nanoseconds)
	for unit := time.Nanosecond; unit < time.Second; unit *= 10 {
		if d < 1000*unit {
			return d.Round(unit).String()
		}
	}
	return d.Round(time.Second / 10).String()
}

// quotient is the processor time of one approach divided by another's.
func (r *results) quotient(name, of, by string) (float64, bool) {
	a, ranA := r.of(reviewBenchmark + "/" + name + "/" + of)
	b, ranB := r.of(reviewBenchmark + "/" + name + "/" + by)
	if !ranA || !ranB {
		return 0, false
	}
	return a.cost / b.cost, true
}

func (r *results) ratio(name, of, by string) string {
	q, ok := r.quotient(name, of, by)
	if !ok {
		return "-"
	}
	return fmt.Sprintf("%.2f", q)
}

func printHostile(out io.Writer, all *results) {
	growths := all.growths()
	if len(growths) == 0 {
		return
	}
	fmt.Fprintln(out, "\nHostile input: how processor time grows as the input doubles (2 is linear, 4 quadratic), and allocated bytes over bytes of the body")
	w := columns(out, "smallest", "largest", "doublings", "bytes", "B/op/bytes")
	for _, g := range growths {
		row(w, g.name, duration(g.first), duration(g.last), figures(g.steps), figures(g.bytes), fmt.Sprintf("%.1f", g.memory))
	}
	_ = w.Flush()
}

func figures(all []float64) string {
	var out []string
	for _, f := range all {
		out = append(out, fmt.Sprintf("%.1f", f))
	}
	return strings.Join(out, " ")
}
