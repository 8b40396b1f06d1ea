// Command ratios prints the important figures of the benchmarks in test/bench: the cost of a review in relation to its lower limit, and the
// growth for hostile input. It reads the output of go test -bench and passes it on, so that it can be used in a pipe before benchstat.
//
//	go test -run '^$' -bench . ./test/bench | go run ./test/bench/ratios
//
// Figures are no tests: it fails only if it cannot read its input.
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
)

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "ratios:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer) error {
	var all results
	lines := bufio.NewScanner(in)
	// A benchmark that fails may print long lines.
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		fmt.Fprintln(out, lines.Text())
		all.read(lines.Text())
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("input cannot be read: %w: pipe the output of go test -bench into it", err)
	}
	printReviews(out, &all)
	printHostile(out, &all)
	printTargets(out, &all)
	return nil
}
