package authz

import (
	"context"
	"errors"
	"testing"

	"github.com/fieldperm/fieldperm/admission"
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

func (f fixedConditions) Unmet([]string) []fieldperm.Unmet {
	return []fieldperm.Unmet{{Name: f.answer.By}}
}

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
		if unmet := o.Unmet(nil); len(unmet) != 2 {
			t.Errorf("%s: %v", name, unmet)
		}
	}
}

// TestK7_ConditionsOfAReviewer: those of policies come first, then those of the webhooks of the chain that decides the review. An error about
// the policies decides nothing.
func TestK7_ConditionsOfAReviewer(t *testing.T) {
	l, p := newLabels(t, "red"), newPlace(t)
	p.configure(l.entry(p, "Deny"))
	chain := p.chain(Settings{})
	plain := newPlaceChain(t)
	asked := 0
	deny := fixedConditions{answer: fieldperm.AuthorizerDecision{Outcome: fieldperm.Deny, By: "policies"}, asked: &asked}
	for name, c := range map[string]struct {
		chain *Chain
		first admission.Conditions
		by    string // "" for no conditions
	}{
		"both":     {chain, deny, "policies"},
		"webhooks": {chain, nil, "labels"},
		"policies": {plain, deny, "policies"},
		"none":     {plain, nil, ""},
	} {
		w := write(`{"team":"red"}`)
		first := func(*admission.Write, fieldperm.Authorizer) (admission.Conditions, error) { return c.first, nil }
		got, err := ConditionalAfter(first)(w, c.chain.For(w.Request))
		if err != nil || (got == nil) != (c.by == "") {
			t.Errorf("%s: %v, %v", name, got, err)
			continue
		}
		if got == nil {
			continue
		}
		if answer, err := got.Authorize(t.Context(), "update", true); err != nil || answer.By != c.by {
			t.Errorf("%s: %+v, %v", name, answer, err)
		}
	}
	w := write(`{}`)
	unread := func(*admission.Write, fieldperm.Authorizer) (admission.Conditions, error) {
		return nil, errors.New("unread")
	}
	if got, err := ConditionalAfter(unread)(w, chain.For(w.Request)); err == nil || got != nil {
		t.Errorf("without the policies: %v, %v", got, err)
	}
}

// TestP4_ADenyAfterAFailureHasItsError: a granular verb is not held then, and another one may be.
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
}

// newPlaceChain returns a chain of RBAC.
func newPlaceChain(t *testing.T) *Chain {
	t.Helper()
	p := newPlace(t)
	p.configure(rbacEntry)
	return p.chain(Settings{newRoles: mayAll(t)})
}
