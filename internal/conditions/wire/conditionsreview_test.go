package wire

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

func reviewed() *admissionv1.AdmissionRequest {
	return &admissionv1.AdmissionRequest{
		UID: "1", Operation: admissionv1.Update, Name: "a", Namespace: "b",
		Kind:     metav1.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"},
		Resource: metav1.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"},
		UserInfo: authenticationv1.UserInfo{Username: "jane", Groups: []string{"dev"}},
		Object:   runtime.RawExtension{Raw: []byte(`{"spec":{"replicas":9007199254740993}}`)}, OldObject: runtime.RawExtension{Raw: []byte(`{"spec":{}}`)},
	}
}

// texts returns the conditions of a decision in order.
func texts(d authorizer.ConditionsAwareDecision) []string {
	var out []string
	if d.IsUnion() {
		for _, inner := range d.UnionedDecisions() {
			out = append(out, texts(inner)...)
		}
		return out
	}
	all := d.ConditionsMap()
	for effect, list := range map[string]func(func(authorizer.Condition) bool){"deny": all.DenyConditions(), "none": all.NoOpinionConditions(), "allow": all.AllowConditions()} {
		list(func(c authorizer.Condition) bool {
			out = append(out, effect+" "+c.GetID()+" "+c.GetType()+" "+c.GetCondition()+" "+c.GetDescription())
			return true
		})
	}
	return out
}

func TestK3_AConditionsReviewIsReadAsItWasWritten(t *testing.T) {
	for _, d := range dialects {
		body, err := d.AskConditions(ConditionsRequest{mixed, reviewed()})
		if err != nil {
			t.Fatalf("%s: %v", d, err)
		}
		got, err := d.ReadConditionsRequest(body)
		if err != nil {
			t.Fatalf("%s: %v\n%s", d, err, body)
		}
		if !reflect.DeepEqual(got.Admission, reviewed()) {
			t.Errorf("%s: admission request\n got %+v\nwant %+v", d, got.Admission, reviewed())
		}
		have, want := map[string]bool{}, map[string]bool{}
		for _, text := range texts(got.Decision) {
			have[text] = true
		}
		for _, text := range texts(mixed) {
			want[text] = true
		}
		if !reflect.DeepEqual(have, want) || len(want) != 3 {
			t.Errorf("%s: conditions\n got %v\nwant %v", d, have, want)
		}
		for _, other := range dialects {
			if _, err := other.ReadConditionsRequest(body); (err == nil) != (other == d) {
				t.Errorf("%s read as %s: error %v", d, other, err)
			}
		}
	}
}

func TestK3_AnAnswerIsReadAsItWasWritten(t *testing.T) {
	failure := errors.New("broken")
	for _, d := range dialects {
		for _, want := range []authorizer.ConditionsAwareDecision{
			authorizer.ConditionsAwareDecisionAllow("yes", nil), authorizer.ConditionsAwareDecisionDeny("no", nil), authorizer.ConditionsAwareDecisionNoOpinion("", failure),
			mixed,
		} {
			body, err := d.AnswerConditions("1", want)
			if err != nil {
				t.Fatalf("%s: %v", d, err)
			}
			got, err := d.ReadConditionsAnswer(body, "1")
			if err != nil {
				t.Fatalf("%s: %v\n%s", d, err, body)
			}
			// What still has conditions may deny, so it denies.
			if got.IsAllow() != want.IsAllow() || got.IsDeny() != (want.IsDeny() || !want.IsUnconditional()) || (want.Error() != nil) != (got.Error() != nil) {
				t.Errorf("%s: got %+v from %s", d, got, body)
			}
		}
	}
	body, err := ConditionalDecision.AnswerConditions("1", authorizer.ConditionsAwareDecisionAllow("", nil))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := ConditionalDecision.ReadConditionsAnswer(body, "2"); err == nil || !got.IsDeny() {
		t.Errorf("the answer to another request: got %+v, %v", got, err)
	}
}

