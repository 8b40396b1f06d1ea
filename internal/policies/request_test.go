package policies

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/fieldperm"
)

// TestK5_Effects: the strongest effect whose condition is true decides. An error counts as true for Deny and NoOpinion.
func TestK5_Effects(t *testing.T) {
	const yes, no, fails = `object.spec.replicas == 3`, `object.spec.replicas == 4`, `object.spec.missing == 1`
	allow, ignore, deny := v1alpha1.PolicyAllow, v1alpha1.PolicyNoOpinion, v1alpha1.PolicyDeny
	for name, c := range map[string]struct {
		policies []v1alpha1.ConditionalPolicySpec
		want     fieldperm.Outcome
	}{
		"none":                 {nil, fieldperm.NoOpinion},
		"allow":                {[]v1alpha1.ConditionalPolicySpec{about(allow, yes)}, fieldperm.Allow},
		"allow that is false":  {[]v1alpha1.ConditionalPolicySpec{about(allow, no)}, fieldperm.NoOpinion},
		"allow that fails":     {[]v1alpha1.ConditionalPolicySpec{about(allow, fails)}, fieldperm.NoOpinion},
		"second allow":         {[]v1alpha1.ConditionalPolicySpec{about(allow, fails), about(allow, yes)}, fieldperm.Allow},
		"ignore and allow":     {[]v1alpha1.ConditionalPolicySpec{about(allow, yes), about(ignore, yes)}, fieldperm.NoOpinion},
		"ignore that fails":    {[]v1alpha1.ConditionalPolicySpec{about(allow, yes), about(ignore, fails)}, fieldperm.NoOpinion},
		"ignore that is false": {[]v1alpha1.ConditionalPolicySpec{about(allow, yes), about(ignore, no)}, fieldperm.Allow},
		"deny and allow":       {[]v1alpha1.ConditionalPolicySpec{about(allow, yes), about(deny, yes)}, fieldperm.Deny},
		"deny and ignore":      {[]v1alpha1.ConditionalPolicySpec{about(ignore, yes), about(deny, yes)}, fieldperm.Deny},
		"deny that fails":      {[]v1alpha1.ConditionalPolicySpec{about(allow, yes), about(deny, fails)}, fieldperm.Deny},
		"deny that is false":   {[]v1alpha1.ConditionalPolicySpec{about(allow, yes), about(deny, no)}, fieldperm.Allow},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := setOf(t, c.policies...).For(written(t, updating(t, replicas(2), replicas(3)))).Authorize(t.Context(), "update", true)
			if err != nil || got.Outcome != c.want {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

// TestK4_AnObjectWithANameThatOccursTwiceIsNotRead, whether it is decoded for its readers or read in place.
func TestK4_AnObjectWithANameThatOccursTwiceIsNotRead(t *testing.T) {
	for effect, want := range map[v1alpha1.PolicyEffect]fieldperm.Outcome{v1alpha1.PolicyAllow: fieldperm.NoOpinion, v1alpha1.PolicyNoOpinion: fieldperm.NoOpinion, v1alpha1.PolicyDeny: fieldperm.Deny} {
		condition := map[bool]string{true: `object.spec.replicas == 3`, false: `object.spec.replicas == 4`}[effect == v1alpha1.PolicyAllow]
		req := updating(t, replicas(2), replicas(3))
		req.Object.Raw = []byte(`{"spec":{"replicas":3,"template":{"x":{"a":1,"\u0061":2}}}}`)
		if got, err := setOf(t, about(effect, condition)).For(written(t, req)).Authorize(t.Context(), "update", true); err != nil || got.Outcome != want {
			t.Errorf("%s: %+v, %v", effect, got, err)
		}
	}
}

// TestK7_BothPhasesAgree: what admission allows, the authorization phase lets through, and what the authorization phase decides for all
// objects, admission decides too.
func TestK7_BothPhasesAgree(t *testing.T) {
	conditions := []string{
		`true`, `false`, `object.spec.replicas == 3`, `object.spec.missing == 1`, `request.name == "web"`, `request.name == "other"`, `request.namespace == "shop"`,
		`"dev" in request.userInfo.groups && object.spec.replicas > 2`, `request.userInfo.username == "bob" || oldObject.spec.replicas == 2`,
		`request.name == "other" && object.spec.missing == 1`, `request.operation == "UPDATE"`, `changes.size() == 0`,
	}
	effects := []v1alpha1.PolicyEffect{v1alpha1.PolicyAllow, v1alpha1.PolicyAllow, v1alpha1.PolicyNoOpinion, v1alpha1.PolicyDeny}
	random := rand.New(rand.NewPCG(1, 2))
	seen := map[string]int{}
	for range 600 {
		var specs []v1alpha1.ConditionalPolicySpec
		for range 1 + random.IntN(4) {
			specs = append(specs, about(effects[random.IntN(len(effects))], conditions[random.IntN(len(conditions))]))
		}
		set := setOf(t, specs...)
		req := updating(t, replicas(random.IntN(4)), replicas(random.IntN(4)))
		in := set.For(written(t, req))
		got, err := in.Authorize(t.Context(), "update", true)
		if err != nil {
			t.Fatal(err)
		}
		first := set.ConditionsAwareAuthorize(t.Context(), asked())
		then := first
		if !first.IsUnconditional() {
			outcome, reason, err := set.EvaluateConditions(t.Context(), first, in.(*request).input())
			then = authorizer.ConditionsAwareDecisionFromParts(outcome, reason, err)
		}
		want := map[bool]fieldperm.Outcome{then.IsAllow(): fieldperm.Allow, then.IsDeny(): fieldperm.Deny, then.IsNoOpinion(): fieldperm.NoOpinion}[true]
		if got.Outcome != want {
			t.Fatalf("admission: %v; with the decision of the authorization phase: %s, then %s: %+v", got, first, then, specs)
		}
		seen[fmt.Sprintf("%t %v", first.IsUnconditional(), want)]++
		if old, _, _ := set.Authorize(t.Context(), asked()); old == authorizer.DecisionAllow && want != fieldperm.Allow {
			t.Fatalf("without conditions: allowed, with the objects: %v: %+v", want, specs)
		}
	}
	if len(seen) != 6 {
		t.Errorf("some outcomes did not occur: %v", seen)
	}
}

// TestK5_AboutWhatAndWhom: a policy is about its subjects, verbs and resources, as a rule of RBAC is.
func TestK5_AboutWhatAndWhom(t *testing.T) {
	change := func(edit func(*v1alpha1.ConditionalPolicySpec)) v1alpha1.ConditionalPolicySpec {
		out := about(v1alpha1.PolicyAllow, "true")
		edit(&out)
		return out
	}
	resources := func(group string, names ...string) v1alpha1.ConditionalPolicySpec {
		return change(func(s *v1alpha1.ConditionalPolicySpec) {
			s.Resources = []v1alpha1.PolicyResource{{APIGroups: []string{group}, Resources: names}}
		})
	}
	subject := func(kind, namespace, name string) v1alpha1.ConditionalPolicySpec {
		return change(func(s *v1alpha1.ConditionalPolicySpec) {
			s.Subjects = []v1alpha1.Subject{{Kind: kind, Namespace: namespace, Name: name}}
		})
	}
	for name, c := range map[string]struct {
		spec                       v1alpha1.ConditionalPolicySpec
		user, verb, sub, namespace string
		want                       bool
	}{
		"it":                             {spec: about(v1alpha1.PolicyAllow, "true"), want: true},
		"patch":                          {spec: about(v1alpha1.PolicyAllow, "true"), verb: "patch", want: true},
		"another verb":                   {spec: about(v1alpha1.PolicyAllow, "true"), verb: "create"},
		"a granular verb":                {spec: about(v1alpha1.PolicyAllow, "true"), verb: "granular:scale"},
		"another user":                   {spec: about(v1alpha1.PolicyAllow, "true"), user: "bob"},
		"a group":                        {spec: subject("Group", "", "dev"), want: true},
		"another group":                  {spec: subject("Group", "", "ops")},
		"a user with the group's name":   {spec: subject("User", "", "dev")},
		"a ServiceAccount":               {spec: subject("ServiceAccount", "ns", "bot"), user: "system:serviceaccount:ns:bot", want: true},
		"another ServiceAccount":         {spec: subject("ServiceAccount", "ns", "bot"), user: "system:serviceaccount:ns:bot2"},
		"a subresource":                  {spec: about(v1alpha1.PolicyAllow, "true"), sub: "scale"},
		"a subresource by name":          {spec: resources("apps", "deployments/scale"), sub: "scale", want: true},
		"a subresource of all":           {spec: resources("apps", "*/scale"), sub: "scale", want: true},
		"the resource of a subresource":  {spec: resources("apps", "deployments/scale")},
		"all of a subresource":           {spec: resources("apps", "*/scale")},
		"all":                            {spec: resources("apps", "*"), want: true},
		"all with a subresource":         {spec: resources("apps", "*"), sub: "scale", want: true},
		"all of another group":           {spec: resources("", "*")},
		"all groups":                     {spec: resources("*", "deployments"), want: true},
		"a resource with the same begin": {spec: resources("apps", "deploy")},
	} {
		t.Run(name, func(t *testing.T) {
			req := updating(t, replicas(1), replicas(2))
			req.RequestSubResource, req.SubResource = c.sub, c.sub
			attributes := asked()
			attributes.Subresource = c.sub
			if c.user != "" {
				req.UserInfo.Username, req.UserInfo.Groups = c.user, nil
				attributes.User = data{req, nil}.GetUserInfo()
			}
			verb := c.verb
			if verb == "" {
				verb = "update"
			}
			attributes.Verb = verb
			set := setOf(t, c.spec)
			got, err := set.For(written(t, req)).Authorize(t.Context(), verb, true)
			if err != nil || got.Allowed() != c.want {
				t.Errorf("admission: %+v, %v", got, err)
			}
			if got := set.ConditionsAwareAuthorize(t.Context(), attributes); got.IsAllow() != c.want {
				t.Errorf("authorization: %s", got)
			}
		})
	}
}

// TestK8_DenialsNameTheCondition: the answer names the policies whose conditions would have allowed the verb, or the one that denied it.
func TestK8_DenialsNameTheCondition(t *testing.T) {
	set := setOf(t, about(v1alpha1.PolicyAllow, `object.spec.replicas == 9`))
	in := set.For(written(t, updating(t, replicas(1), replicas(2))))
	verbs := []string{"update", "patch", "create"}
	if len(in.Unmet(verbs)) > 0 {
		t.Error("a condition is not met before it is asked for")
	}
	for _, verb := range verbs {
		if got, err := in.Authorize(t.Context(), verb, true); err != nil || got.By != "" {
			t.Errorf("got %+v, %v", got, err)
		}
	}
	if got := in.Unmet([]string{"create"}); len(got) != 0 {
		t.Errorf("of another verb: %+v", got)
	}
	if got := in.Unmet(verbs); len(got) != 1 || got[0] != (fieldperm.Unmet{Name: "paa", Description: "why"}) {
		t.Errorf("got %+v", got)
	}
	set = setOf(t, about(v1alpha1.PolicyDeny, `object.spec.replicas == 2`))
	got, err := set.For(written(t, updating(t, replicas(1), replicas(2)))).Authorize(t.Context(), "update", true)
	if err != nil || got.By != "ConditionalPolicy" || !strings.Contains(got.Reason, `"fieldperm.dev/paa"`) || !strings.Contains(got.Reason, `"why"`) {
		t.Errorf("got %+v, %v", got, err)
	}
}

// TestK5_TooManyConditions: more conditions than the KEP allows about one request deny if one of them may deny, and else allow nothing.
func TestK5_TooManyConditions(t *testing.T) {
	var allow []v1alpha1.ConditionalPolicySpec
	for range authorizer.MaxConditionsPerMap + 1 {
		allow = append(allow, about(v1alpha1.PolicyAllow, `object.spec.replicas == 2`))
	}
	deny := append([]v1alpha1.ConditionalPolicySpec{about(v1alpha1.PolicyDeny, `object.spec.replicas == 9`)}, allow[1:]...)
	for _, c := range []struct {
		specs []v1alpha1.ConditionalPolicySpec
		want  fieldperm.Outcome
	}{{allow[1:], fieldperm.Allow}, {allow, fieldperm.NoOpinion}, {deny, fieldperm.Deny}} {
		set := setOf(t, c.specs...)
		got, err := set.For(written(t, updating(t, replicas(1), replicas(2)))).Authorize(t.Context(), "update", true)
		if err != nil || got.Outcome != c.want {
			t.Errorf("%d conditions: %+v, %v", len(c.specs), got, err)
		}
		if first := set.ConditionsAwareAuthorize(t.Context(), asked()); first.PossibleDecisions().Has(authorizer.DecisionAllow) != (c.want == fieldperm.Allow) {
			t.Errorf("%d conditions: %s", len(c.specs), first)
		}
	}
}

// TestK4_ObjectsThatCannotBeRead: an object that is converted, not decoded or not there makes a condition fail.
func TestK4_ObjectsThatCannotBeRead(t *testing.T) {
	allow, deny := setOf(t, about(v1alpha1.PolicyAllow, `object != 1`)), setOf(t, about(v1alpha1.PolicyDeny, `object == 1`))
	for name, edit := range map[string]func(*admissionv1.AdmissionRequest){
		"converted": func(r *admissionv1.AdmissionRequest) {
			r.RequestKind = &metav1.GroupVersionKind{Group: "apps", Version: "v1beta1", Kind: "Deployment"}
		},
		"not decoded": func(r *admissionv1.AdmissionRequest) { r.Object.Raw = []byte(`{"kind":`) },
	} {
		req := updating(t, replicas(1), replicas(2))
		if got, err := allow.For(written(t, req)).Authorize(t.Context(), "update", true); err != nil || !got.Allowed() {
			t.Fatalf("%s: unchanged: %+v, %v", name, got, err)
		}
		edit(req)
		if got, err := allow.For(written(t, req)).Authorize(t.Context(), "update", true); err != nil || got.Outcome != fieldperm.NoOpinion {
			t.Errorf("%s: allow: %+v, %v", name, got, err)
		}
		if got, err := deny.For(written(t, req)).Authorize(t.Context(), "update", true); err != nil || got.Outcome != fieldperm.Deny {
			t.Errorf("%s: deny: %+v, %v", name, got, err)
		}
	}
}

// TestK4_ChangesOfADeletion: a deletion has no list of changes. An empty one would make "all changes are …" true.
func TestK4_ChangesOfADeletion(t *testing.T) {
	spec := about(v1alpha1.PolicyAllow, `changes.all(c, false)`)
	spec.Verbs = []string{"update", "patch", "delete"}
	set := setOf(t, spec)
	req := updating(t, replicas(1), nil)
	req.Operation = admissionv1.Delete
	if got, err := set.For(written(t, req)).Authorize(t.Context(), "delete", true); err != nil || got.Outcome != fieldperm.NoOpinion {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err := set.For(written(t, updating(t, replicas(1), replicas(1)))).Authorize(t.Context(), "update", true); err != nil || !got.Allowed() {
		t.Errorf("an update without changes: %+v, %v", got, err)
	}
}

// TestP4_TheEndOfTheContextIsNoDenial: a condition that the end of the context interrupts has no outcome.
func TestP4_TheEndOfTheContextIsNoDenial(t *testing.T) {
	set := setOf(t, about(v1alpha1.PolicyDeny, `[1, 2].all(x, [1, 2].all(y, object.spec.replicas == 3))`))
	in := set.For(written(t, updating(t, replicas(1), replicas(2))))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := in.Authorize(ended, "update", true); err == nil {
		t.Errorf("got %+v", got)
	}
	if got, err := in.Authorize(t.Context(), "update", true); err != nil || got.Outcome != fieldperm.NoOpinion {
		t.Errorf("afterwards: %+v, %v", got, err)
	}
}
