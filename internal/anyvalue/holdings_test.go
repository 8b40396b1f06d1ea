package anyvalue

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/fieldperm/fieldperm/fieldperm"
)

// holder is a chain of authorizers by verbs.
type holder struct {
	verbs map[string]bool
	// reasons are the reasons of the chain by verb.
	reasons map[string]string
	failure error
	err     error
	asked   []string
}

func holding(verbs ...string) *holder {
	h := &holder{verbs: map[string]bool{}}
	for _, v := range verbs {
		h.verbs[v] = true
	}
	return h
}

func (h *holder) Authorize(_ context.Context, verb string, _ bool) (fieldperm.AuthorizerDecision, error) {
	h.asked = append(h.asked, verb)
	return fieldperm.AuthorizerDecision{Outcome: fieldperm.OutcomeOf(h.verbs[verb]), Reason: h.reasons[verb], Failure: h.failure}, h.err
}

var certainties = map[Certainty]string{Never: "false", Perhaps: "object.spec.x == 1", Always: "true"}

// combined is the decision of policies and a chain with the objects (K5).
func combined(deny, noOpinion, allow, chain bool) bool {
	switch {
	case deny:
		return false
	case noOpinion:
		return chain
	}
	return allow || chain
}

// TestK5_AHoldingIsWhatEachOutcomeOfTheConditionsGives tries all policies, and for each condition that is not known both values.
func TestK5_AHoldingIsWhatEachOutcomeOfTheConditionsGives(t *testing.T) {
	values := func(c Certainty) []bool {
		return map[Certainty][]bool{Never: {false}, Perhaps: {false, true}, Always: {true}}[c]
	}
	for deny, denyText := range certainties {
		for none, noneText := range certainties {
			for allow, allowText := range certainties {
				for _, chain := range []bool{false, true} {
					held, denied := map[bool]bool{}, map[bool]bool{}
					for _, d := range values(deny) {
						denied[d] = true
						for _, n := range values(none) {
							for _, a := range values(allow) {
								held[combined(d, n, a, chain)] = true
							}
						}
					}
					name := fmt.Sprintf("Deny %s, NoOpinion %s, Allow %s, chain %t", denyText, noneText, allowText, chain)
					h := &Holdings{Authorizer: &holder{verbs: map[string]bool{"update": chain}}, Conditions: func(context.Context, string) []Condition {
						return []Condition{{Policy: "d", Effect: "Deny", Text: denyText}, {Policy: "n", Effect: "NoOpinion", Text: noneText}, {Policy: "a", Effect: "Allow", Text: allowText}}
					}}
					got, err := h.Verb(t.Context(), "update", true)
					if err != nil {
						t.Fatal(err)
					}
					if got.Certainty != certaintyOf(held) || got.Denied != certaintyOf(denied) {
						t.Errorf("%s: got %+v, want %v, denied %v", name, got, certaintyOf(held), certaintyOf(denied))
					}
					if got.Certainty == Perhaps && len(got.Conditions) == 0 {
						t.Errorf("%s: depends on nothing", name)
					}
				}
			}
		}
	}
}

// certaintyOf returns the certainty of something that has these values.
func certaintyOf(seen map[bool]bool) Certainty {
	switch {
	case seen[true] && seen[false]:
		return Perhaps
	case seen[true]:
		return Always
	}
	return Never
}

// TestK4_AConditionThatFailsAllowsNothingAndDenies: the condition cannot be evaluated, whatever the object is.
func TestK4_AConditionThatFailsAllowsNothingAndDenies(t *testing.T) {
	for effect, want := range map[string]Certainty{"Allow": Never, "Deny": Never, "NoOpinion": Never} {
		h := &Holdings{Authorizer: holding(), Conditions: func(context.Context, string) []Condition {
			return []Condition{{Policy: "p", Effect: effect, Err: errors.New("no such version")}}
		}}
		got, err := h.Verb(t.Context(), "patch", true)
		if err != nil || got.Certainty != want || (got.Denied == Always) != (effect == "Deny") {
			t.Errorf("%s: %+v, %v", effect, got, err)
		}
	}
}

func TestEachVerbIsAskedForOnce(t *testing.T) {
	of := holding("granular:scale")
	h := &Holdings{Authorizer: of}
	for range 3 {
		if got, err := h.Verb(t.Context(), "granular:scale", false); err != nil || got.Certainty != Always {
			t.Errorf("%+v, %v", got, err)
		}
	}
	if len(of.asked) != 1 {
		t.Errorf("asked for %v", of.asked)
	}
}

// An Allow with fieldperm's own reason is not the generic permission.
func TestA4_TheAllowOfFieldpermIsNoGenericPermission(t *testing.T) {
	of := holding("update")
	of.reasons = map[string]string{"update": `granular: the user holds "granular"`}
	h := &Holdings{Authorizer: of}
	if got, err := h.Verb(t.Context(), "update", true); err != nil || got.Certainty != Never {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestP4_AFailureIsNoDenial(t *testing.T) {
	boom := errors.New("boom")
	of := holding()
	of.err = boom
	h := &Holdings{Authorizer: of}
	if _, err := h.Verb(t.Context(), "update", true); !errors.Is(err, boom) {
		t.Errorf("error: %v", err)
	}
	of.err, of.failure = nil, boom
	if got, err := h.Verb(t.Context(), "update", true); err != nil || got.Certainty != Never || !errors.Is(h.Failure(), boom) {
		t.Errorf("an authorizer that was skipped: %+v, %v, %v", got, err, h.Failure())
	}
}
