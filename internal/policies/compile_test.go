package policies

import (
	"context"
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/internal/conditions/expression"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/endpoint"
)

// typed is an API server with two versions of Deployments. Only v1 has the field paused.
func typed(ref endpoint.Ref) (map[string]*spec.Schema, error) {
	if ref != (endpoint.Ref{Group: "apps", Resource: "deployments"}) {
		return map[string]*spec.Schema{}, nil
	}
	object := func(fields map[string]spec.Schema) *spec.Schema {
		inner := spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}, Properties: fields}}
		return &spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}, Properties: map[string]spec.Schema{"spec": inner}}}
	}
	integer, boolean := *spec.Int64Property(), *spec.BooleanProperty()
	return map[string]*spec.Schema{
		"v1":      object(map[string]spec.Schema{"replicas": integer, "paused": boolean}),
		"v1beta1": object(map[string]spec.Schema{"replicas": integer}),
	}, nil
}

func compileOne(t *testing.T, types Types, of v1alpha1.ConditionalPolicySpec) (*policy, []error) {
	t.Helper()
	return newCompiler(newExpressions(t), types).compile(&v1alpha1.ConditionalPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: of}, nil)
}

// TestK5_Faults: a policy that does not compile is refused with the place of the fault.
func TestK5_Faults(t *testing.T) {
	with := func(edit func(*v1alpha1.ConditionalPolicySpec)) v1alpha1.ConditionalPolicySpec {
		out := about(v1alpha1.PolicyAllow, "object.spec.replicas == 1")
		edit(&out)
		return out
	}
	for name, c := range map[string]struct {
		spec  v1alpha1.ConditionalPolicySpec
		types Types
		want  string
	}{
		"syntax":          {about(v1alpha1.PolicyAllow, "object.spec.\n  replicas =="), noTypes, "ConditionalPolicy p:/spec/condition: expression: 2:"},
		"no boolean":      {about(v1alpha1.PolicyAllow, "1"), noTypes, "yields int"},
		"type":            {about(v1alpha1.PolicyAllow, `object.spec.replicas == "1"`), typed, `deployments.apps: expression, with the object in version v1: 1:22: `},
		"field":           {about(v1alpha1.PolicyAllow, `object.spec.nothing == 1`), typed, `1:12: undefined field 'nothing'`},
		"long":            {about(v1alpha1.PolicyAllow, "true || "+strings.Repeat("false || ", 2000)+"false"), noTypes, "shorten it to 10240 bytes"},
		"dear":            {about(v1alpha1.PolicyAllow, "object.a.all(x, object.b.all(y, object.c.all(z, object.d.all(w, object.e.all(v, x == v)))))"), noTypes, "has an estimated cost of"},
		"verb":            {about(v1alpha1.PolicyAllow, `request.verb == "update"`), noTypes, "reads request.verb"},
		"update alone":    {with(func(s *v1alpha1.ConditionalPolicySpec) { s.Verbs = []string{"update"} }), noTypes, "/spec/verbs: admission cannot tell update and patch apart"},
		"patch alone":     {with(func(s *v1alpha1.ConditionalPolicySpec) { s.Verbs = []string{"create", "patch"} }), noTypes, "/spec/verbs: admission cannot tell update and patch apart"},
		"any verb":        {with(func(s *v1alpha1.ConditionalPolicySpec) { s.Verbs = []string{"*"} }), noTypes, "/spec/verbs/0: "},
		"reading":         {with(func(s *v1alpha1.ConditionalPolicySpec) { s.Verbs = []string{"create", "get"} }), noTypes, "/spec/verbs/1: "},
		"no verb":         {with(func(s *v1alpha1.ConditionalPolicySpec) { s.Verbs = nil }), noTypes, "/spec/verbs: is empty"},
		"no subject":      {with(func(s *v1alpha1.ConditionalPolicySpec) { s.Subjects = nil }), noTypes, "/spec/subjects: is empty"},
		"kind of subject": {with(func(s *v1alpha1.ConditionalPolicySpec) { s.Subjects[0].Kind = "user" }), noTypes, `/spec/subjects/0/kind: "user" is no kind`},
		"no resource":     {with(func(s *v1alpha1.ConditionalPolicySpec) { s.Resources = nil }), noTypes, "/spec/resources: is empty"},
		"effect":          {about("allow", "true"), noTypes, `/spec/effect: "allow" is no effect`},
		"deny proxy": {with(func(s *v1alpha1.ConditionalPolicySpec) {
			s.Effect, s.Resources = v1alpha1.PolicyDeny, []v1alpha1.PolicyResource{{APIGroups: []string{""}, Resources: []string{"pods", "pods/exec", "pods/proxy"}}}
		}), noTypes, "/spec/resources: a Deny of pods/proxy does not reach users that RBAC allows it"},
	} {
		t.Run(name, func(t *testing.T) {
			_, faults := compileOne(t, c.types, c.spec)
			if text := errors.Join(faults...); !isFaulty(faults) || !strings.Contains(text.Error(), c.want) {
				t.Errorf("got %v, want %q", text, c.want)
			}
		})
	}
	for name, c := range map[string]struct {
		effect    v1alpha1.PolicyEffect
		resources []string
	}{
		"allow exec":   {v1alpha1.PolicyAllow, []string{"pods/exec"}},
		"deny exec":    {v1alpha1.PolicyDeny, []string{"pods/exec", "pods/attach", "pods/portforward"}},
		"deny tokens":  {v1alpha1.PolicyDeny, []string{"serviceaccounts/token", "pods/eviction", "pods/status", "pods"}},
		"deny unknown": {v1alpha1.PolicyDeny, []string{"widgets/exec", "*"}},
	} {
		of := about(c.effect, "true")
		of.Resources = []v1alpha1.PolicyResource{{APIGroups: []string{""}, Resources: c.resources}}
		if _, faults := compileOne(t, noTypes, of); len(faults) > 0 {
			t.Errorf("%s: %v", name, faults)
		}
	}
	if p, faults := compileOne(t, noTypes, about("allow", "true")); len(faults) == 0 || p.decides.Effect != expression.Deny {
		t.Errorf("an unknown effect is %v, %v", p.decides.Effect, faults)
	}
}

