package main

import (
	"strings"
	"testing"
)

// Figures are medians over the rounds, ratios medians of the ratios within a round.
func TestPrint(t *testing.T) {
	var r results
	for round, lines := range []string{
		"BenchmarkPeer/fieldperm/2KiB/allowed-2 10 2000 ns/op 1000 cpu-ns/op 2048 B/op 9 allocs/op\nBenchmarkPeer/other/2KiB/allowed-2 10 9000 ns/op 3000 cpu-ns/op\n",
		"BenchmarkPeer/fieldperm/2KiB/allowed-2 10 3000 ns/op 10000 cpu-ns/op 2048 B/op 9 allocs/op\nBenchmarkPeer/other/2KiB/allowed-2 10 9000 ns/op 50000 cpu-ns/op\n",
		"goos: linux\nBenchmarkPeer/fieldperm/2KiB/allowed-2 10 4000 ns/op 2000 cpu-ns/op 2048 B/op 9 allocs/op\nBenchmarkPeer/other/2KiB/allowed-2 10 9000 ns/op 8000 cpu-ns/op\nPASS\n",
	} {
		r.read(round, lines)
	}
	var out strings.Builder
	r.print(&out)
	rows := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{"fieldperm 2 (1) other 8 (4)", "fieldperm 3 other 9", "fieldperm 2.0"} {
		if !strings.Contains(rows, want) {
			t.Errorf("the table lacks %q:\n%s", want, out.String())
		}
	}
}
