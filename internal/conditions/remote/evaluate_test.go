package remote

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/fieldperm/fieldperm/internal/conditions/wire"
)

// evaluation is an answer to an AuthorizationConditionsReview.
func evaluation(response string) string {
	return `{"apiVersion":"authorization.k8s.io/v1alpha1","kind":"AuthorizationConditionsReview","response":` + response + `}`
}

// one returns a status with one condition of an effect, and an answer with a decision, in a dialect.
func one(d wire.Dialect, effect, decision string) (status, answer string) {
	plain := map[string]string{"Allow": `{"allowed":true}`, "Deny": `{"allowed":false,"denied":true}`, "NoOpinion": `{"allowed":false}`}[decision]
	if d == wire.ConditionsChain {
		return `{"allowed":false,"conditionsChain":[{"authorizerName":"a","conditions":[{"id":"c","effect":"` + effect + `","condition":"x"}]}]}`, plain
	}
	if d == wire.ConditionSetChain {
		return `{"allowed":false,"conditionSetChain":[{"authorizerName":"a","conditions":[{"id":"c","effect":"` + effect + `","condition":"x"}]}]}`, plain
	}
	list := strings.ToLower(effect[:1]) + effect[1:]
	member := strings.ToLower(decision[:1]) + decision[1:]
	return `{"allowed":false,"conditionalDecision":{"type":"ConditionsMap","conditionsMap":{"` + list + `Conditions":[{"id":"c"}]}}}`,
		`{"uid":"1","decision":{"type":"` + decision + `","` + member + `":{}}}`
}

// TestK3_AnImpossibleEvaluationIsNotAccepted: conditions that only deny cannot become Allow, and those that only allow cannot become Deny.
func TestK3_AnImpossibleEvaluationIsNotAccepted(t *testing.T) {
	for _, dialect := range dialects {
		for _, c := range []struct {
			effect, decision string
			want             authorizer.Decision
			fails            bool
		}{
			{"Deny", "Allow", authorizer.DecisionDeny, true},
			{"Allow", "Deny", authorizer.DecisionNoOpinion, true},
			{"Deny", "Deny", authorizer.DecisionDeny, false},
			{"Allow", "Allow", authorizer.DecisionAllow, false},
			{"Deny", "NoOpinion", authorizer.DecisionNoOpinion, false},
			{"Allow", "NoOpinion", authorizer.DecisionNoOpinion, false},
		} {
			status, answer := one(dialect, c.effect, c.decision)
			a, _ := serve(t, dialect, func(config *Config, p *peer) {
				config.OnError = authorizer.DecisionNoOpinion
				p.answer["/authorize"], p.answer["/conditions"] = text(http.StatusOK, review(`"status":`+status)), text(http.StatusOK, evaluation(answer))
			})
			got, _, err := a.EvaluateConditions(t.Context(), a.ConditionsAwareAuthorize(t.Context(), attributes("jane")), object("dev"))
			if got != c.want || (err != nil) != c.fails {
				t.Errorf("%s: a condition with effect %s, and the answer %s: got %v, %v, want %v", dialect, c.effect, c.decision, got, err, c.want)
			}
		}
	}
}

// TestK3_TheFailureModeOfASetCounts: the set denies if it cannot be evaluated, whatever the failure policy.
func TestK3_TheFailureModeOfASetCounts(t *testing.T) {
	for mode, want := range map[string]authorizer.Decision{"Deny": authorizer.DecisionDeny, "NoOpinion": authorizer.DecisionNoOpinion} {
		for name, answer := range map[string]http.HandlerFunc{
			"away":         text(http.StatusBadRequest, ``),
			"cannot tell":  text(http.StatusOK, evaluation(`{"allowed":false,"evaluationError":"no such field"}`)),
			"not possible": text(http.StatusOK, evaluation(`{"allowed":false,"denied":true}`)),
		} {
			set := `{"failureMode":"` + mode + `","authorizerName":"a","conditions":[{"id":"c","effect":"Allow","condition":"x"}]}`
			sent := ""
			a, _ := serve(t, wire.ConditionSetChain, func(c *Config, p *peer) {
				c.OnError = authorizer.DecisionNoOpinion
				p.answer["/authorize"] = text(http.StatusOK, review(`"status":{"allowed":false,"conditionSetChain":[`+set+`]}`))
				p.answer["/conditions"] = func(w http.ResponseWriter, r *http.Request) {
					body, _ := io.ReadAll(r.Body)
					sent = string(body)
					answer(w, r)
				}
			})
			got, _, err := a.EvaluateConditions(t.Context(), a.ConditionsAwareAuthorize(t.Context(), attributes("jane")), object("dev"))
			if got != want || err == nil || !strings.Contains(sent, set) {
				t.Errorf("mode %s, %s: got %v, %v, want %v; sent %s", mode, name, got, err, want, sent)
			}
		}
	}
}