// TestK5_UnknownResource: a policy may name what is installed later.
func TestK5_UnknownResource(t *testing.T) {
	of := about(v1alpha1.PolicyAllow, "object.spec.anything == 1")
	of.Resources = []v1alpha1.PolicyResource{{APIGroups: []string{"example.com"}, Resources: []string{"widgets", "*/scale"}}}
	_, faults := compileOne(t, typed, of)
	var e *schema.Error
	if len(faults) != 1 || isFaulty(faults) || !errors.As(faults[0], &e) || !e.Unmatched || !strings.Contains(e.Message, `"widgets.example.com"`) {
		t.Errorf("got %v", faults)
	}
	down := func(endpoint.Ref) (map[string]*spec.Schema, error) { return nil, errors.New("boom") }
	if _, faults := compileOne(t, down, of); len(faults) != 1 || isFaulty(faults) || !strings.Contains(faults[0].Error(), "boom") {
		t.Errorf("without discovery: %v", faults)
	}
}

// TestK5_Versions: a condition decides on objects of the versions for which it is written. In the others an Allow does not allow and a Deny
// denies, in both phases.
func TestK5_Versions(t *testing.T) {
	of := func(effect v1alpha1.PolicyEffect, versions ...string) v1alpha1.ConditionalPolicySpec {
		out := about(effect, "has(object.spec.paused) && object.spec.paused")
		out.Resources[0].APIVersions = versions
		return out
	}
	if _, faults := compileOne(t, typed, of(v1alpha1.PolicyDeny)); !isFaulty(faults) || !strings.Contains(faults[0].Error(), "version v1beta1") {
		t.Errorf("a version without the field is no fault: %v", faults)
	}
	for _, c := range []struct {
		name         string
		effect       v1alpha1.PolicyEffect
		versions     []string
		version      string
		paused       bool
		want         fieldperm.Outcome
		fitsInPhase1 bool
	}{
		{"allow in its version", v1alpha1.PolicyAllow, []string{"v1"}, "v1", true, fieldperm.Allow, true},
		{"allow in another version", v1alpha1.PolicyAllow, []string{"v1"}, "v1beta1", true, fieldperm.NoOpinion, false},
		{"allow in a version that does not fit", v1alpha1.PolicyAllow, nil, "v1beta1", true, fieldperm.NoOpinion, false},
		{"deny in its version", v1alpha1.PolicyDeny, []string{"v1"}, "v1", false, fieldperm.NoOpinion, true},
		{"deny in another version", v1alpha1.PolicyDeny, []string{"v1"}, "v1beta1", false, fieldperm.Deny, false},
		{"deny in a version that does not fit", v1alpha1.PolicyDeny, nil, "v1beta1", false, fieldperm.Deny, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, _ := compileOne(t, typed, of(c.effect, c.versions...))
			set := newSet([]*policy{p})
			req := updating(t, replicas(1), map[string]any{"replicas": 1, "paused": c.paused})
			req.Resource.Version, req.Kind.Version = c.version, c.version
			req.RequestResource, req.RequestKind = &req.Resource, &req.Kind
			got, err := set.For(written(t, req)).Authorize(t.Context(), "update", true)
			if err != nil || got.Outcome != c.want {
				t.Errorf("admission: %+v, %v", got, err)
			}
			attributes := asked()
			attributes.APIVersion = c.version
			if got := set.ConditionsAwareAuthorize(t.Context(), attributes); got.IsConditionsMap() != c.fitsInPhase1 {
				t.Errorf("authorization: %s", got)
			}
		})
	}
}

