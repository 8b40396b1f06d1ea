package schema

import (
	"slices"
	"strings"

	"github.com/google/cel-go/cel"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/verbs"
)

// permission compiles one guard where it stands, nil if it has no verb, does not apply, or is faulty.
func (b *builder) permission(g *guard, p place) *Permission {
	if g == nil {
		return nil
	}
	e := g.entry
	if e.Verb == "" {
		if e.ParameterizedBy != "" || e.ParameterTreatment != "" || e.ParameterExpression != "" || e.Excluded || e.ExcludedWhen != "" {
			b.errs = append(b.errs, g.fault("%s: has no verb to parameterize or exclude: add a verb", p.at.orRoot()))
		} else if e.ParameterSource == "" && e.Role == RoleNone {
			b.errs = append(b.errs, g.fault("%s: says nothing: add a verb or a parameter source", p.at.orRoot()))
		}
		return nil
	}
	verb, err := verbs.New(e.Verb)
	if err != nil {
		// The overlay has refused such entries.
		b.errs = append(b.errs, g.fault("%s: %v", p.at.orRoot(), err))
		return nil
	}
	out := &Permission{verb: verb, parameter: e.ParameterizedBy, treatment: e.ParameterTreatment, excluded: e.Excluded, source: g.source}
	if !b.parameter(g, p, out) || !b.exclusion(g, p, out) {
		return nil
	}
	return out
}

func (b *builder) parameter(g *guard, p place, out *Permission) bool {
	e := g.entry
	if e.ParameterizedBy == "" {
		if e.ParameterTreatment != "" || e.ParameterExpression != "" {
			b.errs = append(b.errs, g.fault("%s: treats a parameter that the verb does not take: add parameterizedBy", p.at.orRoot()))
			return false
		}
		return true
	}
	if !slices.Contains(p.emitted, e.ParameterizedBy) {
		if e.Optional {
			return false
		}
		cure := "put parameterSource: " + e.ParameterizedBy + " on a map, key property or scalar of the path"
		if len(p.emitted) > 0 {
			cure += ", or use one of " + strings.Join(p.emitted, ", ")
		}
		b.errs = append(b.errs, g.fault("%s: nothing on the path emits parameter %q: %s", p.at.orRoot(), e.ParameterizedBy, cure))
		return false
	}
	switch {
	case e.ParameterTreatment != "" && e.ParameterTreatment != v1alpha1.TreatmentSlashDelimitedPrefix:
		b.errs = append(b.errs, g.fault("%s: parameter treatment %q is unknown: use %q or leave it out", p.at.orRoot(), e.ParameterTreatment, v1alpha1.TreatmentSlashDelimitedPrefix))
		return false
	case e.ParameterTreatment != "" && e.ParameterExpression != "":
		b.errs = append(b.errs, g.fault("%s: has a parameter treatment and an expression: keep one of them", p.at.orRoot()))
		return false
	case e.ParameterExpression != "":
		program, err := parameterDialect.compile(e.ParameterExpression, cel.StringType)
		if err != nil {
			b.errs = append(b.errs, g.fault("%s: parameter %v", p.at.orRoot(), err))
			return false
		}
		out.expression = program
	}
	return true
}

func (b *builder) exclusion(g *guard, p place, out *Permission) bool {
	if g.entry.ExcludedWhen == "" {
		return true
	}
	if g.entry.Excluded {
		b.errs = append(b.errs, g.fault("%s: is excluded always and under a condition: keep one of excluded and excludedWhen", p.at.orRoot()))
		return false
	}
	program, err := valueDialect.compile(g.entry.ExcludedWhen, cel.BoolType)
	if err != nil {
		b.errs = append(b.errs, g.fault("%s: excludedWhen %v", p.at.orRoot(), err))
		return false
	}
	out.excludedWhen = program
	return true
}
