package observability

import (
	"fmt"
	"slices"

	"github.com/prometheus/prometheus/promql/parser"
)

// target are the labels that Prometheus adds to every series.
var target = []string{"instance", "job"}

// faults returns the faults of an expression: metrics, labels and values that no program exposes.
func faults(all map[string]family, expression string) (out []string, used []string) {
	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(expression)
	if err != nil {
		return []string{err.Error()}, nil
	}
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		switch n := node.(type) {
		case *parser.VectorSelector:
			f, ok := exposed(all, n.Name)
			if !ok {
				out = append(out, fmt.Sprintf("metric %q is not exposed", n.Name))
				return nil
			}
			used = append(used, n.Name)
			for _, matcher := range n.LabelMatchers {
				if matcher.Name == "__name__" || slices.Contains(target, matcher.Name) && n.Name != "up" {
					continue
				}
				if _, has := f.labels[matcher.Name]; !has {
					out = append(out, fmt.Sprintf("metric %q has no label %q", n.Name, matcher.Name))
				} else if !f.mayMatch(matcher) {
					out = append(out, fmt.Sprintf("metric %q: no series has %s", n.Name, matcher))
				}
			}
		case *parser.AggregateExpr:
			out = append(out, foreign(all, n.Expr, n.Grouping)...)
		case *parser.BinaryExpr:
			if n.VectorMatching != nil {
				out = append(out, foreign(all, n, n.VectorMatching.MatchingLabels)...)
			}
		case *parser.Call:
			out = append(out, misused(all, n)...)
		}
		return nil
	})
	return out, used
}

// foreign returns those labels that no metric below an expression has.
func foreign(all map[string]family, below parser.Expr, grouping []string) (out []string) {
	for _, label := range grouping {
		known := slices.Contains(target, label)
		parser.Inspect(below, func(node parser.Node, _ []parser.Node) error {
			if selector, is := node.(*parser.VectorSelector); is {
				f, _ := exposed(all, selector.Name)
				_, has := f.labels[label]
				known = known || has
			}
			return nil
		})
		if !known {
			out = append(out, fmt.Sprintf("no metric in %q has label %q", below, label))
		}
	}
	return out
}

// misused finds rates of metrics that are not counters.
func misused(all map[string]family, call *parser.Call) (out []string) {
	if name := call.Func.Name; name != "rate" && name != "increase" && name != "irate" {
		return nil
	}
	parser.Inspect(call, func(node parser.Node, _ []parser.Node) error {
		if selector, is := node.(*parser.VectorSelector); is {
			if f, ok := exposed(all, selector.Name); ok && f.kind.String() == "GAUGE" {
				out = append(out, fmt.Sprintf("%s of %q, which is a gauge", call.Func.Name, selector.Name))
			}
		}
		return nil
	})
	return out
}
