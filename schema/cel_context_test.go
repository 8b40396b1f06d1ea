package schema

import (
	"context"
	"testing"

	"github.com/google/cel-go/cel"
)

// P4: a loop in an expression ends with the context, and an expression that was not evaluated completely counts as a barrier.
func TestP4_AConditionEndsWithItsContext(t *testing.T) {
	program, err := valueDialect.compile("self.exists(x, x == 1)", cel.BoolType)
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
