package main

import "math"

// growth is how the time of one hostile case grows.
type growth struct {
	name string
	// steps are by how much the time grows from one size to the next, bytes by how much the body does.
	steps, bytes []float64
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
			g.last, before = s.cost, s
		}
		out = append(out, g)
	}
	return out
}

// rate is by how much time grows where bytes double, on average over all steps.
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