// TestK3_AFailedSetDoesNotEndAChain: in the first text, in which each set is asked about alone. The next set may allow (P4).
func TestK3_AFailedSetDoesNotEndAChain(t *testing.T) {
	set := func(name, mode string) string {
		return fmt.Sprintf(`{"authorizerName":%q,"failureMode":%q,"conditions":[{"id":"x","effect":"Allow","condition":"c"}]}`, name, mode)
	}
	for name, c := range map[string]struct {
		mode, second string
		policy       authorizer.Decision
		want         authorizer.Decision
		fails        bool
	}{
		"the next allows":         {"NoOpinion", `{"allowed":true}`, authorizer.DecisionDeny, authorizer.DecisionAllow, false},
		"the next has no opinion": {"NoOpinion", `{"allowed":false}`, authorizer.DecisionNoOpinion, authorizer.DecisionNoOpinion, true},
		"the failed one denies":   {"Deny", `{"allowed":true}`, authorizer.DecisionNoOpinion, authorizer.DecisionDeny, true},
	} {
		a, _ := serve(t, wire.ConditionsChain, func(config *Config, p *peer) {
			config.OnError = c.policy
			p.answer["/authorize"] = text(http.StatusOK, review(`"status":{"allowed":false,"conditionsChain":[`+set("a", c.mode)+`,`+set("b", "")+`]}`))
			p.answer["/conditions"] = func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				answer := c.second
				if strings.Contains(string(body), `"authorizerName":"a"`) {
					answer = `{"allowed":false,"evaluationError":"no such field"}`
				}
				_, _ = io.WriteString(w, evaluation(answer))
			}
		})
		got, _, err := a.EvaluateConditions(t.Context(), a.ConditionsAwareAuthorize(t.Context(), attributes("jane")), object("dev"))
		if got != c.want || (err != nil) != c.fails {
			t.Errorf("%s: got %v, %v, want %v", name, got, err, c.want)
		}
	}
}

// TestP4_AnErrorBesideConditionsCounts: an authorizer of the peer failed. It might have allowed what the conditions do not, and may answer the
// next time.
func TestP4_AnErrorBesideConditionsCounts(t *testing.T) {
	asked, answer := 0, ""
	a, _ := serve(t, wire.ConditionSetChain, func(_ *Config, p *peer) {
		p.answer["/authorize"] = func(w http.ResponseWriter, _ *http.Request) {
			asked++
			_, _ = io.WriteString(w, review(`"status":{"allowed":false,"evaluationError":"an authorizer is away","conditionSetChain":[{"authorizerName":"a","conditions":[{"id":"c","effect":"Allow","condition":"x"}]}]}`))
		}
		p.answer["/conditions"] = func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, evaluation(answer)) }
	})
	for text, fails := range map[string]bool{`{"allowed":false}`: true, `{"allowed":true}`: false} {
		answer = text
		got, _, err := a.EvaluateConditions(t.Context(), a.ConditionsAwareAuthorize(t.Context(), attributes("jane")), object("dev"))
		if (err != nil) != fails || (got == authorizer.DecisionAllow) == fails || err != nil && !strings.Contains(err.Error(), "an authorizer is away") {
			t.Errorf("%s: got %v, %v", text, got, err)
		}
	}
	if asked != 2 {
		t.Errorf("was asked %d times, want 2: the decision is cached", asked)
	}
}
