package server

import (
	"context"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/union"

	"github.com/fieldperm/fieldperm/internal/policies"
)

// TestP4_ADenyAfterAFailureHasItsError: in the authorization phase.
func TestP4_ADenyAfterAFailureHasItsError(t *testing.T) {
	down := errors.New("down")
	asked := 0
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

// TestK3_PoliciesAndWebhooksAreAsked: only if there are neither, nothing is asked.
func TestK3_PoliciesAndWebhooksAreAsked(t *testing.T) {
	file := write(t, t.TempDir(), "policy.yaml", []byte(`
apiVersion: fieldperm.dev/v1alpha1
kind: ConditionalPolicy
metadata: {name: own}
spec:
  effect: Allow
  subjects: [{kind: User, name: alice}]
  verbs: [update, patch]
  resources: [{apiGroups: [apps], resources: [deployments]}]
  condition: object.spec.replicas <= 5
`))
	some, _, err := policies.Files(t.Context(), []string{file})
	if err != nil {
		t.Fatal(err)
	}
	webhooks := []union.NamedAuthorizer{{AuthorizerName: "w", Authorizer: authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
		return authorizer.DecisionDeny, "the webhook", nil
	})}}
	alice := authorizer.AttributesRecord{User: &user.DefaultInfo{Name: "alice"}, Verb: "update", APIGroup: "apps", APIVersion: "v1", Resource: "deployments", ResourceRequest: true}
	for name, c := range map[string]struct {
		set      *policies.Set
		webhooks []union.NamedAuthorizer
		want     []authorizer.Decision
	}{
		"neither":  {nil, nil, nil},
		"policies": {some, nil, []authorizer.Decision{authorizer.DecisionAllow}},
		"webhooks": {nil, webhooks, []authorizer.Decision{authorizer.DecisionDeny}},
	} {
		got, err := inPhaseOne(c.set, c.webhooks)
		if err != nil || (got == nil) != (c.want == nil) {
			t.Errorf("%s: %v, %v", name, got, err)
			continue
		}
		if got == nil {
			continue
		}
		if d := got.ConditionsAwareAuthorize(t.Context(), alice); !d.PossibleDecisions().HasAll(c.want...) {
			t.Errorf("%s: %s", name, d)
		}
	}
}
