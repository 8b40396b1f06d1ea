package schema

import (
	"context"
	"strings"
	"testing"

	celgo "github.com/google/cel-go/cel"

	"github.com/fieldperm/fieldperm/schema/internal/dialect"
)

// P4: a loop in an expression ends with the context, and an expression that was not evaluated completely counts as a barrier.
func TestP4_AConditionEndsWithItsContext(t *testing.T) {
	program, err := dialect.Value.Compile("self.exists(x, x == 1)", celgo.BoolType)
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

// C2: an expression of a barrier has the limits of the condition of a policy.
func TestC2_ExpressionsAreAsLimitedAsConditionsOfPolicies(t *testing.T) {
	for source, want := range map[string]string{
		"self == '" + strings.Repeat("x", 10240) + "'":                                           "is 10250 bytes long: shorten it to 10240 bytes",
		"self.all(a, self.all(b, self.all(c, self.all(d, self.all(e, a + b + c + d + e > 0)))))": "has an estimated cost of",
	} {
		if _, err := dialect.Value.Compile(source, celgo.BoolType); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: %v, want %q", source, err, want)
		}
	}
}
