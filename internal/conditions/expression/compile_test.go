package expression

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/fieldperm/fieldperm/internal/cel"
)

// TestK4_FaultsHaveAPosition: an expression that is not valid is refused with the place of the fault.
func TestK4_FaultsHaveAPosition(t *testing.T) {
	for source, want := range map[string]string{
		`object.spec ==`:                   "1:15: Syntax error",
		"true &&\n  oject.a":               "2:3: undeclared reference to 'oject'",
		`request.verbs == "x"`:             "1:8: undefined field 'verbs'",
		`changes.all(c, c.paths == "x")`:   "1:17: undefined field 'paths'",
		`"text"`:                           "yields string: make it yield bool",
		`request == null`:                  `1:1: "request" has no field after it`,
		`request.?verb.orValue("") == "x"`: `1:1: "request" has no field after it`,
		`[object].all(object, object.a)`:   `local variable "object" hides another name`,
		`[1].all(int, int == 1)`:           `local variable "int" hides another name`,
		`optional.of(1).optMap(request, request == 1).orValue(true)`: `local variable "request" hides another name`,
		`object.a.matches("(")`:                            "invalid matches argument",
		`object.a == "` + strings.Repeat("a", 10240) + `"`: "shorten it to 10240 bytes",
		`object.l.all(a, object.l.all(b, object.l.all(c, object.l.all(d, a + b + c + d > 0))))`: "estimated cost",
		`authorizer.group("").resource("pods").check("get").allowed()`:                          "undeclared reference to 'authorizer'",
	} {
		_, err := newCompiler(t).Compile(source, nil)
		var of *cel.Error
		if !errors.As(err, &of) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: error %v, want %q", source, err, want)
		}
	}
	if _, err := (&Compiler{}).Compile("true", nil); err == nil {
		t.Error("the zero compiler compiles")
	}
}

// TestK4_TypesOfEachVersionAreChecked: an expression must fit the object in all versions.
func TestK4_TypesOfEachVersionAreChecked(t *testing.T) {
	schema := func(text string) *spec.Schema {
		out := &spec.Schema{}
		if err := json.Unmarshal([]byte(text), out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	c := newCompiler(t)
	types, err := c.Types(map[string]*spec.Schema{
		"v1": schema(`{"type":"object","properties":{"spec":{"type":"object","properties":{"replicas":{"type":"integer"},"tags":{"type":"array","items":{"type":"string"}}}}}}`),
		"v2": schema(`{"type":"object","properties":{"spec":{"type":"object","properties":{"size":{"type":"integer"},"replicas":{"type":"string"}}}}}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	for source, want := range map[string]string{
		`object.spec.replicas > 1`:   "with the object in version v2: 1:22: found no matching overload",
		`object.spec.size > 1`:       "with the object in version v1: 1:12: undefined field 'size'",
		`has(object.spec.replicas)`:  "",
		`oldObject.spec.tags == []`:  "with the object in version v2: 1:15: undefined field 'tags'",
		`object.metadata.name == ""`: "",
		`object == null`:             "",
	} {
		_, err := c.Compile(source, types)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: error %v, want %q", source, err, want)
		}
	}
	if _, err := c.Types(map[string]*spec.Schema{"v1": nil}); err == nil {
		t.Error("a version without a schema has a type")
	}
}

// TestK4_EvaluationHasLimits: costs, the context and values that are no booleans are errors.
func TestK4_EvaluationHasLimits(t *testing.T) {
	r, _ := update()
	list := make([]any, 3000)
	for i := range list {
		list[i] = int64(1)
	}
	r.object = map[string]any{"list": list}
	quadratic := compile(t, `object.list.all(a, object.list.all(b, a + b > 0))`)
	if ok, err := quadratic.Evaluate(context.Background(), r); ok || err == nil || !strings.Contains(err.Error(), "cost limit") {
		t.Errorf("9 million steps: %t, %v, want an error about the cost limit", ok, err)
	}
	in, linear := NewInput(r, "", nil), compile(t, `object.list.all(a, a > 0 && a > 0 && a > 0)`)
	// The whole budget takes seconds.
	if err := in.budget.Spend(celconfig.RuntimeCELCostBudget - 300_000); err != nil {
		t.Error(err)
	}
	spent := 0
	for range 50 {
		if _, err := linear.Evaluate(context.Background(), in); err != nil {
			if !strings.Contains(err.Error(), "cost more than 10000000") {
				t.Errorf("error %v, want one about the budget of the request", err)
			}
			break
		}
		spent++
	}
	if spent < 3 || spent == 50 {
		t.Errorf("%d evaluations of 3000 elements fit into the budget of a request", spent)
	}
	stopped, cancel := context.WithCancel(context.Background())
	cancel()
	for name, evaluate := range map[string]func() (bool, error){
		"a stopped context":       func() (bool, error) { return linear.Evaluate(stopped, r) },
		"a value that is no bool": func() (bool, error) { return compile(t, `object.list`).Evaluate(context.Background(), r) },
		"the zero expression":     func() (bool, error) { return (&Expression{}).Evaluate(context.Background(), r) },
		"no data":                 func() (bool, error) { return linear.Evaluate(context.Background(), nil) },
		"the verb in admission":   func() (bool, error) { return compile(t, `!has(request.verb)`).Evaluate(context.Background(), r) },
	} {
		if ok, err := evaluate(); ok || err == nil {
			t.Errorf("%s: %t, %v, want an error", name, ok, err)
		}
	}
}
