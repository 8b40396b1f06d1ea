package main

import (
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite testdata/ratios.txt")

// The output for a recorded run: its input, and the tables.
func TestRun_RecordedOutput(t *testing.T) {
	recorded, err := os.ReadFile("testdata/bench.txt")
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := run(strings.NewReader(string(recorded)), &out); err != nil {
		t.Fatal(err)
	}
	tables, ok := strings.CutPrefix(out.String(), string(recorded))
	if !ok {
		t.Error("the input is changed")
	}
	if *update {
		if err := os.WriteFile("testdata/ratios.txt", []byte(tables), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/ratios.txt")
	if err != nil {
		t.Fatal(err)
	}
	if tables != string(want) {
		t.Errorf("tables differ from testdata/ratios.txt (-update rewrites it):\n%s", tables)
	}
}

func targets(t *testing.T, lines ...string) string {
	t.Helper()
	var out strings.Builder
	if err := run(strings.NewReader(strings.Join(lines, "\n")), &out); err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(out.String(), "\nTargets\n")
	return after
}

func TestTargets(t *testing.T) {
	for _, c := range []struct {
		name  string
		lines []string
		want  string
	}{
		{"as fast as a scan", []string{"BenchmarkReview/16KiB/fieldperm-2 1 100 ns/op", "BenchmarkReview/16KiB/tokenscan-2 1 100 ns/op"},
			"met      16KiB: no slower than one token scan: 1.00 of it\n"},
		{"slower than a scan", []string{"BenchmarkReview/1MiB/fieldperm 1 102 ns/op", "BenchmarkReview/1MiB/tokenscan 1 100 ns/op"},
			"not met  1MiB: no slower than one token scan: 1.02 of it\n"},
		{"30 times", []string{"BenchmarkReview/1KiB/fieldperm-8 1 10 ns/op", "BenchmarkReview/1KiB/smd-8 1 300 ns/op"},
			"met      1KiB: 30 times faster than decoding and comparing: 30.0 times\n"},
		{"29 times", []string{"BenchmarkReview/1KiB/fieldperm-8 1 10 ns/op", "BenchmarkReview/1KiB/smd-8 1 290 ns/op"},
			"not met  1KiB: 30 times faster than decoding and comparing: 29.0 times\n"},
		{"the median of three", []string{
			"BenchmarkReview/16KiB/fieldperm-2 1 900 ns/op", "BenchmarkReview/16KiB/fieldperm-2 1 80 ns/op", "BenchmarkReview/16KiB/fieldperm-2 1 90 ns/op",
			"BenchmarkReview/16KiB/tokenscan-2 1 100 ns/op",
		}, "met      16KiB: no slower than one token scan: 0.90 of it\n"},
		{"the median of two", []string{
			"BenchmarkReview/16KiB/fieldperm-2 1 100 ns/op", "BenchmarkReview/16KiB/fieldperm-2 1 200 ns/op", "BenchmarkReview/16KiB/tokenscan-2 1 100 ns/op",
		}, "not met  16KiB: no slower than one token scan: 1.50 of it\n"},
		{"allocations that grow", []string{"BenchmarkReview/16KiB/fieldperm 1 9 ns/op 1 B/op 10 allocs/op", "BenchmarkReview/1MiB/fieldperm 1 9 ns/op 1 B/op 13 allocs/op"},
			"not met  allocations of one changed field do not depend on size: 10 for 16KiB, 13 for 1MiB\n"},
		{"linear and quadratic", []string{
			"BenchmarkHostile/flat/1000-2 1 1000 ns/op 1.00 MB/s", "BenchmarkHostile/flat/2000-2 1 2000 ns/op 1.00 MB/s",
			"BenchmarkHostile/steep/1000-2 1 1000 ns/op 1.00 MB/s", "BenchmarkHostile/steep/2000-2 1 4000 ns/op 0.50 MB/s",
		}, "not met  hostile input costs time linear in bytes: 1 of 2 cases grow by at most 2.8 a doubling; the others: steep 4.0\n" +
			"met      hostile input allocates at most 16 times its bytes: 2 of 2 cases; the others: none\n"},
		{"bytes that do not double", []string{"BenchmarkHostile/half/1-2 1 1000 ns/op 1.00 MB/s", "BenchmarkHostile/half/2-2 1 1500 ns/op 1.00 MB/s"},
			"met      hostile input costs time linear in bytes: 1 of 1 cases grow by at most 2.8 a doubling; the others: none\n" +
				"met      hostile input allocates at most 16 times its bytes: 1 of 1 cases; the others: none\n"},
		{"memory of the largest size", []string{
			"BenchmarkHostile/lean/1-2 1 1000 ns/op 1.00 MB/s 99 B/op", "BenchmarkHostile/lean/2-2 1 2000 ns/op 1.00 MB/s 32 B/op",
			"BenchmarkHostile/fat/1-2 1 1000 ns/op 1.00 MB/s 1 B/op", "BenchmarkHostile/fat/2-2 1 2000 ns/op 1.00 MB/s 33 B/op",
		}, "met      hostile input costs time linear in bytes: 2 of 2 cases grow by at most 2.8 a doubling; the others: none\n" +
			"not met  hostile input allocates at most 16 times its bytes: 1 of 2 cases; the others: fat 16.5\n"},
		{"nothing of ours", []string{"BenchmarkDiff/1KiB-2 1 1000 ns/op", "ok", "BenchmarkReview/16KiB/fieldperm-2", "BenchmarkReview/16KiB/fieldperm-2 1 x ns/op"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := targets(t, c.lines...); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestWithoutProcessors(t *testing.T) {
	for name, want := range map[string]string{
		"BenchmarkReview/reordered-1000/smd-16": "BenchmarkReview/reordered-1000/smd",
		"BenchmarkReview/reordered-1000/smd":    "BenchmarkReview/reordered-1000/smd",
		"BenchmarkHostile/deep/2400-2":          "BenchmarkHostile/deep/2400",
		"BenchmarkCheck/round_trip":             "BenchmarkCheck/round_trip",
		"BenchmarkCheck/a-b":                    "BenchmarkCheck/a-b",
	} {
		if got := withoutProcessors(name); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}
