package schema

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
	"github.com/fieldperm/fieldperm/verbs"
)

// permissions are the permissions of a compile, by the content of their entries. CEL programs are slow to compile and large, and hundreds
// of definitions have the same entries.
type permissions struct {
	byContent map[string]*Permission
	// barring are those that only bar, by the permission that also covers.
	barring map[*Permission]*[modes]Permission
}

func newPermissions() permissions {
	return permissions{map[string]*Permission{}, map[*Permission]*[modes]Permission{}}
}

// in returns the permission in another mode.
func (known permissions) in(m mode, p *Permission) *Permission {
	if known.barring[p] == nil {
		known.barring[p] = &[modes]Permission{}
		for m := range known.barring[p] {
			one := *p
			one.covering = p
			one.mode, one.effect = mode(m), fmt.Sprintf("%s mode %d", p.effect, m)
			known.barring[p][m] = one
		}
	}
	return &known.barring[p][m]
}

// fit returns the guard as it holds at a place. It returns nil for nil and for one that is faulty.
func (b *builder) fit(g *guard, p place) *guard {
	if g == nil {
		return nil
	}
	e := g.entry
	if e.Excluded && e.ExcludedWhen != "" {
		b.errs = append(b.errs, g.fault("%s: is excluded always and under a condition: keep one of excluded and excludedWhen", orRoot(b.at)))
		return nil
	}
	if !b.takes(g, p) {
		if !g.lent && !e.Bare && !e.Optional {
			return nil
		}
		g = g.bare()
	}
	if len(g.when) > 0 && !p.isScalar {
		if !g.lent && !e.Optional {
			b.errs = append(b.errs, g.fault("%s: excludedWhen is about a string, a number or a boolean, and the type declares something else: put it at the scalar, or write a ConditionalPolicy of effect Deny", orRoot(b.at)))
			return nil
		}
		g = g.always()
	}
	return g
}

// permission compiles a guard that fits. It returns nil for nil and for one that is faulty.
func (b *builder) permission(g *guard) *Permission {
	if g == nil {
		return nil
	}
	if known := b.permissions.byContent[g.says]; known != nil {
		return known
	}
	e := g.entry
	verb, err := verbs.New(e.Verb)
	if err != nil {
		// The overlay has already refused such entries.
		b.errs = append(b.errs, g.fault("%s: %v", orRoot(b.at), err))
		return nil
	}
	out := &Permission{verb: verb, parameter: e.ParameterizedBy, treatment: e.ParameterTreatment, excluded: g.excluded, bared: g.bared, powers: e.Powers, origins: g.from, effect: g.effect}
	if !b.parameter(g, out) || !b.exclusion(g, out) {
		return nil
	}
	b.permissions.byContent[g.says] = out
	return out
}

// takes reports whether the path emits the parameter of the guard. It is true if the guard has no parameter.
func (b *builder) takes(g *guard, p place) bool {
	e := g.entry
	if e.ParameterizedBy == "" {
		if e.ParameterTreatment != "" || e.ParameterExpression != "" {
			b.errs = append(b.errs, g.fault("%s: treats a parameter that the verb does not take: add parameterizedBy", orRoot(b.at)))
			return false
		}
		return true
	}
	if g.isIncluded() && b.emitsAbove(e.Fragment, e.ParameterizedBy) {
		b.errs = append(b.errs, g.fault("%s: the path to it emits parameter %q, which verbs of fragment %q take from below: give the parameter above another name",
			e.Fragment.At, e.ParameterizedBy, e.Fragment.Name))
		return false
	}
	if !slices.Contains(p.emitted, e.ParameterizedBy) {
		b.bare = append(b.bare, bare{e.ParameterizedBy, slices.Clone(b.at)})
		last := ""
		if len(b.atomic) > 0 {
			last = b.atomic[len(b.atomic)-1]
		}
		if e.Optional || g.lent || e.Bare && (e.Fragment == Fragment{} || e.Fragment.At != last) {
			return false
		}
		cure := "put parameterSource: " + e.ParameterizedBy + " on a map, key property or scalar of the path"
		if last != "" {
			cure += fmt.Sprintf("; the list %q is atomic and has no keys: give it x-kubernetes-list-type: map and x-kubernetes-list-map-keys", last)
		}
		if len(p.emitted) > 0 {
			cure += ", or use one of " + strings.Join(p.emitted, ", ")
		}
		b.errs = append(b.errs, g.fault("%s: nothing on the path emits parameter %q: %s", orRoot(b.at), e.ParameterizedBy, cure))
		return false
	}
	return true
}

// emitsAbove reports whether the path to an include emits a parameter. The verbs of the fragment mean the one that the fragment emits.
func (b *builder) emitsAbove(f Fragment, parameter string) bool {
	at, err := fieldpath.ParsePattern(f.At)
	return err == nil && 0 < len(at) && len(at) <= len(b.places) && slices.Contains(b.places[len(at)-1].emitted, parameter)
}

func (b *builder) parameter(g *guard, out *Permission) bool {
	e := g.entry
	switch {
	case e.ParameterTreatment != "" && e.ParameterTreatment != v1alpha1.TreatmentSlashDelimitedPrefix:
		b.errs = append(b.errs, g.fault("%s: parameter treatment %q is unknown: use %q or leave it out", orRoot(b.at), e.ParameterTreatment, v1alpha1.TreatmentSlashDelimitedPrefix))
		return false
	case e.ParameterTreatment != "" && e.ParameterExpression != "":
		b.errs = append(b.errs, g.fault("%s: has a parameter treatment and an expression: keep one of them", orRoot(b.at)))
		return false
	case e.ParameterExpression != "":
		program, err := parameterDialect.compile(e.ParameterExpression, cel.StringType)
		if err != nil {
			b.errs = append(b.errs, g.fault("%s: parameter %v", orRoot(b.at), err))
			return false
		}
		out.expression, out.expressionText = program, e.ParameterExpression
	}
	return true
}

func (b *builder) exclusion(g *guard, out *Permission) bool {
	for _, expression := range g.when {
		program, err := valueDialect.compile(expression, cel.BoolType)
		if err != nil {
			b.errs = append(b.errs, g.fault("%s: excludedWhen %v", orRoot(b.at), err))
			return false
		}
		out.excludedWhen = append(out.excludedWhen, barrierCondition{program, expression})
	}
	return true
}
