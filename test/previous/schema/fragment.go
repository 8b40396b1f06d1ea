package schema

import (
	"slices"
	"strings"
)

// Fragment is a fragment of the catalogue that a document includes, and the path of the field at which it does so. The zero Fragment is
// none.
type Fragment struct{ Name, At string }

// reportMisfits reports the includes of a document whose field lacks every field of the fragment in each version of the kind, because
// such an include guards nothing. lost reports whether no version has the path of a statement.
func (c *compiler) reportMisfits(said []statement, lost func(statement) bool) {
	type inclusion struct {
		Fragment
		pointer string
	}
	below, root := map[inclusion][]statement{}, map[inclusion]error{}
	var order []inclusion
	for _, s := range said {
		e := s.guard.entry
		of := inclusion{e.Fragment, e.Pointer}
		switch {
		case e.Fragment == Fragment{} || e.Verb == "" && e.ParameterSource == "":
		case normalPath(s) != e.Fragment.At:
			if below[of] == nil {
				order = append(order, of)
			}
			below[of] = append(below[of], s)
		case lost(s):
			root[of] = s.guard.fault("path %q does not exist in any version: include the fragment at a field that exists", e.Fragment.At)
		}
	}
	for _, of := range order {
		if slices.ContainsFunc(below[of], func(s statement) bool { return !lost(s) }) {
			continue
		}
		if root[of] != nil {
			c.report(root[of])
			continue
		}
		c.report(below[of][0].guard.fault("%q: fragment %q does not fit the field, which has none of %s: include it at the field that has them",
			of.At, of.Name, firstSteps(of.At, below[of])))
	}
}

func normalPath(s statement) string { return s.path.String() }

// firstSteps returns the fields of a fragment directly below the field that includes it.
func firstSteps(at string, said []statement) string {
	var out []string
	for _, s := range said {
		for i := range s.path {
			if s.path[:i].String() == at {
				if step := s.path[i : i+1].String(); !slices.Contains(out, step) {
					out = append(out, step)
				}
			}
		}
	}
	if len(out) > 3 {
		out = append(out[:3], "…")
	}
	return strings.Join(out, ", ")
}
