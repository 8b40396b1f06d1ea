package expression

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// values are expressions by their value on the update of update, and by what the authorization phase knows of it. Its names are the values.
var values = map[string][]string{
	"true":  {`request.verb == "update"`, `object.spec.replicas == 3`, `object.spec.missing == 1 || request.verb == "update"`},
	"false": {`request.verb == "create"`, `object.spec.replicas == 4`, `object.spec.missing == 1 && request.verb == "create"`},
	"error": {`int(request.verb) == 1`, `object.spec.missing == 1`, `object.spec.missing == 1 && request.verb == "update"`},
}

// isOpen reports whether the objects decide on the value.
func isOpen(source string) bool {
	return strings.HasPrefix(source, "object") && !strings.Contains(source, "|| request") && !strings.Contains(source, `"create"`)
}

// atOnce is an authorizer that sees the objects at once: the KEP's "Computing a concrete decision from a ConditionSet".
func atOnce(effects []Effect, values []string) authorizer.Decision {
	of := func(effect Effect, value string) bool {
		for i := range effects {
			if effects[i] == effect && values[i] == value {
				return true
			}
		}
		return false
	}
	switch {
	case of(Deny, "true"), of(Deny, "error"):
		return authorizer.DecisionDeny
	case of(NoOpinion, "true"), of(NoOpinion, "error"):
		return authorizer.DecisionNoOpinion
	case of(Allow, "true"):
		return authorizer.DecisionAllow
	default:
		return authorizer.DecisionNoOpinion
	}
}

// outcomesOf returns all decisions that the objects can lead to.
func outcomesOf(effects []Effect, sources, is []string) map[authorizer.Decision]bool {
	out := map[authorizer.Decision]bool{}
	var assign func(i int, with []string)
	assign = func(i int, with []string) {
		switch {
		case i == len(sources):
			out[atOnce(effects, with)] = true
		case isOpen(sources[i]):
			for _, value := range []string{"true", "false", "error"} {
				assign(i+1, append(slices.Clone(with), value))
			}
		default:
			assign(i+1, append(slices.Clone(with), is[i]))
		}
	}
	assign(0, nil)
	return out
}

// TestK4_TwoPhasesDecideAsOne goes through all combinations of up to three policies. The decision of two phases is that of an authorizer that
// sees the objects at once, also if the conditions come back as text. A decision is conditional only if the objects can change it.
func TestK4_TwoPhasesDecideAsOne(t *testing.T) {
	ctx := context.Background()
	compiler, fresh := newCompiler(t), newCompiler(t)
	r, known := update()
	var policies []Policy
	var is []string
	for _, value := range slices.Sorted(maps.Keys(values)) {
		for _, source := range values[value] {
			for _, effect := range []Effect{Deny, NoOpinion, Allow} {
				e, err := compiler.Compile(source, nil)
				if err != nil {
					t.Fatal(err)
				}
				policies = append(policies, Policy{ID: fmt.Sprintf("p%d", len(policies)), Effect: effect, Expression: e})
				is = append(is, value)
			}
		}
	}
	asText := func(ctx context.Context, c authorizer.Condition, data authorizer.ConditionsData) (bool, error) {
		result := fresh.Evaluate(ctx, authorizer.GenericCondition{ID: c.GetID(), Type: c.GetType(), Condition: c.GetCondition()}, data)
		if result.IsUnevaluatable() {
			t.Errorf("condition %q is unevaluatable", c.GetCondition())
		}
		return result.IsTrue(), result.Error()
	}
	conditional := 0
	check := func(chosen ...int) {
		var list []Policy
		var effects []Effect
		var sources, value []string
		for n, i := range chosen {
			p := policies[i]
			p.ID = fmt.Sprintf("%s-%d", p.ID, n)
			list, effects, sources, value = append(list, p), append(effects, p.Effect), append(sources, p.Expression.String()), append(value, is[i])
		}
		name := fmt.Sprintf("%v of %q", effects, sources)
		want, possible := atOnce(effects, value), outcomesOf(effects, sources, value)
		d := Authorize(ctx, list, known)
		if d.IsUnconditional() != (len(possible) == 1) {
			t.Fatalf("%s: the decision is %s, and the objects can lead to %v", name, d, possible)
		}
		if !d.IsConditionsMap() {
			if got := unconditional(d); got != want {
				t.Fatalf("%s: the decision is %s, want %s", name, d, want)
			}
			return
		}
		conditional++
		if _, allows := possible[authorizer.DecisionAllow]; d.PossibleDecisions().Has(authorizer.DecisionAllow) != allows {
			t.Fatalf("%s: the decision is %s, and the objects can lead to %v", name, d, possible)
		}
		for text, data := range map[string]authorizer.ConditionsData{"compiled": NewInput(r, "", nil), "as text": r} {
			m := d.ConditionsMap()
			if text == "as text" {
				m = withoutFuncs(m)
			}
			if got, _, err := m.Evaluate(ctx, data, asText); got != want {
				t.Fatalf("%s, %s: the conditions evaluate to %s, %v, want %s", name, text, got, err, want)
			}
		}
	}
	check()
	for i := range policies {
		check(i)
		for j := range policies {
			check(i, j)
			for k := range min(i, j) + 1 {
				check(i, j, k)
			}
		}
	}
	if conditional < 1000 {
		t.Errorf("%d combinations are conditional: this test shows too little", conditional)
	}
}

