//go:build integration

package faults

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// report is the printed result of a fault.
type report struct {
	fault                           string
	tried, allowed, refused, errors int
	landed                          int
	// generic and guarded are the longest times in which users of these classes could not write.
	generic, guarded time.Duration
	// window is the time in which forbidden writes were stored, if that cannot be prevented.
	window time.Duration
	// recovery is the time from the end of the fault until all permitted writes succeed and continue to succeed.
	recovery time.Duration
}

// count counts the attempts of granular users. For generic users the report has the time for which they were blocked.
func (r *report) count(events []event) {
	for _, e := range events {
		if e.class != granular {
			continue
		}
		r.tried++
		switch e.outcome {
		case allowed:
			r.allowed++
		case refused:
			r.refused++
		case errored:
			r.errors++
		}
	}
}

// table prints reports in the form of the table in docs/contributing/faults.md.
func table(w io.Writer, title string, reports []report) {
	fmt.Fprintf(w, "\n%s\n\n", title)
	tabs := tabwriter.NewWriter(w, 0, 0, 1, ' ', 0)
	fmt.Fprintln(tabs, "| fault\t| tried\t| allowed\t| refused\t| errored\t| forbidden that landed\t| generic blocked\t| guarded blocked\t| window\t| recovered after\t|")
	fmt.Fprintln(tabs, "|---\t|--:\t|--:\t|--:\t|--:\t|--:\t|--:\t|--:\t|--:\t|--:\t|")
	for _, r := range reports {
		fmt.Fprintf(tabs, "| %s\t| %d\t| %d\t| %d\t| %d\t| %d\t| %s\t| %s\t| %s\t| %s\t|\n",
			r.fault, r.tried, r.allowed, r.refused, r.errors, r.landed, seconds(r.generic), seconds(r.guarded), seconds(r.window), seconds(r.recovery))
	}
	_ = tabs.Flush()
}

func seconds(d time.Duration) string {
	if d == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}
