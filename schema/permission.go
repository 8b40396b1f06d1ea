package schema

import (
	"context"
	"strings"

	celgo "github.com/google/cel-go/cel"

	"github.com/fieldperm/fieldperm/internal/cel"
	"github.com/fieldperm/fieldperm/schema/internal/dialect"
	"github.com/fieldperm/fieldperm/verbs"
)

// Permission is the compiled guard of one node or of several. Documents with equal content share one Permission. It is immutable.
type Permission struct{ parts PermissionParts }

// PermissionParts are what a permission is made of. The methods of Permission explain them.
type PermissionParts struct {
	Verb      verbs.Verb
	Parameter string
	// TakesPrefix and Expression say how the parameter is made of its value. The zero Expression is none.
	TakesPrefix bool
	Expression  Expression
	Excluded    bool
	// ExcludedWhen are conditions on a scalar; if any is true, the permission is a barrier.
	ExcludedWhen []Expression
	Zero         Zero
	// Unseen means that the old value is not known: the request changes a stored object that it does not show.
	Unseen   bool
	Bared    bool
	BarsOnly bool
	Powers   []Power
	Origins  []Origin
}

// Expression is a CEL expression with its source.
type Expression struct {
	Program celgo.Program
	Text    string
}

// NewPermission makes a permission.
func NewPermission(p PermissionParts) *Permission { return &Permission{p} }

// Parts returns a copy of what the permission is made of. Callers must not change its slices.
func (p *Permission) Parts() PermissionParts { return p.parts }

// Base returns the verb without a parameter. It covers the node whatever the parameter is.
func (p *Permission) Base() verbs.Verb { return p.parts.Verb }

// ParameterName returns the name of the parameter that the verb takes, "" for none.
func (p *Permission) ParameterName() string { return p.parts.Parameter }

// TakesPrefix reports whether the parameter is the part of the value before its first slash.
func (p *Permission) TakesPrefix() bool {
	return p.parts.TakesPrefix
}

// Bared reports whether the verb takes a parameter that is not known at the node, such as the name of a container in a list without keys. A barrier at
// the verb with any parameter holds there.
func (p *Permission) Bared() bool { return p.parts.Bared }

// Describe returns the verb in the form of the reference pages, with a description of its parameter in place of a value:
// granular:image(containerName), granular:label(prefix of labelKey).
func (p *Permission) Describe() string {
	switch {
	case p.parts.Parameter == "":
		return p.parts.Verb.String()
	case p.parts.Expression.Text != "":
		return p.parts.Verb.String() + "(expression over " + p.parts.Parameter + ")"
	case p.parts.TakesPrefix:
		return p.parts.Verb.String() + "(prefix of " + p.parts.Parameter + ")"
	}
	return p.parts.Verb.String() + "(" + p.parts.Parameter + ")"
}

// Parameterized returns the node's verb with its parameter. It takes the value from lookup, which knows the values that the path has
// emitted. The result is one step more specific than Base, which covers all parameters. It reports false if there is no such verb: the
// permission takes no parameter; the value is missing, empty or too long; or the expression fails on it. Then Base and more general verbs
// cover the node.
func (p *Permission) Parameterized(lookup func(name string) (string, bool)) (verbs.Verb, bool) {
	if p.parts.Parameter == "" {
		return verbs.Verb{}, false
	}
	value, ok := lookup(p.parts.Parameter)
	if !ok {
		return verbs.Verb{}, false
	}
	switch {
	case p.parts.Expression.Text != "":
		if value, ok = dialect.String(p.parts.Expression.Program, value); !ok {
			return verbs.Verb{}, false
		}
	case p.parts.TakesPrefix:
		value, _, _ = strings.Cut(value, "/")
	}
	return p.parts.Verb.WithParameter(value)
}

// MayBar reports whether the permission can be a barrier.
func (p *Permission) MayBar() bool { return p.parts.Excluded || len(p.parts.ExcludedWhen) > 0 }

