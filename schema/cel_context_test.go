package schema

import (
	"context"
	"testing"

	celgo "github.com/google/cel-go/cel"

	"github.com/fieldperm/fieldperm/schema/internal/cel"
)

// P4: a loop in an expression ends with the context, and an expression that was not evaluated completely counts as a barrier.
func TestP4_AConditionEndsWithItsContext(t *testing.T) {
	program, err := cel.Value.Compile("self.exists(x, x == 1)", celgo.BoolType)
	if err != nil {
		t.Fatal(err)
	}
	p := NewPermission(PermissionParts{ExcludedWhen: []Expression{{Program: program}}})
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