func TestK3_BadAnswersToAConditionsReviewAreErrors(t *testing.T) {
	const head = `{"apiVersion":"authorization.k8s.io/v1alpha1","kind":"AuthorizationConditionsReview","response":`
	for name, c := range map[string]struct {
		of   Dialect
		body string
		want string
	}{
		"nothing":              {ConditionSetChain, ``, "is missing"},
		"no answer":            {ConditionSetChain, `{"apiVersion":"authorization.k8s.io/v1alpha1","kind":"AuthorizationConditionsReview"}`, "response: is missing"},
		"another kind":         {ConditionSetChain, `{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","response":{"allowed":true}}`, "is not"},
		"null":                 {ConditionSetChain, head + `null}`, "is null"},
		"empty":                {ConditionSetChain, head + `{}}`, "no field allowed"},
		"both":                 {ConditionSetChain, head + `{"allowed":true,"denied":true}}`, "allowed and denied"},
		"twice":                {ConditionSetChain, head + `{"allowed":false,"allowed":true}}`, "duplicate"},
		"other case":           {ConditionSetChain, head + `{"Allowed":true}}`, "no field allowed"},
		"other dialect":        {ConditionSetChain, head + `{"uid":"1","decision":{"type":"Allow","allow":{}}}}`, "configure the dialect"},
		"draft, plain":         {ConditionalDecision, head + `{"allowed":true}}`, "configure the dialect"},
		"draft, other request": {ConditionalDecision, head + `{"uid":"2","decision":{"type":"Allow","allow":{}}}}`, "uid"},
		"draft, unknown type":  {ConditionalDecision, head + `{"uid":"1","decision":{"type":"Maybe"}}}`, "not known"},
		"draft, conditions":    {ConditionalDecision, head + `{"uid":"1","decision":{"type":"ConditionsMap","conditionsMap":{"allowConditions":[{"id":"a","condition":"x"}]}}}}`, ""},
		"conditions":           {ConditionSetChain, head + `{"allowed":false,"conditionSetChain":[{"authorizerName":"a","allowed":true}]}}`, "no answer"},
		"denied in the draft":  {ConditionSetChain, head + `{"allowed":true,"decision":{"type":"Deny","deny":{}}}}`, "of another dialect"},
		"draft with allowed":   {ConditionalDecision, head + `{"uid":"1","allowed":false,"decision":{"type":"Allow","allow":{}}}}`, "of another dialect"},
		"draft with denied":    {ConditionalDecision, head + `{"uid":"1","denied":true,"decision":{"type":"Allow","allow":{}}}}`, "of another dialect"},
		"draft of a status":    {ConditionSetChain, head + `{"allowed":true,"conditionalDecision":{"type":"ConditionsMap"}}}`, "no answer"},
		"uid of another":       {ConditionsChain, head + `{"allowed":true,"uid":"2"}}`, "response.uid"},
		"no dialect":           {None, head + `{"allowed":true}}`, "not configured"},
		"too long":             {ConditionSetChain, head + `{"allowed":true}}` + strings.Repeat(" ", maxBytes), "bytes"},
	} {
		got, err := c.of.ReadConditionsAnswer([]byte(c.body), "1")
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
		if !got.IsDeny() {
			t.Errorf("%s: the decision beside the error is %+v, want Deny", name, got)
		}
	}
}

