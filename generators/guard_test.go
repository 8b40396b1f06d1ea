package generators

import (
	"testing"
	"time"

	"github.com/google/cel-go/cel"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fieldperm/fieldperm/api/v1alpha1"

	"github.com/fieldperm/fieldperm/generators/webhooks"
)

const (
	ownUser   = "system:serviceaccount:fieldperm-system:fieldperm"
	otherUser = "alice"
	// master is a member of system:masters.
	master = "chief"
)

// guarded evaluates the policy without types, which the API server adds. test/e2e tests a real API server.
type guarded struct {
	conditions, variables, validations []cel.Program
	names                              []string
}

func newGuarded(t *testing.T) *guarded {
	t.Helper()
	var variables []cel.EnvOption
	for _, name := range []string{"object", "oldObject", "request", "variables"} {
		variables = append(variables, cel.Variable(name, cel.DynType))
	}
	env, err := cel.NewEnv(variables...)
	if err != nil {
		t.Fatal(err)
	}
	program := func(expression string) cel.Program {
		ast, issues := env.Compile(expression)
		if issues.Err() != nil {
			t.Fatalf("%s: %v", expression, issues.Err())
		}
		p, err := env.Program(ast)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	o := service()
	o.User = ownUser
	policy, g := webhooks.GuardPolicy(o.Options), &guarded{}
	for _, c := range policy.Spec.MatchConditions {
		g.conditions = append(g.conditions, program(c.Expression))
	}
	for _, v := range policy.Spec.Variables {
		g.names, g.variables = append(g.names, v.Name), append(g.variables, program(v.Expression))
	}
	for _, v := range policy.Spec.Validations {
		g.validations = append(g.validations, program(v.Expression))
	}
	return g
}

// allows reports whether the policy lets a user replace before by after; nil means no object.
func (g *guarded) allows(t *testing.T, user string, before, after *admissionregistrationv1.ValidatingWebhookConfiguration) bool {
	t.Helper()
	operation := "UPDATE"
	content := func(c *admissionregistrationv1.ValidatingWebhookConfiguration, without string) any {
		if c == nil {
			operation = without
			return nil
		}
		out, err := runtime.DefaultUnstructuredConverter.ToUnstructured(c)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	variables := map[string]any{}
	in := map[string]any{"oldObject": content(before, "CREATE"), "object": content(after, "DELETE"), "variables": variables}
	info := map[string]any{"username": user}
	if user == master {
		info["groups"] = []any{"system:masters"}
	}
	in["request"] = map[string]any{"operation": operation, "userInfo": info}
	eval := func(p cel.Program) any {
		out, _, err := p.Eval(in)
		if err != nil {
			t.Fatal(err)
		}
		return out.Value()
	}
	for _, p := range g.conditions {
		if eval(p) != true {
			return true
		}
	}
	for i, p := range g.variables {
		out, _, err := p.Eval(in)
		if err != nil {
			t.Fatalf("%s: %v", g.names[i], err)
		}
		variables[g.names[i]] = out
	}
	for _, p := range g.validations {
		if eval(p) != true {
			return false
		}
	}
	return true
}

func TestA5_W2_GuardRefusesToLoosen(t *testing.T) {
	type configuration = admissionregistrationv1.ValidatingWebhookConfiguration
	g := newGuarded(t)
	good := webhooks.GranularConfiguration(service().Options)
	ignore := admissionregistrationv1.Ignore
	changed := func(change func(*configuration)) *configuration {
		c := good.DeepCopy()
		change(c)
		return c
	}
	leaving := changed(func(c *configuration) { c.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} })
	released := leaving.DeepCopy()
	released.Finalizers = nil
	rules := webhooks.Writes.On([]v1alpha1.ResourceRule{{APIGroups: []string{""}, Resources: []string{"pods"}}})
	barriers := webhooks.UncoveredConfiguration(good.Webhooks[0].ClientConfig, rules)
	none := webhooks.UncoveredConfiguration(good.Webhooks[0].ClientConfig, nil)
	stamped := barriers.DeepCopy()
	stamped.Annotations = map[string]string{webhooks.WriterAnnotation: "v999.0.0"}
	bound := barriers.DeepCopy()
	bound.Finalizers = []string{"example.com/forever"}
	more := bound.DeepCopy()
	more.Finalizers = append(more.Finalizers, "example.com/ever")
	probed := webhooks.InState(good, good.Webhooks[0].ClientConfig, webhooks.GranularProbed, "u-2-x")
	wide := webhooks.InState(good, good.Webhooks[0].ClientConfig, "*", "u-3-x")
	unrelated := changed(func(c *configuration) { c.Name, c.Webhooks = "other", nil })
	for name, c := range map[string]struct {
		before, after    *configuration
		otherMay, ownMay bool
	}{
		"creation":        {nil, good, true, true},
		"creation, loose": {nil, changed(func(c *configuration) { c.Webhooks[0].FailurePolicy = &ignore }), false, false},
		"a label":         {good, changed(func(c *configuration) { c.Labels["a"] = "b" }), true, true},
		"deletion":        {good, nil, true, true},
		"a webhook of others": {good, changed(func(c *configuration) {
			c.Webhooks = append(c.Webhooks, admissionregistrationv1.ValidatingWebhook{Name: "other.example.com"})
		}), false, true},
		"the webhook for probes": {good, probed, true, true},
		"its rules":              {probed, wide, true, true},
		"no more of it":          {wide, good, true, true},
		"it is narrowed":         {wide, probed, true, true},
		"failurePolicy":          {good, changed(func(c *configuration) { c.Webhooks[0].FailurePolicy = &ignore }), false, false},
		"a condition":            {good, changed(func(c *configuration) { c.Webhooks[0].MatchConditions[0].Expression = "false" }), false, false},
		"a selector": {good, changed(func(c *configuration) {
			c.Webhooks[0].ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
		}), false, false},
		"no rule":                {good, changed(func(c *configuration) { c.Webhooks[0].Rules = nil }), false, false},
		"the address":            {good, changed(func(c *configuration) { c.Webhooks[0].ClientConfig.Service.Name = "other" }), false, true},
		"the finalizer":          {good, changed(func(c *configuration) { c.Finalizers = nil }), false, false},
		"the finalizer, at last": {leaving, released, false, true},
		"barriers":               {barriers, nil, false, true},
		"the rules of barriers":  {barriers, none, false, true},
		"of another program":     {unrelated, nil, true, true},
		"a writer's version":     {barriers, stamped, false, true},
		"a version, made anew":   {nil, stamped, false, true},
		"a version taken away":   {stamped, barriers, false, true},
		"beside a version":       {stamped, stamped, true, true},
		"a finalizer":            {barriers, bound, false, true},
		"a finalizer, from then": {nil, bound, false, true},
		"another finalizer":      {bound, more, false, true},
		"beside a finalizer":     {bound, bound, true, true},
		"a finalizer taken away": {bound, barriers, true, true},
		"the review's versions":  {good, changed(func(c *configuration) { c.Webhooks[0].AdmissionReviewVersions = []string{"v1beta1", "v1"} }), false, false},
	} {
		// A member of system:masters may delete the configuration of barriers, and has no other right that other users lack.
		for user, want := range map[string]bool{otherUser: c.otherMay, ownUser: c.ownMay, master: c.otherMay || name == "barriers"} {
			if got := g.allows(t, user, c.before, c.after); got != want {
				t.Errorf("%s by %s: allowed is %t", name, user, got)
			}
		}
	}
}

func TestA5_GuardFailsClosed(t *testing.T) {
	if p := webhooks.GuardPolicy(service().Options); *p.Spec.FailurePolicy != admissionregistrationv1.Fail {
		t.Errorf("failurePolicy is %s", *p.Spec.FailurePolicy)
	}
	if actions := webhooks.GuardBinding().Spec.ValidationActions; len(actions) != 1 || actions[0] != admissionregistrationv1.Deny {
		t.Errorf("actions are %v", actions)
	}
}