func unconditional(d authorizer.ConditionsAwareDecision) authorizer.Decision {
	switch {
	case d.IsAllow():
		return authorizer.DecisionAllow
	case d.IsNoOpinion():
		return authorizer.DecisionNoOpinion
	default:
		return authorizer.DecisionDeny
	}
}

// withoutFuncs returns the conditions as they come back over the wire.
func withoutFuncs(m authorizer.ConditionsMap) authorizer.ConditionsMap {
	strip := func(from func(func(authorizer.Condition) bool)) (out []authorizer.Condition) {
		for c := range from {
			out = append(out, authorizer.GenericCondition{ID: c.GetID(), Type: c.GetType(), Condition: c.GetCondition()})
		}
		return out
	}
	return authorizer.ConditionsAwareDecisionConditionsMap(strip(m.DenyConditions()), strip(m.NoOpinionConditions()), strip(m.AllowConditions())).ConditionsMap()
}

// TestK4_ErrorsInPoliciesFailClosed: reasons and errors of decisions without the objects.
func TestK4_ErrorsInPoliciesFailClosed(t *testing.T) {
	_, known := update()
	failing, holds := compile(t, `int(request.verb) == 1`), compile(t, `request.verb == "update"`)
	allow := Policy{ID: "allow", Effect: Allow, Expression: holds}
	for name, tt := range map[string]struct {
		policies []Policy
		want     authorizer.Decision
		isError  bool
	}{
		"Deny errs":                      {[]Policy{allow, {ID: "a", Effect: Deny, Expression: failing}}, authorizer.DecisionDeny, true},
		"Deny errs beside a Deny":        {[]Policy{{ID: "a", Effect: Deny, Expression: failing}, {ID: "b", Effect: Deny, Expression: holds}}, authorizer.DecisionDeny, false},
		"NoOpinion errs":                 {[]Policy{allow, {ID: "a", Effect: NoOpinion, Expression: failing}}, authorizer.DecisionNoOpinion, true},
		"Allow errs":                     {[]Policy{{ID: "a", Effect: Allow, Expression: failing}}, authorizer.DecisionNoOpinion, true},
		"Allow errs beside an Allow":     {[]Policy{{ID: "a", Effect: Allow, Expression: failing}, allow}, authorizer.DecisionAllow, false},
		"no policy":                      {nil, authorizer.DecisionNoOpinion, false},
		"the zero policy":                {[]Policy{allow, {}}, authorizer.DecisionDeny, true},
		"an unknown effect":              {[]Policy{allow, {ID: "a", Effect: 9, Expression: holds}}, authorizer.DecisionDeny, false},
		"an Allow without an expression": {[]Policy{{ID: "a", Effect: Allow}}, authorizer.DecisionNoOpinion, true},
	} {
		d := Authorize(context.Background(), tt.policies, known)
		if !d.IsUnconditional() || unconditional(d) != tt.want || (d.Error() != nil) != tt.isError {
			t.Errorf("%s: decision %s, want %s, error %t", name, d, tt.want, tt.isError)
		}
	}
	if d := Authorize(context.Background(), []Policy{allow}, Known{}); !d.IsNoOpinion() || d.Error() == nil {
		t.Errorf("nothing known: decision %s, want NoOpinion with an error", d)
	}
}

