package sampleobject

import (
	"math"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
)

// scalars tries likely values.
func (s *search) scalars(n node, want int) ([]any, error) {
	f := &found{search: s, node: n, want: want}
	for _, guide := range n.guides() {
		for _, value := range s.candidates(guide) {
			if f.try(value) {
				return f.result()
			}
		}
	}
	return f.result()
}

func (s *search) candidates(schema *apiextensions.JSONSchemaProps) []any {
	if len(schema.Enum) > 0 {
		out := make([]any, 0, len(schema.Enum))
		for _, value := range schema.Enum {
			out = append(out, value)
		}
		return out
	}
	switch schema.Type {
	case "boolean":
		return []any{false, true}
	case "integer":
		return integers(schema)
	case "number":
		return numbers(schema)
	case "string":
		return anys(s.texts(schema))
	}
	if schema.XIntOrString {
		return append(integers(schema), anys(s.texts(schema))...)
	}
	// The schema accepts a value of any type.
	return append(append([]any{map[string]any{}}, integers(schema)...), append(anys(s.texts(schema)), true, []any{})...)
}

func anys(texts []string) []any {
	out := make([]any, 0, len(texts))
	for _, text := range texts {
		out = append(out, text)
	}
	return out
}

// integers returns numbers up from the lower bound, down from the upper bound, and around zero.
func integers(schema *apiextensions.JSONSchemaProps) []any {
	step := int64(1)
	if m := schema.MultipleOf; m != nil && *m >= 1 {
		step = int64(*m)
	}
	var out []any
	add := func(from, step int64) {
		for i := range int64(6) {
			out = append(out, from+i*step)
		}
	}
	switch {
	case schema.Minimum != nil:
		add(int64(math.Ceil(*schema.Minimum/float64(step)))*step, step)
	case schema.Maximum == nil || *schema.Maximum >= 1:
		// If rules are about numbers, one fits more often than zero.
		out = append(out, step)
		add(0, step)
	}
	if schema.Maximum != nil {
		add(int64(math.Floor(*schema.Maximum/float64(step)))*step, -step)
	}
	for _, known := range []int64{80, 443, 1000, 1024, 8080, 65536} {
		out = append(out, known/step*step)
	}
	return out
}

func numbers(schema *apiextensions.JSONSchemaProps) []any {
	var out []any
	if m := schema.MultipleOf; m != nil && *m > 0 {
		first := 0.0
		if schema.Minimum != nil {
			first = math.Ceil(*schema.Minimum / *m)
		} else if schema.Maximum != nil && *schema.Maximum < 0 {
			first = math.Floor(*schema.Maximum / *m) - 5
		}
		for i := range 6 {
			out = append(out, (first+float64(i))**m)
		}
	}
	low, high := schema.Minimum, schema.Maximum
	switch {
	case low != nil && high != nil:
		out = append(out, *low, (*low+*high)/2, *high, *low+(*high-*low)/4)
	case low != nil:
		out = append(out, *low, *low+0.5, *low+1, *low+2)
	case high != nil:
		out = append(out, *high, *high-0.5, *high-1)
	}
	return append(out, 1.0, 0.0, 0.5, -1.0, 2.0)
}
