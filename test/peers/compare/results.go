package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// yardstick is the peer that all others are compared with.
const yardstick = "fieldperm"

// measure is one column of a benchmark's output.
type measure struct {
	unit, title, format string
	// scale converts to the unit of the title.
	scale float64
	// compared adds the ratio to the yardstick.
	compared bool
}

var measures = []measure{
	{"cpu-ns/op", "processor time of a review in µs", "%.0f", 1e-3, true},
	{"ns/op", "time of a review in µs", "%.0f", 1e-3, false},
	{"B/op", "KiB allocated for a review", "%.1f", 1. / 1024, false},
	{"allocs/op", "allocations for a review", "%.0f", 1, false},
	{"resident-MiB", "MiB of memory that the process keeps", "%.0f", 1, false},
}

// results are the figures by peer, case and unit: one for each round.
type results struct {
	peers, cases []string
	figures      map[[3]string]map[int]float64
}

// read takes the lines of one benchmark run.
func (r *results) read(round int, out string) {
	for line := range strings.Lines(out) {
		fields := strings.Fields(line)
		name, ok := strings.CutPrefix(line, "BenchmarkPeer/")
		if !ok || len(fields) < 4 {
			continue
		}
		name = strings.Fields(name)[0]
		peer, reviewed, _ := strings.Cut(name, "/")
		if i := strings.LastIndex(reviewed, "-"); i > 0 {
			if _, err := strconv.Atoi(reviewed[i+1:]); err == nil {
				reviewed = reviewed[:i] // The number of processors.
			}
		}
		if !slices.Contains(r.peers, peer) {
			r.peers = append(r.peers, peer)
		}
		if !slices.Contains(r.cases, reviewed) {
			r.cases = append(r.cases, reviewed)
		}
		for i := 2; i+1 < len(fields); i += 2 {
			value, err := strconv.ParseFloat(fields[i], 64)
			if err != nil {
				continue
			}
			if r.figures == nil {
				r.figures = map[[3]string]map[int]float64{}
			}
			key := [3]string{peer, reviewed, fields[i+1]}
			if r.figures[key] == nil {
				r.figures[key] = map[int]float64{}
			}
			r.figures[key][round] = value
		}
	}
}

// print writes a table for each measure.
func (r *results) print(out io.Writer) {
	for _, m := range measures {
		fmt.Fprintf(out, "\n%s\n", m.title)
		table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintf(table, "\t%s\t\n", strings.Join(r.cases, "\t"))
		for _, peer := range r.peers {
			r.row(table, m, peer)
		}
		_ = table.Flush()
	}
}

func (r *results) row(out io.Writer, m measure, peer string) {
	cells := peer + "\t"
	for _, c := range r.cases {
		figures := r.figures[[3]string{peer, c, m.unit}]
		if len(figures) == 0 {
			cells += "-\t"
			continue
		}
		cells += fmt.Sprintf(m.format, median(values(figures))*m.scale)
		if ratio := r.ratio(m, peer, c); m.compared && ratio > 0 {
			cells += " (" + twoDigits(ratio) + ")"
		}
		cells += "\t"
	}
	fmt.Fprintln(out, cells)
}

// ratio is the median over the rounds of the ratio to the yardstick in the same round, 0 if there is none.
func (r *results) ratio(m measure, peer, reviewed string) float64 {
	var ratios []float64
	own := r.figures[[3]string{yardstick, reviewed, m.unit}]
	for round, value := range r.figures[[3]string{peer, reviewed, m.unit}] {
		if own[round] > 0 {
			ratios = append(ratios, value/own[round])
		}
	}
	return median(ratios)
}

// twoDigits has no exponent, unlike %.2g.
func twoDigits(ratio float64) string {
	if ratio < 10 {
		return strconv.FormatFloat(ratio, 'g', 2, 64)
	}
	return strconv.FormatFloat(ratio, 'f', 0, 64)
}

func values(figures map[int]float64) []float64 {
	var out []float64
	for _, v := range figures {
		out = append(out, v)
	}
	return out
}

// median is 0 for no values.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	slices.SortFunc(values, func(a, b float64) int { return cmp.Compare(a, b) })
	middle := len(values) / 2
	if len(values)%2 == 1 {
		return values[middle]
	}
	return (values[middle-1] + values[middle]) / 2
}