func TestK3_BadConditionsReviewsAreErrors(t *testing.T) {
	var chain authorizer.ConditionsAwareDecisionUnion
	chain.Add("a", mixed)
	chain.Add("b", mixed)
	two := chain.ToDecision()
	if _, err := ConditionsChain.AskConditions(ConditionsRequest{two, reviewed()}); err == nil {
		t.Error("the first text took the conditions of two authorizers")
	}
	for _, d := range dialects {
		if _, err := d.AskConditions(ConditionsRequest{authorizer.ConditionsAwareDecisionAllow("", nil), reviewed()}); err == nil {
			t.Errorf("%s: a decision without conditions was written", d)
		}
		if _, err := d.AskConditions(ConditionsRequest{mixed, nil}); err == nil {
			t.Errorf("%s: a review without objects was written", d)
		}
		body, err := d.AskConditions(ConditionsRequest{mixed, reviewed()})
		if err != nil {
			t.Fatal(err)
		}
		for name, edit := range map[string][2]string{
			"no uid":        {`"uid":"1"`, `"uid":""`},
			"no operation":  {`"operation":"UPDATE"`, `"operation":""`},
			"unknown field": {`"id":"a"`, `"id":"a","unless":"x"`},
			"bad id":        {`"id":"a"`, `"id":"not an id"`},
			"duplicate ids": {`"id":"a"`, `"id":"d"`},
		} {
			bad := strings.Replace(string(body), edit[0], edit[1], 1)
			if bad == string(body) {
				t.Fatalf("%s: %s: is not in %s", d, name, body)
			}
			if _, err := d.ReadConditionsRequest([]byte(bad)); err == nil {
				t.Errorf("%s: %s: was read", d, name)
			}
		}
	}
}

// TestK3_ARequestMayHaveLargeObjects: the caller of ReadConditionsRequest limits the body. Only the conditions have a limit of their own.
func TestK3_ARequestMayHaveLargeObjects(t *testing.T) {
	for _, d := range dialects {
		of := reviewed()
		of.Object.Raw = []byte(`{"data":"` + strings.Repeat("x", maxBytes) + `"}`)
		body, err := d.AskConditions(ConditionsRequest{Decision: mixed, Admission: of})
		if err != nil {
			t.Fatal(err)
		}
		asked, err := d.ReadConditionsRequest(body)
		if err != nil || len(asked.Admission.Object.Raw) != len(of.Object.Raw) {
			t.Errorf("%s: %v", d, err)
		}
		large := strings.Replace(string(body), `"id":"a"`, `"id":"a"`+strings.Repeat(" ", maxBytes), 1)
		if _, err := d.ReadConditionsRequest([]byte(large)); err == nil || !strings.Contains(err.Error(), "bytes") {
			t.Errorf("%s: large conditions: %v", d, err)
		}
	}
}

// FuzzK3_ConditionsReview: what is read as a request has conditions and can be written and read again; what is read as an answer has none, and
// allows nothing unless it says so.
func FuzzK3_ConditionsReview(f *testing.F) {
	for i, d := range dialects {
		for _, decision := range []authorizer.ConditionsAwareDecision{chained, nested, mixed, mayAllow} {
			if body, err := d.AskConditions(ConditionsRequest{Decision: decision, Admission: &admissionv1.AdmissionRequest{
				UID: "1", Operation: admissionv1.Update, Resource: metav1.GroupVersionResource{Version: "v1", Resource: "pods"},
			}}); err == nil {
				f.Add(i, string(body))
			}
		}
		body, err := d.AnswerConditions("1", authorizer.ConditionsAwareDecisionAllow("yes", nil))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(i, string(body))
	}
	f.Fuzz(func(t *testing.T, i int, body string) {
		d := dialects[(i%len(dialects)+len(dialects))%len(dialects)]
		if got, err := d.ReadConditionsAnswer([]byte(body), "1"); !got.IsUnconditional() || err != nil && !got.IsDeny() ||
			got.IsAllow() && !strings.Contains(body, "llow") && !strings.Contains(body, `\u`) {
			t.Fatalf("%s: %s, %v", body, got, err)
		}
		asked, err := d.ReadConditionsRequest([]byte(body))
		if err != nil {
			return
		}
		if asked.Decision.IsUnconditional() || asked.Admission == nil {
			t.Fatalf("%s: %s", body, asked.Decision)
		}
		again, err := d.AskConditions(asked)
		if err != nil {
			return // A decision that a dialect reads may be one that it does not write.
		}
		second, err := d.ReadConditionsRequest(again)
		if err != nil || second.Admission.UID != asked.Admission.UID || second.Decision.PossibleDecisions().Has(authorizer.DecisionAllow) && !asked.Decision.PossibleDecisions().Has(authorizer.DecisionAllow) {
			t.Fatalf("%s: %s, then %s %v", body, asked.Decision, second.Decision, err)
		}
	})
}
