package server

import (
	"context"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/union"

	"github.com/fieldperm/fieldperm/fieldperm"
)

// fixedConditions has one answer for every verb.
type fixedConditions struct {
	answer fieldperm.AuthorizerDecision
	err    error
	asked  *int
}

func (f fixedConditions) Authorize(context.Context, string, bool) (fieldperm.AuthorizerDecision, error) {
	*f.asked++
	return f.answer, f.err
}

func (f fixedConditions) Unmet() []fieldperm.Unmet { return []fieldperm.Unmet{{Name: f.answer.By}} }

// TestK7_PoliciesDecideBeforeWebhooks: the first answer that is an opinion or an error counts, and a failure is not lost.
func TestK7_PoliciesDecideBeforeWebhooks(t *testing.T) {
	down := errors.New("down")
	decision := func(o fieldperm.Outcome, by string) fieldperm.AuthorizerDecision {
		return fieldperm.AuthorizerDecision{Outcome: o, By: by}
	}
	none := decision(fieldperm.NoOpinion, "")
	failed := fieldperm.AuthorizerDecision{Outcome: fieldperm.NoOpinion, Failure: down}
	for name, c := range map[string]struct {
		first, second fixedConditions
		want          fieldperm.AuthorizerDecision
		err           error
		asked         int
	}{
		"allow first":        {fixedConditions{answer: decision(fieldperm.Allow, "a")}, fixedConditions{answer: decision(fieldperm.Deny, "b")}, decision(fieldperm.Allow, "a"), nil, 1},
		"deny first":         {fixedConditions{answer: decision(fieldperm.Deny, "a")}, fixedConditions{answer: decision(fieldperm.Allow, "b")}, decision(fieldperm.Deny, "a"), nil, 1},
		"allow second":       {fixedConditions{answer: none}, fixedConditions{answer: decision(fieldperm.Allow, "b")}, decision(fieldperm.Allow, "b"), nil, 2},
		"deny second":        {fixedConditions{answer: none}, fixedConditions{answer: decision(fieldperm.Deny, "b")}, decision(fieldperm.Deny, "b"), nil, 2},
		"no opinion":         {fixedConditions{answer: none}, fixedConditions{answer: none}, none, nil, 2},
		"error first":        {fixedConditions{err: down}, fixedConditions{answer: decision(fieldperm.Allow, "b")}, fieldperm.AuthorizerDecision{}, down, 1},
		"error second":       {fixedConditions{answer: none}, fixedConditions{err: down}, fieldperm.AuthorizerDecision{}, down, 2},
		"failure is kept":    {fixedConditions{answer: failed}, fixedConditions{answer: none}, failed, nil, 2},
		"deny after failure": {fixedConditions{answer: failed}, fixedConditions{answer: decision(fieldperm.Deny, "b")}, fieldperm.AuthorizerDecision{}, down, 2},
		"failure at second":  {fixedConditions{answer: none}, fixedConditions{answer: failed}, failed, nil, 2},
	} {
		asked := 0
		c.first.asked, c.second.asked = &asked, &asked
		o := inOrder{c.first, c.second}
		got, err := o.Authorize(t.Context(), "update", true)
		if got != c.want || !errors.Is(err, c.err) || (err == nil) != (c.err == nil) || asked != c.asked {
			t.Errorf("%s: %+v, %v after %d questions", name, got, err, asked)
		}
		if unmet := o.Unmet(); len(unmet) != 2 {
			t.Errorf("%s: %v", name, unmet)
		}
	}
}

// TestP4_ADenyAfterAFailureHasItsError: in both phases. A granular verb is not held then, and another one may be.
func TestP4_ADenyAfterAFailureHasItsError(t *testing.T) {
	down := errors.New("down")
	asked := 0
	o := inOrder{
		fixedConditions{answer: fieldperm.AuthorizerDecision{Outcome: fieldperm.NoOpinion, Failure: down}, asked: &asked},
		fixedConditions{answer: fieldperm.AuthorizerDecision{Outcome: fieldperm.Deny, By: "b"}, asked: &asked},
	}
	if got, err := o.Authorize(t.Context(), "granular:*", false); err != nil || got.Outcome != fieldperm.Deny || !errors.Is(got.Failure, down) {
		t.Errorf("admission: %+v, %v", got, err)
	}
	fixed := func(d authorizer.Decision, err error) authorizer.Authorizer {
		return authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
			asked++
			return d, "", err
		})
	}
	for name, c := range map[string]struct {
		first, second authorizer.Authorizer
		want          authorizer.Decision
		err           error
		asked         int
	}{
		"deny after failure":  {fixed(authorizer.DecisionNoOpinion, down), fixed(authorizer.DecisionDeny, nil), authorizer.DecisionDeny, down, 2},
		"allow after failure": {fixed(authorizer.DecisionNoOpinion, down), fixed(authorizer.DecisionAllow, nil), authorizer.DecisionAllow, nil, 2},
		"deny":                {fixed(authorizer.DecisionNoOpinion, nil), fixed(authorizer.DecisionDeny, nil), authorizer.DecisionDeny, nil, 2},
		"deny first":          {fixed(authorizer.DecisionDeny, nil), fixed(authorizer.DecisionNoOpinion, down), authorizer.DecisionDeny, nil, 1},
		"failure":             {fixed(authorizer.DecisionNoOpinion, down), fixed(authorizer.DecisionNoOpinion, nil), authorizer.DecisionNoOpinion, down, 2},
	} {
		asked = 0
		p, err := newFirstPhase([]union.NamedAuthorizer{{AuthorizerName: "a", Authorizer: c.first}, {AuthorizerName: "b", Authorizer: c.second}})
		if err != nil {
			t.Fatal(err)
		}
		got := p.ConditionsAwareAuthorize(t.Context(), authorizer.AttributesRecord{})
		if !got.PossibleDecisions().Equal(sets.New(c.want)) || !errors.Is(got.Error(), c.err) || (got.Error() == nil) != (c.err == nil) || asked != c.asked {
			t.Errorf("%s: %s after %d questions", name, got, asked)
		}
	}
}

// TestK4_AnErrorOfAPolicyIsNoFailure: it counts as false or as true, and the reason of a Deny has it.
func TestK4_AnErrorOfAPolicyIsNoFailure(t *testing.T) {
	for _, want := range []authorizer.Decision{authorizer.DecisionAllow, authorizer.DecisionDeny, authorizer.DecisionNoOpinion} {
		got := ofPolicies{authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
			return want, "a policy", errors.New("no such key")
		})}.ConditionsAwareAuthorize(t.Context(), authorizer.AttributesRecord{})
		if !got.PossibleDecisions().Equal(sets.New(want)) || got.Error() != nil || strings.Contains(got.Reason(), "no such key") != (want == authorizer.DecisionDeny) {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
