package sets

import (
	"testing"

	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

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
	one := application{set: &set{}, questions: []int{1}}
	if !one.holds(e) {
		t.Error("a set does not hold although its condition was not evaluated")
	}
}
