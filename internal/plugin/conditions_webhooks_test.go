package plugin

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/union"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// decided is an authorizer with one decision.
type decided struct {
	authorizer.Authorizer
	authorizer.ConditionsAwareDecision
}

func (d decided) ConditionsAwareAuthorize(context.Context, authorizer.Attributes) authorizer.ConditionsAwareDecision {
	return d.ConditionsAwareDecision
}

// conditional is a decision with a condition of each effect.
func conditional() authorizer.ConditionsAwareDecision {
	of := func(id, text, description string) []authorizer.Condition {
		return []authorizer.Condition{authorizer.GenericCondition{ID: id, Type: "example.com/x", Condition: text, Description: description}}
	}
	return authorizer.ConditionsAwareDecisionConditionsMap(of("example.com/d", "forbidden", ""), of("example.com/n", "", "nothing"), of("example.com/a", "team == red", "of the team"))
}

// TestK8_WebhooksAreListed: each condition with its effect, in the order in which they count, and what a webhook decides without one.
func TestK8_WebhooksAreListed(t *testing.T) {
	down := errors.New("down")
	ofMap := []listed{
		{Authorizer: "w", Policy: "example.com/d", Effect: "Deny", Condition: "forbidden"},
		{Authorizer: "w", Policy: "example.com/n", Effect: "NoOpinion", Description: "nothing"},
		{Authorizer: "w", Policy: "example.com/a", Effect: "Allow", Condition: "team == red", Description: "of the team"},
	}
	var chain authorizer.ConditionsAwareDecisionUnion
	chain.Add("none", authorizer.ConditionsAwareDecisionNoOpinion("", nil))
	chain.Add("inner", conditional())
	chain.Add("last", authorizer.ConditionsAwareDecisionDeny("closed", nil))
	for name, c := range map[string]struct {
		decision authorizer.ConditionsAwareDecision
		want     []listed
	}{
		"conditions":         {conditional(), ofMap},
		"a chain":            {chain.ToDecision(), append(ofMap[:3:3], listed{Authorizer: "w", Effect: "Deny", Condition: "true", Description: "closed"})},
		"allow":              {authorizer.ConditionsAwareDecisionAllow("open", nil), []listed{{Authorizer: "w", Effect: "Allow", Condition: "true", Description: "open"}}},
		"deny":               {authorizer.ConditionsAwareDecisionDeny("closed", nil), []listed{{Authorizer: "w", Effect: "Deny", Condition: "true", Description: "closed"}}},
		"no opinion":         {authorizer.ConditionsAwareDecisionNoOpinion("why", nil), nil},
		"failure, Deny":      {authorizer.ConditionsAwareDecisionDeny("", down), []listed{{Authorizer: "w", Effect: "Deny", Error: "down"}}},
		"failure, NoOpinion": {authorizer.ConditionsAwareDecisionNoOpinion("", down), []listed{{Authorizer: "w", Effect: "NoOpinion", Error: "down"}}},
		"zero":               {authorizer.ConditionsAwareDecision{}, []listed{{Authorizer: "w", Effect: "Deny", Condition: "true"}}},
	} {
		if got := ofWebhooks(t.Context(), []union.NamedAuthorizer{{AuthorizerName: "w", Authorizer: decided{nil, c.decision}}}, authorizer.AttributesRecord{}); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// TestK8_FailuresAreListedBesideOthers: with nothing but failures there is no list.
func TestK8_FailuresAreListedBesideOthers(t *testing.T) {
	failed := listed{Authorizer: "w", Effect: "Deny", Error: "down"}
	for name, c := range map[string]struct {
		rows []listed
		want bool
	}{
		"nothing":        {nil, true},
		"a failure":      {[]listed{failed}, false},
		"two":            {[]listed{failed, failed}, false},
		"beside another": {[]listed{failed, {Authorizer: "v", Effect: "Allow", Condition: "true"}}, true},
		"no text":        {[]listed{failed, {Authorizer: "v", Policy: "id", Effect: "Allow"}}, true},
		"of a policy":    {[]listed{{Authorizer: ofPolicies, Policy: "p", Effect: "Deny", Error: "unfit"}, failed}, true},
	} {
		err := nothingListed(c.rows)
		if (err == nil) != c.want || err != nil && !strings.Contains(err.Error(), "down") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestK8_TheListNamesAuthorizers: with the flag in a column, and always in JSON. Texts of webhooks do not move the cursor.
func TestK8_TheListNamesAuthorizers(t *testing.T) {
	rows := append([]listed{{Authorizer: ofPolicies, Policy: "p", Effect: "Allow", Condition: "true"}}, rowsOf("w", conditional())...)
	rows = append(rows, listed{Authorizer: "v", Effect: "Deny", Error: "is\tdown\x1b[2J"})
	for _, c := range []struct{ output, file, want string }{
		{outputTable, "f", `EFFECT AUTHORIZER POLICY CONDITION DESCRIPTION Allow ConditionalPolicy p true - Deny w example.com/d forbidden - NoOpinion w example.com/n - nothing Allow w example.com/a team == red of the team Deny v - error: is down\x1b[2J -`},
		{outputTable, "", `EFFECT POLICY CONDITION DESCRIPTION Allow p true - Deny example.com/d`},
		{outputJSON, "", `{ "authorizer": "w", "policy": "example.com/a", "effect": "Allow", "condition": "team == red", "description": "of the team" }`},
		{outputYAML, "f", `- authorizer: ConditionalPolicy condition: "true" effect: Allow policy: p`},
	} {
		var out bytes.Buffer
		o := &listing{options{streams: genericiooptions.IOStreams{Out: &out}, output: c.output, authorizationConfig: c.file}}
		if err := o.print(rows); err != nil || !strings.Contains(strings.Join(strings.Fields(out.String()), " "), c.want) {
			t.Errorf("%s: %v\n%s\nwant %s", c.output, err, out.String(), c.want)
		}
	}
}
