package schema

import (
	"context"
	"strings"
	"testing"

	celgo "github.com/google/cel-go/cel"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// P4: a loop in an expression ends with the context, and an expression that was not evaluated completely counts as a barrier.
func TestP4_AConditionEndsWithItsContext(t *testing.T) {
	program, err := valueDialect.compile("self.exists(x, x == 1)", celgo.BoolType)
	if err != nil {
		t.Fatal(err)
	}
	p := &Permission{excludedWhen: []barrierCondition{{program: program}}}
	self := make([]any, 10_000)
	for i := range self {
		self[i] = int64(0)
	}
	if p.Bars(t.Context(), nil, any(self)) {
		t.Error("the condition does not hold, and the permission bars")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if !p.Bars(ctx, nil, any(self)) {
		t.Error("the context has ended, and the condition was evaluated to its end")
	}
}

// C2: an expression of a barrier has the limits of the condition of a policy.
func TestC2_ExpressionsAreAsLimitedAsConditionsOfPolicies(t *testing.T) {
	for source, want := range map[string]string{
		"self == '" + strings.Repeat("x", 10240) + "'":                                           "is 10250 bytes long: shorten it to 10240 bytes",
		"self.all(a, self.all(b, self.all(c, self.all(d, self.all(e, a + b + c + d + e > 0)))))": "has an estimated cost of",
	} {
		if _, err := valueDialect.compile(source, celgo.BoolType); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: %v, want %q", source, err, want)
		}
	}
}

// C2: the match conditions on one request have one budget. One that does not fit into it is an error, so that its set holds.
func TestC2_ConditionsOnARequestHaveOneBudget(t *testing.T) {
	c, err := newCondition("request.operation == 'DELETE'")
	if err != nil {
		t.Fatal(err)
	}
	request := func() (map[string]any, error) { return map[string]any{"operation": "CREATE"}, nil }
	e := newEvaluation(t.Context(), request, []question{{condition: c}, {condition: c, as: variant{isUpdate: true}}})
	if holds, err := e.answer(0); holds || err != nil {
		t.Errorf("%t, %v", holds, err)
	}
	_ = e.budget.Spend(celconfig.RuntimeCELCostBudget)
	if _, err := e.answer(1); err == nil {
		t.Error("a condition costs nothing")
	}
	set := application{set: &uncoveredSet{}, questions: []int{1}}
	if !set.holds(e) {
		t.Error("a set does not hold although its condition was not evaluated")
	}
}
