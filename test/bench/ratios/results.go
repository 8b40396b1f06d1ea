package main

import (
	"slices"
	"strconv"
	"strings"
)

// results are the figures of benchmarks by their names, in the order of their first lines.
type results struct {
	names   []string
	samples map[string][]sample
}

// sample is one line. A missing figure is 0.
type sample struct {
	nanoseconds, allocated, allocations float64
	// cost is the processor time in nanoseconds. Ratios use it, because other programs affect it little; if it is missing, the elapsed time
	// is used.
	cost float64
	// size is the number of reviewed bytes, with the precision of the rate.
	size float64
}

// read reads the line of a benchmark: its name, the number of runs, and pairs of figure and unit. It ignores other lines.
func (r *results) read(line string) {
	fields := strings.Fields(line)
	if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
		return
	}
	var s sample
	var rate float64
	for i := 2; i+1 < len(fields); i += 2 {
		figure, err := strconv.ParseFloat(fields[i], 64)
		if err != nil {
			return
		}
		switch fields[i+1] {
		case "ns/op":
			s.nanoseconds = figure
		case "MB/s":
			rate = figure * 1e6
		case "cpu-ns/op":
			s.cost = figure
		case "B/op":
			s.allocated = figure
		case "allocs/op":
			s.allocations = figure
		}
	}
	if s.nanoseconds == 0 {
		return
	}
	if s.cost == 0 {
		s.cost = s.nanoseconds
	}
	s.size = rate * s.nanoseconds / 1e9
	name := withoutProcessors(fields[0])
	if r.samples == nil {
		r.samples = map[string][]sample{}
	}
	if r.samples[name] == nil {
		r.names = append(r.names, name)
	}
	r.samples[name] = append(r.samples[name], s)
}

// withoutProcessors removes the suffix -N, which is missing with one processor. The names here with such an ending (reordered-1000) are
// never last.
func withoutProcessors(name string) string {
	i := strings.LastIndexByte(name, '-')
	if i < strings.LastIndexByte(name, '/') {
		return name
	}
	if _, err := strconv.Atoi(name[i+1:]); err != nil {
		return name
	}
	return name[:i]
}

// of returns the medians of a benchmark's figures, and false if it did not run.
func (r *results) of(name string) (sample, bool) {
	all := r.samples[name]
	if len(all) == 0 {
		return sample{}, false
	}
	median := func(figure func(sample) float64) float64 {
		figures := make([]float64, len(all))
		for i, s := range all {
			figures[i] = figure(s)
		}
		slices.Sort(figures)
		middle := len(figures) / 2
		if len(figures)%2 == 0 {
			return (figures[middle-1] + figures[middle]) / 2
		}
		return figures[middle]
	}
	return sample{
		nanoseconds: median(func(s sample) float64 { return s.nanoseconds }),
		cost:        median(func(s sample) float64 { return s.cost }),
		allocated:   median(func(s sample) float64 { return s.allocated }),
		allocations: median(func(s sample) float64 { return s.allocations }),
		size:        median(func(s sample) float64 { return s.size }),
	}, true
}

// below returns the next elements of the names under a benchmark's, each once, in order.
func (r *results) below(name string) []string {
	var out []string
	for _, full := range r.names {
		rest, ok := strings.CutPrefix(full, name+"/")
		if !ok {
			continue
		}
		if next, _, _ := strings.Cut(rest, "/"); !slices.Contains(out, next) {
			out = append(out, next)
		}
	}
	return out
}