// TestK4_ConditionsHaveALimit: 129 conditions, duplicate ids and invalid ids are an error, closed.
func TestK4_ConditionsHaveALimit(t *testing.T) {
	_, known := update()
	open := compile(t, `object.spec.replicas == 3`)
	many := func(n int, effect Effect, id func(int) string) (out []Policy) {
		for i := range n {
			out = append(out, Policy{ID: id(i), Effect: effect, Expression: open})
		}
		return out
	}
	number := func(i int) string { return fmt.Sprintf("p%d", i) }
	if d := Authorize(context.Background(), many(authorizer.MaxConditionsPerMap, Allow, number), known); !d.IsConditionsMap() {
		t.Errorf("128 conditions: decision %s, want conditions", d)
	}
	for name, tt := range map[string]struct {
		policies []Policy
		want     authorizer.Decision
	}{
		"129 Allow conditions": {many(authorizer.MaxConditionsPerMap+1, Allow, number), authorizer.DecisionNoOpinion},
		"129 Deny conditions":  {many(authorizer.MaxConditionsPerMap+1, Deny, number), authorizer.DecisionDeny},
		"duplicate ids":        {many(2, Deny, func(int) string { return "p" }), authorizer.DecisionDeny},
		"an invalid id":        {many(1, Allow, func(int) string { return "a b" }), authorizer.DecisionNoOpinion},
	} {
		d := Authorize(context.Background(), tt.policies, known)
		if !d.IsUnconditional() || unconditional(d) != tt.want || d.Error() == nil {
			t.Errorf("%s: decision %s, want %s with an error", name, d, tt.want)
		}
	}
}

// TestK4_AnAllowBesideAConditionalDenyIsTheConditionTrue holds the example of the KEP.
func TestK4_AnAllowBesideAConditionalDenyIsTheConditionTrue(t *testing.T) {
	_, known := update()
	d := Authorize(context.Background(), []Policy{
		{ID: "allow", Effect: Allow, Expression: compile(t, `request.verb == "update"`), Description: "updates"},
		{ID: "maybe", Effect: Allow, Expression: compile(t, `object.spec.replicas == 1`)},
		{ID: "deny", Effect: Deny, Expression: compile(t, `request.verb == "update" && object.spec.replicas > 10`), Description: "at most 10"},
	}, known)
	var got []string
	for c := range d.ConditionsMap().DenyConditions() {
		got = append(got, "Deny", c.GetID(), c.GetType(), c.GetCondition(), c.GetDescription())
	}
	for c := range d.ConditionsMap().AllowConditions() {
		got = append(got, "Allow", c.GetID(), c.GetType(), c.GetCondition(), c.GetDescription())
	}
	want := []string{"Deny", "deny", Type, "object.spec.replicas > 10", "at most 10", "Allow", "allow", Type, "true", "updates"}
	if !slices.Equal(got, want) {
		t.Errorf("conditions %q, want %q", got, want)
	}
}
