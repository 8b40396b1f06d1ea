package cel

import (
	"context"
	"errors"
	"fmt"
	"sync"

	celgo "github.com/google/cel-go/cel"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// Bool returns the boolean that a program yields. The budget may be nil.
//
// Every error is neither true nor false: of CEL, of the limits of cost, of the context, and a value that is no boolean.
func Bool(ctx context.Context, program celgo.Program, variables any, budget *Budget) (bool, error) {
	out, details, err := program.ContextEval(ctx, variables)
	if details == nil || details.ActualCost() == nil {
		return false, errors.Join(errors.New("the cost of the expression is not known"), err)
	}
	if spent := budget.Spend(*details.ActualCost()); spent != nil {
		return false, errors.Join(spent, err)
	}
	if err != nil {
		return false, err
	}
	value, ok := out.Value().(bool)
	if !ok {
		return false, fmt.Errorf("the value of the expression is %s: make it yield bool", out.Type().TypeName())
	}
	return value, nil
}

// Budget limits the cost of all evaluations about one request, as Kubernetes does. The zero Budget is not yet spent. The nil Budget has no limit. It
// is safe for concurrent use.
type Budget struct {
	mu    sync.Mutex
	spent uint64
}

// Spend takes the cost of an evaluation from the budget. After the first error, which means that it was too much, nothing is left.
func (b *Budget) Spend(cost uint64) error {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if cost > celconfig.RuntimeCELCostBudget-b.spent {
		b.spent = celconfig.RuntimeCELCostBudget
		return fmt.Errorf("the conditions on the request cost more than %d: use fewer loops", celconfig.RuntimeCELCostBudget)
	}
	b.spent += cost
	return nil
}
