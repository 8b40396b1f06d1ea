package compile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	celgo "github.com/google/cel-go/cel"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
	"github.com/fieldperm/fieldperm/schema/internal/dialect"
	"github.com/fieldperm/fieldperm/verbs"
)

// permissions are the permissions of a compile, by the content of their entries. CEL programs are slow to compile and large, and hundreds
// of definitions have the same entries.
type permissions struct {
	byContent map[string]*schema.Permission
	// barring are those that only bar, by the permission that also covers. covering is the inverse.
	barring, covering map[*schema.Permission]*schema.Permission
	// effects are the contents of permissions without their origins.
	effects map[*schema.Permission]string
}

func newPermissions() permissions {
	return permissions{map[string]*schema.Permission{}, map[*schema.Permission]*schema.Permission{}, map[*schema.Permission]*schema.Permission{}, map[*schema.Permission]string{}}
}

// barsOnly returns the permission as one that does not cover.
func (known permissions) barsOnly(p *schema.Permission) *schema.Permission {
	if known.barring[p] == nil {
		one := p.Parts()
		one.BarsOnly = true
		bars := schema.NewPermission(one)
		known.barring[p], known.covering[bars], known.effects[bars] = bars, p, known.effects[p]+" bars only"
	}
	return known.barring[p]
}

// same reports whether two permissions are made of equal entries, whether they cover or not.
func (known permissions) same(p, q *schema.Permission) bool {
	return cmp.Or(known.covering[p], p) == cmp.Or(known.covering[q], q)
}

// permissionsOf returns the permissions of an overlay. Claims of wider patterns than that of the claim that counts come first. The last ones are barriers
// beside it.
func (b *builder) permissionsOf(o *overlay, p place) []*schema.Permission {
	levels := o.levels()
	claims := make([]*guard, len(levels))
	last := -1
	for i, l := range levels {
		if claims[i] = b.fit(l.claim, p); claims[i] != nil {
			last = i
		}
	}
	var out, beside []*schema.Permission
	for i, l := range levels {
		counts := claims[i]
		for _, g := range l.barriers {
			switch g = b.fit(g, p); {
			case g == nil:
			case i == last && counts.sameVerb(g):
				counts = counts.joined(g)
			default:
				beside = b.append(beside, true, g)
			}
		}
		switch {
		case counts == nil:
		case i == last:
			out = b.append(out, false, counts)
		default:
			// Of the claim of a wider pattern, only barriers of sets hold.
			out = b.append(out, true, counts.unbarred())
		}
	}
	if len(beside) > mostBeside {
		b.errs = append(b.errs, o.tooManyBarriers(b.at))
	}
	return append(out, beside...)
}

// mostBeside is how many barriers with different verbs may hold at one place. A change needs a check for each (P3).
const mostBeside = 16

// tooManyBarriers returns the fault of the document with the most barriers at a place.
func (o *overlay) tooManyBarriers(at fieldpath.Pattern) error {
	count := map[string]int{}
	var most *guard
	for _, l := range o.levels() {
		for _, g := range l.barriers {
			if count[g.blamed()]++; most == nil || count[g.blamed()] > count[most.blamed()] {
				most = g
			}
		}
	}
	return most.fault("%s: has more than %d barriers with different verbs: agree on one verb", orRoot(at), mostBeside)
}

// append compiles a guard, and adds it, as one that only bars or as one that also covers.
func (b *builder) append(out []*schema.Permission, barsOnly bool, g *guard) []*schema.Permission {
	one := b.permission(g)
	if one != nil && barsOnly {
		one = b.permissions.barsOnly(one)
	}
	if one == nil || slices.Contains(out, one) {
		return out
	}
	return append(out, one)
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
		if !g.inherited && !e.Bare && !e.Optional {
			return nil
		}
		g = g.withoutParameter()
	}
	if len(g.when) > 0 && !p.isScalar {
		if !g.inherited && !e.Optional {
			b.errs = append(b.errs, g.fault("%s: excludedWhen is about a string, a number or a boolean, and the type declares something else: put it at the scalar, or write a ConditionalPolicy of effect Deny", orRoot(b.at)))
			return nil
		}
		g = g.always()
	}
	return g
}

// permission compiles a guard that fits. It returns nil for nil and for one that is faulty.
func (b *builder) permission(g *guard) *schema.Permission {
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
	parts := schema.PermissionParts{Verb: verb, Parameter: e.ParameterizedBy, Excluded: g.excluded, Bared: g.lacksParameter, Powers: e.Powers, Origins: g.from}
	if !b.parameter(g, &parts) || !b.exclusion(g, &parts) {
		return nil
	}
	out := schema.NewPermission(parts)
	b.permissions.byContent[g.says], b.permissions.effects[out] = out, g.effect
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
		b.parameterless = append(b.parameterless, parameterless{e.ParameterizedBy, slices.Clone(b.at)})
		last := ""
		if len(b.atomic) > 0 {
			last = b.atomic[len(b.atomic)-1]
		}
		if e.Optional || g.inherited || e.Bare && (e.Fragment == Fragment{} || e.Fragment.At != last) {
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

func (b *builder) parameter(g *guard, out *schema.PermissionParts) bool {
	e := g.entry
	switch {
	case e.ParameterTreatment != "" && e.ParameterTreatment != v1alpha1.TreatmentSlashDelimitedPrefix:
		b.errs = append(b.errs, g.fault("%s: parameter treatment %q is unknown: use %q or leave it out", orRoot(b.at), e.ParameterTreatment, v1alpha1.TreatmentSlashDelimitedPrefix))
		return false
	case e.ParameterTreatment != "" && e.ParameterExpression != "":
		b.errs = append(b.errs, g.fault("%s: has a parameter treatment and an expression: keep one of them", orRoot(b.at)))
		return false
	case e.ParameterExpression != "":
		program, err := dialect.Parameter.Compile(e.ParameterExpression, celgo.StringType)
		if err != nil {
			b.errs = append(b.errs, g.fault("%s: parameter %v", orRoot(b.at), err))
			return false
		}
		out.Expression = schema.Expression{Program: program, Text: e.ParameterExpression}
	}
	out.TakesPrefix = e.ParameterTreatment != ""
	return true
}

func (b *builder) exclusion(g *guard, out *schema.PermissionParts) bool {
	for _, expression := range g.when {
		program, err := dialect.Value.Compile(expression, celgo.BoolType)
		if err != nil {
			b.errs = append(b.errs, g.fault("%s: excludedWhen %v", orRoot(b.at), err))
			return false
		}
		out.ExcludedWhen = append(out.ExcludedWhen, schema.Expression{Program: program, Text: expression})
	}
	return true
}
