package expression

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/environment"
)

// tenConditions are conditions as authorizers write them. ValidatingAdmissionPolicy can evaluate them too.
var tenConditions = []string{
	`object.spec.replicas <= 10`,
	`object.spec.template.spec.serviceAccountName == oldObject.spec.template.spec.serviceAccountName`,
	`object.metadata.labels["team"] in ["blue", "green"]`,
	`!has(object.spec.paused) || object.spec.paused == false`,
	`object.spec.template.spec.containers.all(c, c.image.startsWith("registry.example.com/"))`,
	`object.spec.template.spec.containers.size() == oldObject.spec.template.spec.containers.size()`,
	`request.userInfo.groups.exists(g, g == "dev") || object.metadata.name == "w"`,
	`request.operation == "UPDATE" && oldObject.spec.replicas - object.spec.replicas < 5`,
	`!(has(object.metadata.finalizers) && object.metadata.finalizers.exists(f, f.startsWith("other.example.com/")))`,
	`object.spec.strategy.type == "RollingUpdate" && object.spec.template.spec.nodeSelector == oldObject.spec.template.spec.nodeSelector`,
}

// deployment is an object of about 16 KiB.
func deployment(tb testing.TB) map[string]any {
	tb.Helper()
	var env []string
	for i := range 200 {
		env = append(env, fmt.Sprintf(`{"name":"VARIABLE_%d","value":"a value of some length for number %d"}`, i, i))
	}
	container := `{"name":"c%d","image":"registry.example.com/app:%d","resources":{"limits":{"cpu":"1"}},"env":[` + strings.Join(env[:100], ",") + `]}`
	text := fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"w","namespace":"default","labels":{"team":"blue"}},"spec":{"replicas":3,
		"strategy":{"type":"RollingUpdate"},"template":{"spec":{"serviceAccountName":"app","nodeSelector":{"zone":"a"},"containers":[`+container+`,`+container+`]}}}}`, 1, 1, 2, 2)
	if len(text) < 14<<10 || len(text) > 18<<10 {
		tb.Fatalf("the object has %d bytes", len(text))
	}
	var out map[string]any
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		tb.Fatal(err)
	}
	return out
}

// BenchmarkTenConditions evaluates ten conditions on a decoded object of 16 KiB, as an authorizer of this package does and as
// ValidatingAdmissionPolicy does.
func BenchmarkTenConditions(b *testing.B) {
	ctx := context.Background()
	r, known := update()
	r.object, r.old = deployment(b), deployment(b)

	b.Run("fieldperm", func(b *testing.B) {
		var list []*Expression
		for _, source := range tenConditions {
			list = append(list, compile(b, source))
		}
		b.ReportAllocs()
		for b.Loop() {
			in := NewInput(r, "", nil)
			for _, e := range list {
				if ok, err := e.Evaluate(ctx, in); !ok || err != nil {
					b.Fatal(e, ok, err)
				}
			}
		}
	})
	b.Run("residuals", func(b *testing.B) {
		var policies []Policy
		for i, source := range tenConditions {
			policies = append(policies, Policy{ID: fmt.Sprintf("p%d", i), Effect: Deny, Expression: compile(b, "!("+source+")")})
		}
		d := Authorize(ctx, policies, known)
		if !d.IsConditionsMap() {
			b.Fatal(d)
		}
		b.ReportAllocs()
		for b.Loop() {
			if got, reason, err := d.ConditionsMap().Evaluate(ctx, NewInput(r, "", nil), nil); got != authorizer.DecisionNoOpinion || err != nil {
				b.Fatal(got, reason, err)
			}
		}
	})
	b.Run("ValidatingAdmissionPolicy", func(b *testing.B) {
		compiler := plugincel.NewConditionCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
		var accessors []plugincel.ExpressionAccessor
		for _, source := range tenConditions {
			accessors = append(accessors, accessor(source))
		}
		evaluator := compiler.CompileCondition(accessors, plugincel.OptionalVariableDeclarations{}, environment.StoredExpressions)
		attributes := admission.NewAttributesRecord(r.GetObject(), r.GetOldObject(), r.GetKind(), r.namespace, r.name, r.resource, "", admission.Update, r.options, false, r.user)
		b.ReportAllocs()
		for b.Loop() {
			// The API server makes both once for each policy and request.
			versioned := &admission.VersionedAttributes{Attributes: attributes, VersionedKind: r.GetKind()}
			versioned.VersionedObject.Set(attributes.GetObject())
			versioned.VersionedOldObject.Set(attributes.GetOldObject())
			request := plugincel.CreateAdmissionRequest(attributes, metav1.GroupVersionResource(r.resource), metav1.GroupVersionKind(r.GetKind()))
			results, _, err := evaluator.ForInput(ctx, versioned, request, plugincel.OptionalVariableBindings{}, nil, celconfig.RuntimeCELCostBudget)
			if err != nil {
				b.Fatal(err)
			}
			for i := range results {
				if results[i].Error != nil || results[i].EvalResult.Value() != true {
					b.Fatal(tenConditions[i], results[i].Error)
				}
			}
		}
	})
}

type accessor string

func (a accessor) GetExpression() string    { return string(a) }
func (a accessor) ReturnTypes() []*cel.Type { return []*cel.Type{cel.BoolType} }

// BenchmarkFold folds an expression to false, and to a residual whose text is compiled already, and compiles a text.
func BenchmarkFold(b *testing.B) {
	_, known := update()
	for name, source := range map[string]string{
		"false":    `object.spec.replicas <= 10 && request.verb == "create"`,
		"residual": `request.verb == "update" && object.spec.owner == request.userInfo.username && object.spec.replicas <= 10`,
	} {
		b.Run(name, func(b *testing.B) {
			e := compile(b, source)
			b.ReportAllocs()
			for b.Loop() {
				if e.Fold(context.Background(), known).Outcome == Failed {
					b.Fatal("failed")
				}
			}
		})
	}
	b.Run("new names", func(b *testing.B) {
		e, n := compile(b, longCondition), 0
		b.ReportAllocs()
		for b.Loop() {
			n++
			if e.Fold(context.Background(), named(known, n)).Outcome != Residual {
				b.Fatal("not a residual")
			}
		}
	})
	b.Run("new names compiled", func(b *testing.B) {
		e, n := compile(b, longCondition), 0
		b.ReportAllocs()
		for b.Loop() {
			n++
			if _, err := e.Fold(context.Background(), named(known, n)).Residual.Expression(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("compile", func(b *testing.B) {
		c := newCompiler(b)
		for b.Loop() {
			if _, err := c.compile(`object.spec.owner == "alice" && object.spec.replicas <= 10`); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// TestK4_BothEvaluatorsOfTheBenchmarkAgree holds that the benchmark compares the same work.
func TestK4_BothEvaluatorsOfTheBenchmarkAgree(t *testing.T) {
	r, _ := update()
	r.object, r.old = deployment(t), deployment(t)
	in := NewInput(r, "", nil)
	for _, source := range tenConditions {
		if ok, err := compile(t, source).Evaluate(context.Background(), in); !ok || err != nil {
			t.Errorf("%s: %t, %v, want true", source, ok, err)
		}
	}
}
