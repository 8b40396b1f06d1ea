package cel

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	celgo "github.com/google/cel-go/cel"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

func newEnvironment(t testing.TB, variables ...string) *Environment {
	t.Helper()
	var options []celgo.EnvOption
	for _, name := range variables {
		options = append(options, celgo.Variable(name, celgo.DynType))
	}
	out, err := NewEnvironment(nil, options...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestK4_FaultsHaveTheirPlaceAndTheirCure in both forms: with the place only, and with the text of the expression.
func TestK4_FaultsHaveTheirPlaceAndTheirCure(t *testing.T) {
	env := newEnvironment(t, "o")
	for source, want := range map[string][2]string{
		`o.a ==`:         {"expression: 1:7: Syntax error", `expression "o.a ==" does not compile: ERROR: <input>:1:7: Syntax error`},
		"true &&\n  x.a": {"expression: 2:3: undeclared reference to 'x'", `does not compile: ERROR: <input>:2:3: undeclared reference`},
		`1`:              {"expression: yields int: make it yield bool", `expression "1" yields int: make it yield bool`},
		`o == "` + strings.Repeat("a", MaxLength) + `"`:                           {"expression: is 10247 bytes long: shorten it to 10240 bytes", ` is 10247 bytes long: shorten`},
		`o.all(a, o.all(b, o.all(c, o.all(d, o.all(e, a + b + c + d + e > 0)))))`: {"expression: has an estimated cost of", " has an estimated cost of"},
	} {
		_, err := env.Compile(source, celgo.BoolType)
		var of *Error
		if !errors.As(err, &of) || !strings.HasPrefix(err.Error(), want[0]) || !strings.Contains(of.In(source).Error(), want[1]) {
			t.Errorf("%.60s: error %v, want %q", source, err, want)
		}
	}
	if _, err := env.Compile(`o`, celgo.BoolType); err != nil {
		t.Errorf("dyn is no boolean: %v", err)
	}
}

// TestK4_OneRequestHasOneBudget: what is spent is spent for all expressions, and nothing is left after the first that costs too much.
func TestK4_OneRequestHasOneBudget(t *testing.T) {
	var b Budget
	for _, c := range []struct {
		cost uint64
		fits bool
	}{{celconfig.RuntimeCELCostBudget - 1, true}, {2, false}, {1, false}, {0, true}} {
		if err := b.Spend(c.cost); (err == nil) != c.fits {
			t.Errorf("cost %d: %v", c.cost, err)
		}
	}
	program, err := newEnvironment(t, "o").Compile(`o == 1`, celgo.BoolType)
	if err != nil {
		t.Fatal(err)
	}
	for name, budget := range map[string]*Budget{"none": nil, "full": {}, "spent": &b} {
		if ok, err := Bool(context.Background(), program, map[string]any{"o": 1}, budget); ok == (name == "spent") || (err != nil) != (name == "spent") {
			t.Errorf("%s: %t, %v", name, ok, err)
		}
	}
}

// TestK4_TheCacheIsBoundedInBytes: it drops what was used least recently, and never counts a text twice.
func TestK4_TheCacheIsBoundedInBytes(t *testing.T) {
	c := NewCache[string](30)
	made := 0
	get := func(text string) {
		if out, err := c.Get(text, func(text string) (string, error) { made++; return "of " + text, nil }); out != "of "+text || err != nil {
			t.Errorf("%q, %v", out, err)
		}
	}
	for i := range 3 {
		get(fmt.Sprint("text", i, "....."))
	}
	get("text0.....")
	if get("text3....."); made != 4 || c.Size() != 30 {
		t.Errorf("%d made, %d bytes", made, c.Size())
	}
	get("text0.....")
	if get("text1....."); made != 5 {
		t.Errorf("%d made: what was not used is still there, or what was used is not", made)
	}
	if get(strings.Repeat("x", 31)); c.Size() != 0 {
		t.Errorf("%d bytes after a text that is too long", c.Size())
	}
	failure := errors.New("no")
	for range 2 {
		if _, err := c.Get("faulty", func(string) (string, error) { made++; return "", failure }); !errors.Is(err, failure) {
			t.Error(err)
		}
	}
	if made != 8 || c.Size() != 0 {
		t.Errorf("%d made, %d bytes: a failure is remembered", made, c.Size())
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range 100 {
				text := fmt.Sprint(i % 7)
				_, _ = c.Get(text, func(string) (string, error) { return "", nil })
			}
		})
	}
	if all.Wait(); c.Size() != 7 {
		t.Errorf("%d bytes of 7 texts of one", c.Size())
	}
}
