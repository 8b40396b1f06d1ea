package soak

import (
	"math"
	"testing"
	"time"
)

// samplesOf are of a process that takes f(minute), for an hour.
func samplesOf(f func(minute float64) float64) []sample {
	var out []sample
	for i := range 360 {
		at := time.Duration(i) * 10 * time.Second
		out = append(out, sample{at, map[string]float64{"q": f(at.Minutes())}})
	}
	return out
}

// A leak grows; peaks, waves, noise and a start that takes a while do not.
func TestTrend(t *testing.T) {
	const mib = 1 << 20
	noise := func(minute float64) float64 { return 10 * mib * (math.Sin(minute*17) + math.Sin(minute*5)) / 2 }
	for name, test := range map[string]struct {
		f     func(minute float64) float64
		grows bool
	}{
		"nothing":                  {func(float64) float64 { return 50 * mib }, false},
		"noise":                    {func(m float64) float64 { return 50*mib + noise(m) }, false},
		"a leak":                   {func(m float64) float64 { return 50*mib + m*mib/2 }, true},
		"a leak in noise":          {func(m float64) float64 { return 50*mib + m*mib/2 + noise(m) }, true},
		"a leak below the bound":   {func(m float64) float64 { return 50*mib + m*mib/20 }, false},
		"a step in the middle":     {func(m float64) float64 { return 50*mib + 20*mib*math.Floor(m/30) }, true},
		"a peak at the end":        {func(m float64) float64 { return 50*mib + 500*mib*math.Floor(m/58) }, false},
		"it shrinks":               {func(m float64) float64 { return 80*mib - m*mib/2 }, false},
		"it is large at the start": {func(m float64) float64 { return 50*mib + 100*mib*math.Exp(-m) }, false},
	} {
		got, err := trendOf(quantity{name: "q", share: 0.1, least: 4 * mib}, samplesOf(test.f))
		if err != nil {
			t.Fatal(err)
		}
		if got.grows() != test.grows {
			t.Errorf("%s: grows is %t: %s", name, got.grows(), got)
		}
	}
}

// Nothing is judged by what is not there.
func TestTrend_NeedsSamples(t *testing.T) {
	if _, err := trendOf(quantity{name: "q"}, samplesOf(func(float64) float64 { return 0 })[:5]); err == nil {
		t.Error("five samples are enough")
	}
	if _, err := trendOf(quantity{name: "other"}, samplesOf(func(float64) float64 { return 0 })); err == nil {
		t.Error("a quantity that is not in the samples is judged")
	}
}
