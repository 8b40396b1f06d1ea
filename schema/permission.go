package schema

import (
	"context"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/verbs"
)

// Permission is the compiled guard of one node or of several. Documents with equal content share one Permission.
type Permission struct {
	verb       verbs.Verb
	parameter  string
	treatment  string
	expression cel.Program
	// expressionText is the source of expression.
	expressionText string
	excluded       bool
	// excludedWhen are conditions on a scalar; if any is true, the permission is a barrier.
	excludedWhen []barrierCondition
	zero         zero
	// unseen means that the old value is not known: the request changes a stored object that it does not show.
	unseen bool
	// bared means that the verb takes a parameter, which is not known here.
	bared bool
	mode  mode
	// covering is the permission in the mode in which it covers, nil for itself.
	covering *Permission
	powers   []Power
	// origins: see Origins. effect is the content of the permission without them.
	origins []Origin
	effect  string
}

// mode says what a permission does at its node.
type mode int

const (
	covers mode = iota
	// barsOnly: see BarsOnly. barsBeside: see BarsBeside.
	barsOnly
	barsBeside
	modes
)

// barrierCondition is one condition on a scalar.
type barrierCondition struct {
	program cel.Program
	text    string
}

// Base returns the verb without a parameter. It covers the node whatever the parameter is.
func (p *Permission) Base() verbs.Verb { return p.verb }

// ParameterName returns the name of the parameter that the verb takes, "" for none.
func (p *Permission) ParameterName() string { return p.parameter }

// TakesPrefix reports whether the parameter is the part of the value before its first slash.
func (p *Permission) TakesPrefix() bool {
	return p.expression == nil && p.treatment == v1alpha1.TreatmentSlashDelimitedPrefix
}

// Bared reports whether the verb takes a parameter that is not known at the node, such as the name of a container in a list without keys. A barrier at
// the verb with any parameter holds there.
func (p *Permission) Bared() bool { return p.bared }

// Describe returns the verb in the form of the reference pages, with a description of its parameter in place of a value:
// granular:image(containerName), granular:label(prefix of labelKey).
func (p *Permission) Describe() string {
	switch {
	case p.parameter == "":
		return p.verb.String()
	case p.expression != nil:
		return p.verb.String() + "(expression over " + p.parameter + ")"
	case p.treatment == v1alpha1.TreatmentSlashDelimitedPrefix:
		return p.verb.String() + "(prefix of " + p.parameter + ")"
	}
	return p.verb.String() + "(" + p.parameter + ")"
}

// Parameterized returns the node's verb with its parameter. It takes the value from lookup, which knows the values that the path has
// emitted. The result is one step more specific than Base, which covers all parameters. It reports false if there is no such verb: the
// permission takes no parameter; the value is missing, empty or too long; or the expression fails on it. Then Base and more general verbs
// cover the node.
func (p *Permission) Parameterized(lookup func(name string) (string, bool)) (verbs.Verb, bool) {
	if p.parameter == "" {
		return verbs.Verb{}, false
	}
	value, ok := lookup(p.parameter)
	if !ok {
		return verbs.Verb{}, false
	}
	switch {
	case p.expression != nil:
		if value, ok = evalString(p.expression, value); !ok {
			return verbs.Verb{}, false
		}
	case p.treatment == v1alpha1.TreatmentSlashDelimitedPrefix:
		value, _, _ = strings.Cut(value, "/")
	}
	return p.verb.WithParameter(value)
}

// MayBar reports whether the permission can be a barrier.
func (p *Permission) MayBar() bool { return p.excluded || len(p.excludedWhen) > 0 }

// Conditional reports whether the barrier depends on values.
func (p *Permission) Conditional() bool { return !p.excluded && len(p.excludedWhen) > 0 }

// zero is the meaning of an absent value in a body from which API servers leave out a number that is 0.
type zero int

const (
	nothingIsZero zero = iota
	// absentIsZero: the object always has the number.
	absentIsZero
	// absentMayBeZero: an absent old value means 0 or no value. An absent new value means 0.
	absentMayBeZero
)

// withZero returns the permissions for such a number.
func withZero(permissions []*Permission, is zero) []*Permission {
	return whereConditional(permissions, func(p *Permission) *Permission {
		one := *p
		one.zero = is
		return &one
	})
}

// whereConditional returns a copy of the permissions in which become replaces every conditional barrier.
func whereConditional(permissions []*Permission, become func(*Permission) *Permission) []*Permission {
	out := slices.Clone(permissions)
	for i, p := range out {
		if p.Conditional() {
			out[i] = become(p)
		}
	}
	return out
}

// inAnyMode returns the same permission for each mode of it.
func (p *Permission) inAnyMode() *Permission {
	if p.covering != nil {
		return p.covering
	}
	return p
}

// BarsOnly reports whether the verb does not cover the node, so that only a barrier holds there: the permission is that of all keys of a map, or
// of a prefix, at a key that has a verb of its own, or one that BarsBeside.
func (p *Permission) BarsOnly() bool { return p.mode != covers }

// BarsBeside reports whether the permission is a barrier of an entry with another verb than that of the node. No verb of the node passes it: a change
// needs its verb besides, or one below.
func (p *Permission) BarsBeside() bool { return p.mode == barsBeside }

// Powers returns the effects that the verb permits beyond its field, in the order of AllPowers. Callers must not change the slice.
func (p *Permission) Powers() []Power { return p.powers }

// Bars reports whether the permission is a barrier for a change from oldSelf to self. Both are decoded JSON scalars of the node itself;
// nil means absent or null. An error counts as a barrier. This includes the end of the context; a caller that must distinguish the two
// checks the context.
func (p *Permission) Bars(ctx context.Context, oldSelf, self any) bool {
	if p.excluded {
		return true
	}
	if p.zero != nothingIsZero && self == nil {
		self = int64(0)
	}
	if p.zero != nothingIsZero && oldSelf == nil {
		if p.zero == absentMayBeZero && p.barsWhen(ctx, nil, self) {
			return true
		}
		oldSelf = int64(0)
	}
	return p.barsWhen(ctx, oldSelf, self)
}

func (p *Permission) barsWhen(ctx context.Context, oldSelf, self any) bool {
	values := map[string]any{valueVariable: self}
	if !p.unseen { // Else a condition that comes to read it fails.
		values[oldValueVariable] = oldSelf
	}
	for i := range p.excludedWhen {
		holds, err := evalBool(ctx, p.excludedWhen[i].program, values)
		if err != nil || holds {
			return true
		}
	}
	return false
}

// MayBe reports whether the permission can have the verb v. If v has a parameter, the permission must be able to have that parameter.
func (p *Permission) MayBe(v verbs.Verb) bool {
	if p.verb != v.WithoutParameter() {
		return false
	}
	value, parameterized := v.Parameter()
	return !parameterized || p.parameter != "" && p.mayYield(value)
}

// mayYield reports whether a key or value can give this parameter.
func (p *Permission) mayYield(value string) bool {
	return p.expression != nil || p.treatment != v1alpha1.TreatmentSlashDelimitedPrefix || !strings.Contains(value, "/")
}