// Conditional reports whether the barrier depends on values.
func (p *Permission) Conditional() bool { return !p.parts.Excluded && len(p.parts.ExcludedWhen) > 0 }

// Zero is the meaning of an absent value in a body from which API servers leave out a number that is 0.
type Zero int

// These are the meanings.
const (
	NothingIsZero Zero = iota
	// AbsentIsZero: the object always has the number.
	AbsentIsZero
	// AbsentMayBeZero: an absent old value means 0 or no value. An absent new value means 0.
	AbsentMayBeZero
)

// BarsOnly reports whether the verb does not cover the node, so that only a barrier holds there. If MayBar is false the permission is that of all keys
// of a map, or of a prefix, at a key that has a verb of its own, and sets may make it a barrier. If MayBar is true it is the barrier of an entry with
// another verb than that of the node. No verb of the node passes it: a change needs its verb besides, or one below.
func (p *Permission) BarsOnly() bool { return p.parts.BarsOnly }

// Powers returns the effects that the verb permits beyond its field, in the order of AllPowers. Callers must not change the slice.
func (p *Permission) Powers() []Power { return p.parts.Powers }

// Bars reports whether the permission is a barrier for a change from oldSelf to self. Both are decoded JSON scalars of the node itself;
// nil means absent or null. An error counts as a barrier. This includes the end of the context; a caller that must distinguish the two
// checks the context.
func (p *Permission) Bars(ctx context.Context, oldSelf, self any) bool {
	if p.parts.Excluded {
		return true
	}
	if p.parts.Zero != NothingIsZero && self == nil {
		self = int64(0)
	}
	if p.parts.Zero != NothingIsZero && oldSelf == nil {
		if p.parts.Zero == AbsentMayBeZero && p.barsWhen(ctx, nil, self) {
			return true
		}
		oldSelf = int64(0)
	}
	return p.barsWhen(ctx, oldSelf, self)
}

func (p *Permission) barsWhen(ctx context.Context, oldSelf, self any) bool {
	values := map[string]any{dialect.ValueVariable: self}
	if !p.parts.Unseen { // Else a condition that comes to read it fails.
		values[dialect.OldValueVariable] = oldSelf
	}
	for i := range p.parts.ExcludedWhen {
		holds, err := cel.Bool(ctx, p.parts.ExcludedWhen[i].Program, values, nil)
		if err != nil || holds {
			return true
		}
	}
	return false
}

// MayBe reports whether the permission can have the verb v. If v has a parameter, the permission must be able to have that parameter.
func (p *Permission) MayBe(v verbs.Verb) bool {
	if p.parts.Verb != v.WithoutParameter() {
		return false
	}
	value, parameterized := v.Parameter()
	return !parameterized || p.parts.Parameter != "" && p.mayYield(value)
}

// mayYield reports whether a key or value can give this parameter.
func (p *Permission) mayYield(value string) bool {
	return !p.parts.TakesPrefix || !strings.Contains(value, "/")
}

// Origins returns where the permission comes from: first the source of the verb, then the sources that make it a barrier in another
// version, if they are others. It is nil for the verb of the root, and if the compile was not traced. Callers must not change the slice.
func (p *Permission) Origins() []Origin { return p.parts.Origins }

// Excluded reports whether the permission is a barrier for all values.
func (p *Permission) Excluded() bool { return p.parts.Excluded }

// ExcludedWhen returns the conditions on values, in CEL, under which the permission is a barrier: each alone is enough.
func (p *Permission) ExcludedWhen() []string {
	var out []string
	for i := range p.parts.ExcludedWhen {
		out = append(out, p.parts.ExcludedWhen[i].Text)
	}
	return out
}

// Expression returns the CEL expression that makes the parameter from the value of ParameterName, "" for none.
func (p *Permission) Expression() string { return p.parts.Expression.Text }