// apiServer has policies.
type apiServer struct {
	objects  []*unstructured.Unstructured
	unsynced bool
	err      error
	types    Types
}

func live(t *testing.T, api *apiServer) *Live {
	t.Helper()
	if api.types == nil {
		api.types = noTypes
	}
	return New(Config{
		List:   func(context.Context) ([]*unstructured.Unstructured, error) { return api.objects, api.err },
		Synced: func() bool { return !api.unsynced }, Types: func() Types { return api.types }, Compiled: func() {},
	})
}

// outcome returns the decision on an update to two replicas.
func outcome(t *testing.T, l *Live) fieldperm.Outcome {
	t.Helper()
	set, err := l.Set()
	if err != nil {
		t.Fatal(err)
	}
	got, err := set.For(written(t, updating(t, replicas(1), replicas(2)))).Authorize(t.Context(), "update", true)
	if err != nil {
		t.Fatal(err)
	}
	return got.Outcome
}

func refreshed(t *testing.T, l *Live) {
	t.Helper()
	if err := l.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestK5_NothingPassesBeforePoliciesAreRead: a policy may deny, so nobody decides before it is known.
func TestK5_NothingPassesBeforePoliciesAreRead(t *testing.T) {
	api := &apiServer{unsynced: true}
	l := live(t, api)
	for _, change := range []func(){func() {}, func() { api.unsynced, api.err = false, errors.New("boom") }} {
		change()
		if err := l.Refresh(t.Context()); err == nil {
			t.Error("a refresh without the policies succeeds")
		}
		if set, err := l.Set(); err == nil || set != nil || l.Ready() == nil {
			t.Errorf("policies before they are read: %v, %v", set, err)
		}
	}
	api.err = nil
	refreshed(t, l)
	if set, err := l.Set(); err != nil || !set.Empty() || l.Ready() != nil {
		t.Errorf("got %v, %v", set, err)
	}
	api.objects = append(api.objects, stored(t, "a", 1, about(v1alpha1.PolicyAllow, "true")))
	refreshed(t, l)
	api.objects, api.err = nil, errors.New("boom")
	if err := l.Refresh(t.Context()); err == nil || outcome(t, l) != fieldperm.Allow {
		t.Errorf("an outage of the API server changes the policies in force: %v", err)
	}
}

// TestK5_FaultyPolicies: a faulty policy keeps its last valid form. If it has none, it allows nothing, and denies what it is about.
func TestK5_FaultyPolicies(t *testing.T) {
	const faulty = "object.spec.replicas =="
	allow := func(condition string) any { return about(v1alpha1.PolicyAllow, condition) }
	deny := func(condition string) any { return about(v1alpha1.PolicyDeny, condition) }
	newer := map[string]any{
		"subjects": []any{map[string]any{"kind": "User", "name": "alice"}}, "verbs": []any{"update", "patch"}, "effect": "Allow", "condition": "true",
		"resources": []any{map[string]any{"apiGroups": []any{"apps"}, "resources": []any{"deployments"}}}, "namespaces": []any{"other"},
	}
	for name, c := range map[string]struct {
		specs []any
		want  []fieldperm.Outcome
	}{
		"allow":                             {[]any{allow("true"), allow("false"), allow(faulty), allow("true")}, []fieldperm.Outcome{fieldperm.Allow, fieldperm.NoOpinion, fieldperm.NoOpinion, fieldperm.Allow}},
		"allow, then faulty":                {[]any{allow("true"), allow(faulty)}, []fieldperm.Outcome{fieldperm.Allow, fieldperm.Allow}},
		"allow, faulty first":               {[]any{allow(faulty), allow("true")}, []fieldperm.Outcome{fieldperm.NoOpinion, fieldperm.Allow}},
		"deny, faulty first":                {[]any{deny(faulty), deny("false")}, []fieldperm.Outcome{fieldperm.Deny, fieldperm.NoOpinion}},
		"deny, then faulty":                 {[]any{deny("false"), deny(faulty)}, []fieldperm.Outcome{fieldperm.NoOpinion, fieldperm.NoOpinion}},
		"a field that only a newer one has": {[]any{newer}, []fieldperm.Outcome{fieldperm.NoOpinion}},
	} {
		t.Run(name, func(t *testing.T) {
			api := &apiServer{}
			l := live(t, api)
			for i, of := range c.specs {
				api.objects = []*unstructured.Unstructured{stored(t, "p", int64(i+1), of)}
				refreshed(t, l)
				if got := outcome(t, l); got != c.want[i] {
					t.Errorf("generation %d: %v, want %v: %v", i+1, got, c.want[i], l.Objects())
				}
				if state := l.Objects()[0]; state.Generation != int64(i+1) {
					t.Errorf("state %+v", state)
				}
			}
		})
	}
	api := &apiServer{objects: []*unstructured.Unstructured{stored(t, "p", 1, allow("true"))}}
	l := live(t, api)
	refreshed(t, l)
	other := stored(t, "p", 2, allow(faulty))
	other.SetUID("other")
	api.objects = []*unstructured.Unstructured{other}
	refreshed(t, l)
	if got := outcome(t, l); got != fieldperm.NoOpinion {
		t.Errorf("a new object of the same name: %v", got)
	}
	api.objects = nil
	refreshed(t, l)
	if set, err := l.Set(); err != nil || !set.Empty() || len(l.Objects()) > 0 || len(l.Denies()) > 0 {
		t.Errorf("after the deletion: %v, %v", set, err)
	}
}

// TestK5_TypesThatChange: a condition that does not fit a new version goes on deciding in the others.
func TestK5_TypesThatChange(t *testing.T) {
	api := &apiServer{objects: []*unstructured.Unstructured{stored(t, "p", 1, about(v1alpha1.PolicyAllow, "has(object.spec.paused) || true"))}}
	l := live(t, api)
	refreshed(t, l)
	api.types = typed
	refreshed(t, l)
	if len(l.Objects()[0].Faults) > 0 {
		t.Error("types are read although nothing has changed")
	}
	l.TypesChanged()
	api.err = errors.New("boom")
	if err := l.Refresh(t.Context()); err == nil {
		t.Error("an outage is not reported")
	}
	api.err = nil
	refreshed(t, l)
	if state := l.Objects()[0]; len(state.Faults) != 1 || outcome(t, l) != fieldperm.Allow {
		t.Errorf("state %+v, %v", state, outcome(t, l))
	}
	set, err := l.Set()
	if err != nil {
		t.Fatal(err)
	}
	attributes := asked()
	attributes.APIVersion = "v1beta1"
	if got := set.ConditionsAwareAuthorize(t.Context(), attributes); got.PossibleDecisions().Has(1) {
		t.Errorf("in the version that does not fit: %s", got)
	}
}

// TestK5_Try: a policy is refused before it is stored for what refuses it afterwards, and changes nothing in force.
func TestK5_Try(t *testing.T) {
	l := live(t, &apiServer{types: typed})
	for condition, want := range map[string]bool{"object.spec.replicas == 1": false, "object.spec.replicas ==": true, "object.spec.paused": true} {
		raw, err := stored(t, "p", 1, about(v1alpha1.PolicyAllow, condition)).MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		if faults := l.Try(raw, "p"); isFaulty(faults) != want {
			t.Errorf("%s: %v", condition, faults)
		}
	}
	if faults := l.Try([]byte(`{"spec":{"subject":[]}}`), "p"); !isFaulty(faults) || !strings.Contains(faults[0].Error(), "subject") {
		t.Errorf("an unknown field: %v", faults)
	}
	if l.Ready() == nil {
		t.Error("a trial is in force")
	}
}
