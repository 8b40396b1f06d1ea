package main

import "math"

// growth is the growth of the time of one hostile case.
type growth struct {
	name string
	// steps are the factors of the time from one size to the next, bytes the factors of the body.
	steps, bytes []float64
	// memory is the number of bytes that the largest size allocates, over the bytes of its body.
	memory float64
	// first and last are the times of the smallest and the largest size.
	first, last float64
}

func (r *results) growths() []growth {
	var out []growth
	for _, name := range r.below(hostileBenchmark) {
		g := growth{name: name}
		var before sample
		for i, size := range r.below(hostileBenchmark + "/" + name) {
			s, _ := r.of(hostileBenchmark + "/" + name + "/" + size)
			if i == 0 {
				g.first = s.cost
			} else {
				g.steps = append(g.steps, s.cost/before.cost)
				g.bytes = append(g.bytes, s.size/before.size)
			}
			g.last, g.memory, before = s.cost, s.allocated/s.size, s
		}
		out = append(out, g)
	}
	return out
}

// rate is the factor of the time when the bytes double, on average over all steps.
func (g growth) rate() float64 {
	time, bytes := 1.0, 1.0
	for i := range g.steps {
		time *= g.steps[i]
		bytes *= g.bytes[i]
	}
	if bytes <= 1 {
		return math.Inf(1)
	}
	return math.Pow(2, math.Log2(time)/math.Log2(bytes))
}
