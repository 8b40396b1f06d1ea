package soak

import (
	"fmt"
	"slices"
	"time"
)

// sample is what one process takes at a time.
type sample struct {
	// at is the time since the start of the process.
	at time.Duration
	// values are by the name of the quantity.
	values map[string]float64
}

// quantity is something that must not grow.
type quantity struct {
	name string
	// share and least are how much the last third may be above the first one: the larger of a share of the first and a constant.
	share, least float64
}

// trend is how a quantity developed.
type trend struct {
	quantity
	// first and last are medians of the first and of the last third.
	first, last float64
	// fitted is the growth between the middles of these thirds by a linear fit through all samples.
	fitted float64
}

// grows reports whether the quantity grew by more than is allowed. The medians ignore peaks, and the fit ignores where the thirds begin: growth
// shows in both.
func (t trend) grows() bool {
	return min(t.last-t.first, t.fitted) > max(t.share*t.first, t.least)
}

func (t trend) String() string {
	return fmt.Sprintf("%-22s first third %12.1f, last third %12.1f, change %+10.1f, fitted %+10.1f, allowed %+10.1f",
		t.name, t.first, t.last, t.last-t.first, t.fitted, max(t.share*t.first, t.least))
}

// trendOf needs six samples, which are in order of time.
func trendOf(q quantity, samples []sample) (trend, error) {
	out := trend{quantity: q}
	third := len(samples) / 3
	if third < 2 {
		return out, fmt.Errorf("%s: %d samples are too few for a trend", q.name, len(samples))
	}
	var xs, ys []float64
	for _, s := range samples {
		y, ok := s.values[q.name]
		if !ok {
			return out, fmt.Errorf("%s: is not in the sample at %s", q.name, s.at)
		}
		xs, ys = append(xs, s.at.Seconds()), append(ys, y)
	}
	out.first, out.last = median(ys[:third]), median(ys[len(ys)-third:])
	out.fitted = slope(xs, ys) * (median(xs[len(xs)-third:]) - median(xs[:third]))
	return out, nil
}

func median(of []float64) float64 {
	sorted := slices.Sorted(slices.Values(of))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// slope is that of the line of least squares.
func slope(xs, ys []float64) float64 {
	x, y := mean(xs), mean(ys)
	var above, below float64
	for i := range xs {
		above += (xs[i] - x) * (ys[i] - y)
		below += (xs[i] - x) * (xs[i] - x)
	}
	if below == 0 {
		return 0
	}
	return above / below
}

func mean(of []float64) float64 {
	sum := 0.0
	for _, one := range of {
		sum += one
	}
	return sum / float64(len(of))
}
