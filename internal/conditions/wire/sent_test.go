package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// sets are sets of the merged text, with members in an order and with values that fieldperm does not write.
const (
	mergedDeny   = `{"conditions":[{"effect":"Deny","id":"d","description":"","condition":"<x>"}],"conditionsType":"example.com/x","authorizerName":"a","failureMode":"Deny"}`
	mergedNested = `{"conditionSetChain":[{"failureMode":"NoOpinion","conditions":[{"id":"b","condition":"y","effect":"Allow"}],"authorizerName":"c"}],"authorizerName":"b"}`
	firstAllow   = `{"failureMode":"Deny","conditions":[{"type":"example.com/x","id":"a","condition":"x","effect":"Allow"}],"authorizerName":"a"}`
	draftAllow   = `{"conditionsMap":{"noOpinionConditions":[],"allowConditions":[{"description":"","id":"a"}]},"type":"ConditionsMap"}`
)

// TestK3_ConditionsAreSentBackUnmodified: as the peer sent them, its failureMode included.
func TestK3_ConditionsAreSentBackUnmodified(t *testing.T) {
	for name, c := range map[string]struct {
		d            Dialect
		status, want string
	}{
		"first text":  {ConditionsChain, `{"allowed":false,"conditionsChain":[` + firstAllow + `]}`, `"conditionSet":` + firstAllow},
		"merged text": {ConditionSetChain, `{"allowed":false,"conditionSetChain":[` + mergedDeny + `]}`, `"conditionSetChain":[` + mergedDeny + `]`},
		"sets in sets": {ConditionSetChain, `{"allowed":false,"conditionSetChain":[` + mergedDeny + `,` + mergedNested + `]}`,
			`{"failureMode":"NoOpinion","conditions":[{"id":"b","condition":"y","effect":"Allow"}],"authorizerName":"c"}`},
		"draft": {ConditionalDecision, `{"allowed":false,"conditionalDecision":` + draftAllow + `}`, `"conditionsMap":{"noOpinionConditions":[],"allowConditions":[{"description":"","id":"a"}]}`},
	} {
		decision, err := c.d.ReadStatus(whole(c.status))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		body, err := c.d.AskConditions(ConditionsRequest{decision, reviewed()})
		if err != nil || !bytes.Contains(body, []byte(c.want)) {
			t.Errorf("%s: %v: sent %s, want %s", name, err, body, c.want)
		}
		if _, err := c.d.ReadConditionsRequest(body); err != nil {
			t.Errorf("%s: cannot be read again: %v", name, err)
		}
		// In another dialect the conditions are written anew.
		for _, other := range dialects {
			if body, err := other.AskConditions(ConditionsRequest{decision, reviewed()}); other != c.d && err == nil {
				if _, err := other.ReadConditionsRequest(body); err != nil {
					t.Errorf("%s in %s: %v\n%s", name, other, err, body)
				}
			}
		}
	}
}

// TestK3_AFailureModeOfAPeerDenies: if it is Deny, also where no condition may deny.
func TestK3_AFailureModeOfAPeerDenies(t *testing.T) {
	for mode, want := range map[string]authorizer.Decision{"Deny": authorizer.DecisionDeny, "NoOpinion": authorizer.DecisionNoOpinion, "": authorizer.DecisionNoOpinion} {
		for field, d := range map[string]Dialect{"conditionsChain": ConditionsChain, "conditionSetChain": ConditionSetChain} {
			got, err := d.ReadStatus(whole(fmt.Sprintf(
				`{"allowed":false,%q:[{"authorizerName":"b","conditions":[{"id":"x","effect":"Allow","condition":"c"}]},{"authorizerName":"a","failureMode":%q,"conditions":[{"id":"a","effect":"Allow","condition":"c"}]}]}`, field, mode)))
			if err != nil || FailureDecision(got) != want {
				t.Errorf("%s, mode %q: %v %v, want %v", d, mode, FailureDecision(got), err, want)
			}
		}
	}
	if FailureDecision(mayDeny) != authorizer.DecisionDeny || FailureDecision(authorizer.ConditionsAwareDecision{}) != authorizer.DecisionDeny {
		t.Error("a decision that may deny is no opinion")
	}
}

// TestK3_ServedConditionsThatMayDenyHaveTheFailureModeDeny: a caller that cannot evaluate them must not go on.
func TestK3_ServedConditionsThatMayDenyHaveTheFailureModeDeny(t *testing.T) {
	for _, d := range []Dialect{ConditionsChain, ConditionSetChain} {
		for name, c := range map[string]struct {
			decision authorizer.ConditionsAwareDecision
			want     bool
		}{"may deny": {mixed, true}, "may allow": {mayAllow, false}} {
			status, err := d.Status(c.decision, true)
			if err != nil || strings.Contains(string(status), `"failureMode":"Deny"`) != c.want {
				t.Errorf("%s: %s: %s %v", d, name, status, err)
			}
		}
	}
}

