package expression

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/fieldperm/fieldperm/internal/cel"
)

// longCondition has about 9 kB, and another residual for each name.
var longCondition = strings.Repeat(`(has(object.spec.owner) && object.spec.owner == request.name + "-owner") || `, 120) + "object.spec.last"

// named is an update of another object.
func named(known Known, n int) Known {
	known.Name = fmt.Sprintf("name-%d", n)
	return known
}

// TestK4_TheAuthorizationPhaseCompilesNothing: a user who asks about names that do not exist costs little processor time, and no memory.
func TestK4_TheAuthorizationPhaseCompilesNothing(t *testing.T) {
	if len(longCondition) < 9000 || len(longCondition) > cel.MaxLength {
		t.Fatalf("the condition has %d bytes", len(longCondition))
	}
	_, known := update()
	e, n := compile(t, longCondition), 0
	ask := func() {
		n++
		policies := []Policy{{ID: "p", Effect: Allow, Expression: e}}
		if d := Authorize(context.Background(), policies, named(known, n)); !d.IsConditionsMap() {
			t.Fatal(d)
		}
	}
	ask() // The first compiles the closed parts.
	asking := testing.AllocsPerRun(10, ask)
	compiling := testing.AllocsPerRun(3, func() {
		if _, err := e.compiler.compile(longCondition); err != nil {
			t.Fatal(err)
		}
	})
	if asking > compiling/4 {
		t.Errorf("one question allocates %.0f times, and compiling the condition %.0f times", asking, compiling)
	}
	if size := e.compiler.residuals.Size(); size != 0 {
		t.Errorf("questions have left %d bytes of compiled text", size)
	}
}

// TestK4_CompiledResidualsAreBoundedInBytes, and do not drive out policies.
func TestK4_CompiledResidualsAreBoundedInBytes(t *testing.T) {
	_, known := update()
	e := compile(t, longCondition)
	var before, after runtime.MemStats
	for n := range 40 {
		if n == 10 {
			runtime.GC()
			runtime.ReadMemStats(&before)
		}
		left, err := e.Fold(context.Background(), named(known, n)).Residual.Expression()
		if err != nil {
			t.Fatal(err)
		}
		if again, err := e.Fold(context.Background(), named(known, n)).Residual.Expression(); again != left || err != nil {
			t.Errorf("the same residual is compiled twice: %v", err)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 10<<20 { //nolint:gosec // They are far below the limit.
		t.Errorf("30 more residuals take %d bytes more", grown)
	}
	if size := e.compiler.residuals.Size(); size > cachedResiduals || size < cachedResiduals/2 {
		t.Errorf("%d bytes of compiled text, the limit is %d", size, cachedResiduals)
	}
	if again, err := e.compiler.Compile(longCondition, nil); again != e || err != nil {
		t.Errorf("the policy is compiled again: %v", err)
	}
}

// TestK4_AResidualThatDoesNotCompileIsAnError where it is evaluated, from its text too.
func TestK4_AResidualThatDoesNotCompileIsAnError(t *testing.T) {
	r, known := update()
	folded := compile(t, `object.spec.owner.matches("(" + request.verb) && object.spec.owner == "alice"`).Fold(context.Background(), known)
	if folded.Outcome != Residual {
		t.Fatalf("outcome %d, error %v", folded.Outcome, folded.Err)
	}
	var of *cel.Error
	if _, err := folded.Residual.Expression(); !errors.As(err, &of) || folded.Residual.String() != "" {
		t.Errorf("error %v, text %q", err, folded.Residual)
	}
	if ok, err := folded.Residual.Evaluate(context.Background(), r); ok || err == nil {
		t.Errorf("%t, %v, want an error", ok, err)
	}
	policy := Policy{ID: "p"}
	one := policy.condition(folded.Residual)
	if back := newCompiler(t).Evaluate(context.Background(), one, r); !one.Evaluate(context.Background(), r).IsError() || !back.IsError() || one.GetCondition() != "" {
		t.Errorf("condition %q is %v, and from its text %v", one.GetCondition(), one.Evaluate(context.Background(), r), back)
	}
	for _, empty := range []*Remainder{nil, {}} {
		if ok, err := empty.Evaluate(context.Background(), r); ok || err == nil || empty.String() != "" {
			t.Errorf("the empty residual is %t, %v", ok, err)
		}
	}
}

// TestK4_AResidualIsSafeForConcurrentUse is for the race detector.
func TestK4_AResidualIsSafeForConcurrentUse(t *testing.T) {
	r, known := update()
	left := compile(t, `request.verb == "update" && object.spec.owner.matches(request.userInfo.username)`).Fold(context.Background(), known).Residual
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if ok, err := left.Evaluate(context.Background(), r); !ok || err != nil || left.String() != `object.spec.owner.matches("alice")` {
				t.Errorf("%s: %t, %v", left, ok, err)
			}
		})
	}
	all.Wait()
}
