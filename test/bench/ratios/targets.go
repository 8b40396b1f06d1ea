package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// printTargets says for each target of the design (§10) whether this run met it.
func printTargets(out io.Writer, all *results) {
	var lines []string
	add := func(met bool, format string, args ...any) {
		verdict := "not met"
		if met {
			verdict = "met"
		}
		lines = append(lines, fmt.Sprintf("%-8s %s", verdict, fmt.Sprintf(format, args...)))
	}
	for _, size := range []string{"16KiB", "1MiB"} {
		if q, ok := all.quotient(size, ours, tokens); ok {
			add(q <= 1, "%s: no slower than one token scan: %.2f of it", size, q)
		}
	}
	for _, size := range []string{"1KiB", "16KiB", "1MiB"} {
		if q, ok := all.quotient(size, decoded, ours); ok {
			add(q >= manyTimes, "%s: %d times faster than decoding and comparing: %.1f times", size, manyTimes, q)
		}
	}
	small, ranSmall := all.of(reviewBenchmark + "/16KiB/" + ours)
	large, ranLarge := all.of(reviewBenchmark + "/1MiB/" + ours)
	if ranSmall && ranLarge {
		// Objects from a pool are sometimes allocated again.
		add(large.allocations <= small.allocations+2, "allocations of one changed field do not depend on size: %.0f for 16KiB, %.0f for 1MiB", small.allocations, large.allocations)
	}
	if growths := all.growths(); len(growths) > 0 {
		var faster, larger []string
		for _, g := range growths {
			// A single step may be caused by a cache that is too small for the input; quadratic time grows in all steps.
			if len(g.steps) > 0 && g.rate() > linear {
				faster = append(faster, fmt.Sprintf("%s %.1f", g.name, g.rate()))
			}
			if g.memory > mostMemory {
				larger = append(larger, fmt.Sprintf("%s %.1f", g.name, g.memory))
			}
		}
		slices.Sort(faster)
		add(len(faster) == 0, "hostile input costs time linear in bytes: %d of %d cases grow by at most %.1f a doubling; the others: %s", len(growths)-len(faster), len(growths), linear, orNone(strings.Join(faster, ", ")))
		slices.Sort(larger)
		add(len(larger) == 0, "hostile input allocates at most %d times its bytes: %d of %d cases; the others: %s", mostMemory, len(growths)-len(larger), len(growths), orNone(strings.Join(larger, ", ")))
	}
	if len(lines) == 0 {
		return
	}
	fmt.Fprintln(out, "\nTargets")
	for _, line := range lines {
		fmt.Fprintln(out, line)
	}
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}