// TestP4_AnErrorBesideConditionsIsKept: an authorizer of the peer failed, and might have allowed the request.
func TestP4_AnErrorBesideConditionsIsKept(t *testing.T) {
	for _, text := range []string{`"conditionSetChain":[` + mergedDeny + `]`, `"conditionSetChain":[` + mergedNested + `]`} {
		got, err := ConditionSetChain.ReadStatus(whole(`{"allowed":false,"evaluationError":"an authorizer is away",` + text + `}`))
		if err != nil || Failure(got) == nil || Failure(got).Error() != "an authorizer is away" {
			t.Errorf("%s: %v, %v", text, Failure(got), err)
		}
		if got, err = ConditionSetChain.ReadStatus(whole(`{"allowed":false,` + text + `}`)); err != nil || Failure(got) != nil {
			t.Errorf("%s: %v, %v", text, Failure(got), err)
		}
	}
}

// TestK3_OnlyAReviewIsAnAnswer: a document of another kind or version says nothing about the question.
func TestK3_OnlyAReviewIsAnAnswer(t *testing.T) {
	for name, head := range map[string]string{
		"no kind":         `{`,
		"no version":      `{"kind":"SubjectAccessReview",`,
		"Status":          `{"apiVersion":"v1","kind":"Status",`,
		"TokenReview":     `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview",`,
		"another version": `{"apiVersion":"authorization.k8s.io/v1beta1","kind":"SubjectAccessReview",`,
	} {
		if got, err := ConditionSetChain.ReadStatus([]byte(head + `"status":{"allowed":true}}`)); err == nil || !got.IsDeny() {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestK3_DecisionsInDecisionsAreLimited: the cost of a chain grows with the square of their number.
func TestK3_DecisionsInDecisionsAreLimited(t *testing.T) {
	list := func(n int, format string) string {
		all := make([]string, n)
		for i := range all {
			all[i] = fmt.Sprintf(format, i)
		}
		return strings.Join(all, ",")
	}
	const last = `{"id":"a","effect":"Allow","condition":"x"}`
	for name, c := range map[string]struct {
		d      Dialect
		status func(n int) string
	}{
		"first text": {ConditionsChain, func(n int) string {
			return `{"allowed":false,"conditionsChain":[` + list(n, `{"authorizerName":"a%d","conditions":[`+last+`]}`) + `]}`
		}},
		"merged text": {ConditionSetChain, func(n int) string {
			return `{"allowed":false,"conditionSetChain":[` + list(n, `{"authorizerName":"a%d","conditions":[`+last+`]}`) + `]}`
		}},
		"sets in sets": {ConditionSetChain, func(n int) string {
			return `{"allowed":false,"conditionSetChain":[{"authorizerName":"a","conditionSetChain":[` + list(n-1, `{"authorizerName":"a%d","conditions":[`+last+`]}`) + `]}]}`
		}},
		"draft": {ConditionalDecision, func(n int) string {
			return `{"allowed":false,"conditionalDecision":{"type":"Union","union":[` + list(n-1, `{"authorizerName":"n%d","decision":{"type":"NoOpinion","noOpinion":{}}}`) +
				`,{"authorizerName":"a","decision":` + draftAllow + `}]}}`
		}},
	} {
		if _, err := c.d.ReadStatus(whole(c.status(maxDecisions))); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		got, err := c.d.ReadStatus(whole(c.status(maxDecisions + 1)))
		if err == nil || !strings.Contains(err.Error(), "decisions: send fewer") || !got.IsDeny() {
			t.Errorf("%s: one too many: %v", name, err)
		}
	}
	// The same holds for requests.
	body, err := ConditionalDecision.AskConditions(ConditionsRequest{mayAllow, reviewed()})
	if err != nil {
		t.Fatal(err)
	}
	var request struct {
		Request struct{ Decision json.RawMessage }
	}
	if err := json.Unmarshal(body, &request); err != nil {
		t.Fatal(err)
	}
	many := `{"type":"Union","union":[` + list(maxDecisions, `{"authorizerName":"n%d","decision":{"type":"NoOpinion","noOpinion":{}}}`) + `,{"authorizerName":"a","decision":` + draftAllow + `}]}`
	body = bytes.Replace(body, request.Request.Decision, []byte(many), 1)
	if _, err := ConditionalDecision.ReadConditionsRequest(body); err == nil || !strings.Contains(err.Error(), "decisions: send fewer") {
		t.Errorf("a request: %v", err)
	}
}

// TestK3_TextsOfPeersAreShortened: they are kept, and shown to users.
func TestK3_TextsOfPeersAreShortened(t *testing.T) {
	long := strings.Repeat("r", 1<<20)
	for _, d := range dialects {
		got, err := d.ReadStatus(whole(`{"allowed":false,"reason":"` + long + `","evaluationError":"` + long + `"}`))
		if err != nil || len(got.Reason()) > maxText || len(got.Error().Error()) > maxText {
			t.Errorf("%s: %d and %d bytes, %v", d, len(got.Reason()), len(got.Error().Error()), err)
		}
	}
	answer := []byte(`{"apiVersion":"authorization.k8s.io/v1alpha1","kind":"AuthorizationConditionsReview","response":{"uid":"1","decision":{"type":"Deny","deny":{"reason":"` + long + `","evaluationError":"` + long + `"}}}}`)
	if got, err := ConditionalDecision.ReadConditionsAnswer(answer, "1"); err != nil || len(got.Reason()) > maxText || len(got.Error().Error()) > maxText {
		t.Errorf("an answer: %d bytes, %v", len(got.Reason()), err)
	}
}
