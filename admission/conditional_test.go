package admission

import (
	"context"
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	apiserveradmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/test/schematest"
)

func conditional(t *testing.T, h *holder) *ConditionalAuthorizer {
	return &ConditionalAuthorizer{
		Allowed:    authorizeReviewer(h).Allowed,
		Authorizer: func(*authorizationv1.SubjectAccessReviewSpec) fieldperm.Authorizer { return h },
		Reviewer:   reviewer(schematest.Schema(t), h),
	}
}

func attributes(verb, resource, subresource string) authorizer.AttributesRecord {
	return authorizer.AttributesRecord{
		User: &user.DefaultInfo{Name: "alice"}, Verb: verb, APIGroup: "apps", APIVersion: "v1", Resource: resource, Subresource: subresource,
		Namespace: "shop", Name: "web", ResourceRequest: true,
	}
}

// deployments returns the data of a write of a Deployment. A nil object is absent.
func deployments(operation apiserveradmission.Operation, object, old runtime.Object) authorizer.ConditionsData {
	gvk := runtimeschema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	return apiserveradmission.NewAttributesRecord(object, old, gvk, "shop", "web", gvk.GroupVersion().WithResource("deployments"), "", operation, nil, false, &user.DefaultInfo{Name: "alice"})
}

func deployment(t *testing.T, replicas int64) *unstructured.Unstructured {
	t.Helper()
	out := &unstructured.Unstructured{}
	if err := out.UnmarshalJSON([]byte(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop"}}`)); err != nil {
		t.Fatal(err)
	}
	if err := unstructured.SetNestedField(out.Object, replicas, "spec", "replicas"); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestK2_OnlyHoldersOfTheMarkerGetTheCondition(t *testing.T) {
	genericOnly := attributes("update", "deployments", "")
	genericOnly.User = &user.DefaultInfo{Name: "alice", Extra: map[string][]string{strings.ToUpper(GenericOnlyKey): {""}}}
	noUser := attributes("update", "deployments", "")
	noUser.User = nil
	path := attributes("update", "deployments", "")
	path.ResourceRequest = false
	for name, c := range map[string]struct {
		attributes authorizer.Attributes
		holds      string
		want       bool
	}{
		"create":                 {attributes("create", "deployments", ""), "granular", true},
		"update":                 {attributes("update", "deployments", ""), "granular get", true},
		"patch":                  {attributes("patch", "deployments", ""), "granular get", true},
		"subresource":            {attributes("patch", "deployments", "scale"), "granular get", true},
		"no marker":              {attributes("update", "deployments", ""), "granular:*", false},
		"no get":                 {attributes("update", "deployments", ""), "granular", false},
		"no get of the scale":    {attributes("patch", "deployments", "scale"), "granular", false},
		"delete":                 {attributes("delete", "deployments", ""), "granular", false},
		"deletecollection":       {attributes("deletecollection", "deployments", ""), "granular", false},
		"get":                    {attributes("get", "deployments", ""), "granular", false},
		"other resource":         {attributes("update", "daemonsets", ""), "granular", false},
		"other subresource":      {attributes("create", "deployments", "exec"), "granular", false},
		"own check":              {genericOnly, "granular", false},
		"no user":                {noUser, "granular", false},
		"request of no resource": {path, "granular", false},
	} {
		authz := conditional(t, holding(strings.Fields(c.holds)...))
		decision := authz.ConditionsAwareAuthorize(t.Context(), c.attributes)
		if decision.IsConditionsMap() != c.want || !c.want && !decision.IsNoOpinion() || decision.PossibleDecisions().Has(authorizer.DecisionDeny) {
			t.Errorf("%s: %s", name, decision)
		}
		if d, _, err := authz.Authorize(t.Context(), c.attributes); d != authorizer.DecisionNoOpinion || err != nil {
			t.Errorf("%s: a caller without conditions gets %s %v", name, d, err)
		}
	}
	if d := (&ConditionalAuthorizer{}).ConditionsAwareAuthorize(t.Context(), attributes("update", "deployments", "")); !d.IsNoOpinion() {
		t.Errorf("zero: %s", d)
	}
	for _, verb := range []string{"granular", "get"} {
		failing := holding("granular")
		failing.fails = map[string]error{verb: errors.New("unreachable")}
		if d := conditional(t, failing).ConditionsAwareAuthorize(t.Context(), attributes("update", "deployments", "")); !d.IsNoOpinion() || d.Error() == nil {
			t.Errorf("an authorizer that fails for %s: %s", verb, d)
		}
	}
	if d := conditional(t, holding("granular")).ConditionsAwareAuthorize(t.Context(), attributes("update", "deployments", "")); !strings.Contains(d.Reason(), `the user lacks "get" on deployments.apps "web"`) {
		t.Errorf("A7: %s", d)
	}
}

// TestK2_TheConditionIsTheReview: with the objects, the decision is the one that the reviewer makes of the same request.
func TestK2_TheConditionIsTheReview(t *testing.T) {
	one, two := deployment(t, 1), deployment(t, 2)
	for name, c := range map[string]struct {
		holds  []string
		data   authorizer.ConditionsData
		want   authorizer.Decision
		reason string
	}{
		"covered":                               {[]string{"granular:scale"}, deployments(apiserveradmission.Update, two, one), authorizer.DecisionAllow, ""},
		"not covered":                           {[]string{"granular:labels"}, deployments(apiserveradmission.Update, two, one), authorizer.DecisionNoOpinion, `User "alice" may not change .spec.replicas: needs any one of granular:scale`},
		"no change":                             {nil, deployments(apiserveradmission.Update, one, one), authorizer.DecisionAllow, ""},
		"created":                               {[]string{"granular:*"}, deployments(apiserveradmission.Create, two, nil), authorizer.DecisionAllow, ""},
		"created without the verb of creations": {[]string{"granular:specification"}, deployments(apiserveradmission.Create, two, nil), authorizer.DecisionNoOpinion, "may not create it: needs any one of granular:creation"},
		"created with a field that is not covered": {[]string{"granular:creation", "granular:labels"}, deployments(apiserveradmission.Create, two, nil), authorizer.DecisionNoOpinion, "may not change"},
		"deleted": {[]string{"granular:*"}, deployments(apiserveradmission.Delete, nil, one), authorizer.DecisionNoOpinion, `do not cover operation "DELETE"`},
		"connect": {[]string{"granular:*"}, deployments(apiserveradmission.Connect, two, nil), authorizer.DecisionNoOpinion, `do not cover operation "CONNECT"`},
	} {
		authz := conditional(t, holding(append(c.holds, "granular", "get")...))
		decision := authz.ConditionsAwareAuthorize(t.Context(), attributes("update", "deployments", ""))
		got, reason, err := authz.EvaluateConditions(t.Context(), decision, c.data)
		if got != c.want || err != nil || !strings.Contains(reason, c.reason) {
			t.Errorf("%s: %s %q %v", name, got, reason, err)
		}
		direct := authorizer.PartiallyEvaluateConditionsAwareDecision(t.Context(), decision, c.data, nil)
		if direct.IsAllow() != (c.want == authorizer.DecisionAllow) || !direct.IsUnconditional() {
			t.Errorf("%s: by itself the condition is %s", name, direct)
		}
	}
}

func TestK2_AnErrorIsNoAllow(t *testing.T) {
	one, two := deployment(t, 1), deployment(t, 2)
	failing := holding("granular", "get")
	failing.fails = map[string]error{"granular:*": errors.New("unreachable")}
	noSchema := conditional(t, holding("granular", "granular:*", "get"))
	noSchema.Reviewer = reviewer(nil, holding("granular", "granular:*"))
	for name, c := range map[string]struct {
		authz *ConditionalAuthorizer
		data  authorizer.ConditionsData
		want  string
	}{
		"no schema":         {noSchema, deployments(apiserveradmission.Update, two, one), "is not loaded yet"},
		"authorizer fails":  {conditional(t, failing), deployments(apiserveradmission.Update, two, one), "unreachable"},
		"no old object":     {conditional(t, holding("granular", "granular:*", "get")), deployments(apiserveradmission.Update, two, nil), "oldObject is missing"},
		"objects are typed": {conditional(t, holding("granular", "granular:*", "get")), deployments(apiserveradmission.Update, &appsv1.Deployment{}, &appsv1.Deployment{}), "set Encode"},
	} {
		decision := c.authz.ConditionsAwareAuthorize(t.Context(), attributes("update", "deployments", ""))
		got, _, err := c.authz.EvaluateConditions(t.Context(), decision, c.data)
		if got != authorizer.DecisionNoOpinion || err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %s %v", name, got, err)
		}
	}
}

// TestK2_OnlyItsOwnConditionIsEvaluated: a caller that changes the condition, or sends others, gets no Allow.
func TestK2_OnlyItsOwnConditionIsEvaluated(t *testing.T) {
	own := authorizer.GenericCondition{ID: GranularCondition, Type: GranularCondition}
	list := func(c ...authorizer.Condition) []authorizer.Condition { return c }
	other, noType, text := own, own, own
	other.ID, noType.Type, text.Condition = "example.com/granular", "", "true"
	yes := authorizer.GenericCondition{ID: "yes", EvaluateFunc: func(context.Context, authorizer.ConditionsData) authorizer.ConditionEvaluationResult {
		return authorizer.ConditionEvaluationResultBoolean(true)
	}}
	var union authorizer.ConditionsAwareDecisionUnion
	union.Add("a", authorizer.ConditionsAwareDecisionConditionsMap(nil, nil, list(own)))
	data := deployments(apiserveradmission.Update, deployment(t, 2), deployment(t, 1))
	for name, c := range map[string]struct {
		decision authorizer.ConditionsAwareDecision
		want     authorizer.Decision
		err      bool
	}{
		"received back": {authorizer.ConditionsAwareDecisionConditionsMap(nil, nil, list(own)), authorizer.DecisionAllow, false},
		"another id":    {authorizer.ConditionsAwareDecisionConditionsMap(nil, nil, list(other)), authorizer.DecisionNoOpinion, true},
		"no type":       {authorizer.ConditionsAwareDecisionConditionsMap(nil, nil, list(noType)), authorizer.DecisionNoOpinion, true},
		"with a text":   {authorizer.ConditionsAwareDecisionConditionsMap(nil, nil, list(text)), authorizer.DecisionNoOpinion, true},
		"one more":      {authorizer.ConditionsAwareDecisionConditionsMap(nil, nil, list(yes, own)), authorizer.DecisionNoOpinion, true},
		"as a denial":   {authorizer.ConditionsAwareDecisionConditionsMap(list(own), nil, nil), authorizer.DecisionDeny, true},
		"a denial too":  {authorizer.ConditionsAwareDecisionConditionsMap(list(yes), nil, list(own)), authorizer.DecisionDeny, true},
		"allowed":       {authorizer.ConditionsAwareDecisionAllow("", nil), authorizer.DecisionNoOpinion, true},
		"union":         {union.ToDecision(), authorizer.DecisionNoOpinion, true},
		"zero":          {authorizer.ConditionsAwareDecision{}, authorizer.DecisionDeny, true},
	} {
		got, _, err := conditional(t, holding("granular", "granular:scale")).EvaluateConditions(t.Context(), c.decision, data)
		if got != c.want || (err != nil) != c.err {
			t.Errorf("%s: %s %v", name, got, err)
		}
	}
}

func TestK2_TheDescriptionListsTheVerbs(t *testing.T) {
	for name, c := range map[string]struct {
		held []string
		all  bool
		want string
	}{
		"some":    {[]string{"granular:scale"}, false, ": granular:scale, others"},
		"all":     {[]string{"granular:label(a)", "granular:scale"}, true, ": granular:label(a), granular:scale"},
		"none":    {nil, true, ": it holds none"},
		"unknown": {nil, false, "of the user"},
		"many":    {[]string{strings.Repeat("x", 2000)}, true, "…"},
	} {
		authz := conditional(t, holding("granular"))
		authz.Verbs = func(context.Context, authorizer.Attributes) ([]string, bool) { return c.held, c.all }
		for condition := range authz.ConditionsAwareAuthorize(t.Context(), attributes("update", "deployments", "")).ConditionsMap().AllowConditions() {
			if text := condition.GetDescription(); !strings.HasPrefix(text, "each changed field is covered") || !strings.HasSuffix(text, c.want) || len(text) > maxDescription {
				t.Errorf("%s: %q", name, text)
			}
		}
	}
}

// TestK2_TheGenericPermissionIsOfOtherAuthorizers: they decide on it in their order in the chain.
func TestK2_TheGenericPermissionIsOfOtherAuthorizers(t *testing.T) {
	one, two := deployment(t, 1), deployment(t, 2)
	for _, c := range []struct {
		holds []string
		want  authorizer.Decision
	}{
		{[]string{"update", "granular", "get"}, authorizer.DecisionNoOpinion},
		{[]string{"update", "granular", "granular:scale", "get"}, authorizer.DecisionAllow},
	} {
		authz := conditional(t, holding(c.holds...))
		decision := authz.ConditionsAwareAuthorize(t.Context(), attributes("update", "deployments", ""))
		if got, reason, err := authz.EvaluateConditions(t.Context(), decision, deployments(apiserveradmission.Update, two, one)); got != c.want || err != nil {
			t.Errorf("%q: %s %q %v", c.holds, got, reason, err)
		}
	}
}
