package wire

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

func condition(id, text string) authorizer.Condition {
	return authorizer.GenericCondition{ID: id, Type: "example.com/cel", Condition: text, Description: "of " + id}
}

func conditionsOf(c ...authorizer.Condition) []authorizer.Condition { return c }

func conditional(deny, noOpinion, allow []authorizer.Condition) authorizer.ConditionsAwareDecision {
	return authorizer.ConditionsAwareDecisionConditionsMap(deny, noOpinion, allow)
}

// named is one member of a union.
type named struct {
	name string
	d    authorizer.ConditionsAwareDecision
}

func union(of ...named) authorizer.ConditionsAwareDecision {
	var out authorizer.ConditionsAwareDecisionUnion
	for _, n := range of {
		out.Add(n.name, n.d)
	}
	return out.ToDecision()
}

var (
	mayAllow = conditional(nil, nil, conditionsOf(condition("a", `object.x == "<>&"`), condition("example.com/b", "")))
	mayDeny  = conditional(conditionsOf(condition("d", "x")), nil, nil)
	mixed    = conditional(conditionsOf(condition("d", "x")), conditionsOf(condition("n", "y")), conditionsOf(condition("a", "z")))
	chained  = union(named{"first", mayDeny}, named{"second", mixed}, named{"rbac", authorizer.ConditionsAwareDecisionAllow("", nil)})
	nested   = union(named{"a.example.com", union(named{"system", mayDeny}, named{"user", mayAllow})}, named{"b", mixed})
)

var dialects = []Dialect{ConditionsChain, ConditionSetChain, ConditionalDecision}

// conditionsIn returns every condition of a decision with its place.
func conditionsIn(d authorizer.ConditionsAwareDecision) []string {
	var out []string
	all := d.ConditionsMap()
	for _, list := range []iter.Seq[authorizer.Condition]{all.DenyConditions(), all.NoOpinionConditions(), all.AllowConditions()} {
		for c := range list {
			out = append(out, fmt.Sprintf("%q %q %q %q", c.GetID(), c.GetType(), c.GetCondition(), c.GetDescription()))
		}
		out = append(out, "")
	}
	for name, inner := range d.UnionedDecisions() {
		for _, text := range conditionsIn(inner) {
			out = append(out, name+": "+text)
		}
	}
	return out
}

func answer(t *testing.T, d Dialect, decision authorizer.ConditionsAwareDecision, handles bool) []byte {
	t.Helper()
	status, err := d.Status(decision, handles)
	if err != nil {
		t.Fatal(err)
	}
	return whole(string(status))
}

// whole is a SubjectAccessReview with a status.
func whole(status string) []byte {
	return []byte(`{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","spec":{},"status":` + status + `}`)
}

// TestK3_ADecisionIsReadAsItWasWritten: in each dialect, with all conditions in their order.
func TestK3_ADecisionIsReadAsItWasWritten(t *testing.T) {
	for name, c := range map[string]struct {
		decision authorizer.ConditionsAwareDecision
		in       []Dialect
	}{
		"chain":            {chained, dialects},
		"one authorizer":   {union(named{soleAuthorizer, mixed}), dialects},
		"nested":           {nested, []Dialect{ConditionSetChain, ConditionalDecision}},
		"conditions":       {mixed, []Dialect{ConditionalDecision}},
		"no opinion first": {union(named{"a", authorizer.ConditionsAwareDecisionNoOpinion("why", errors.New("broken"))}, named{"b", mayAllow}), []Dialect{ConditionalDecision}},
		"allowed":          {authorizer.ConditionsAwareDecisionAllow("because", nil), append([]Dialect{None}, dialects...)},
		"denied":           {authorizer.ConditionsAwareDecisionDeny("because", errors.New("broken")), append([]Dialect{None}, dialects...)},
		"no opinion":       {authorizer.ConditionsAwareDecisionNoOpinion("because", nil), append([]Dialect{None}, dialects...)},
	} {
		for _, d := range c.in {
			got, err := d.ReadStatus(answer(t, d, c.decision, true))
			if err != nil {
				t.Errorf("%s in %q: %v", name, d, err)
				continue
			}
			if got.String() != c.decision.String() || !slices.Equal(conditionsIn(got), conditionsIn(c.decision)) {
				t.Errorf("%s in %q: %s %q\nwant %s %q", name, d, got, conditionsIn(got), c.decision, conditionsIn(c.decision))
			}
		}
	}
	// A decision of one authorizer is a chain of one in the dialects of chains.
	for _, d := range []Dialect{ConditionsChain, ConditionSetChain} {
		if got, err := d.ReadStatus(answer(t, d, mixed, true)); err != nil || got.String() != union(named{soleAuthorizer, mixed}).String() {
			t.Errorf("%s: %s %v", d, got, err)
		}
	}
}

// TestK3_WhatADialectCannotExpressIsFolded: to NoOpinion, or to Deny if it may deny.
func TestK3_WhatADialectCannotExpressIsFolded(t *testing.T) {
	long := conditional(nil, nil, conditionsOf(condition("a", strings.Repeat("x", maxChainCondition+1))))
	types := conditional(conditionsOf(condition("d", "")), nil, conditionsOf(authorizer.GenericCondition{ID: "a", Type: "other"}))
	tooLong := conditional(nil, nil, conditionsOf(condition("a", strings.Repeat("x", maxCondition+1))))
	deep := mayDeny
	for range maxDepth + 2 {
		deep = union(named{"a", deep})
	}
	for name, c := range map[string]struct {
		d        Dialect
		decision authorizer.ConditionsAwareDecision
		denied   bool
		cause    string
	}{
		"a chain in a chain":      {ConditionsChain, nested, true, "is a chain in a chain"},
		"long in the first":       {ConditionsChain, long, false, `condition "a" is longer than 1024`},
		"long in the merged":      {ConditionSetChain, long, false, `condition "a" is longer than 1024`},
		"two types in the merged": {ConditionSetChain, types, true, "has one type for all"},
		"too long in the draft":   {ConditionalDecision, tooLong, false, `condition "a" is longer than 10240`},
		"deep in the merged":      {ConditionSetChain, deep, true, "deeper than"},
		"deep in the draft":       {ConditionalDecision, deep, true, "deeper than"},
	} {
		got, err := c.d.ReadStatus(answer(t, c.d, c.decision, true))
		if err != nil || got.IsDeny() != c.denied || got.IsNoOpinion() == c.denied || got.Error() == nil || !strings.Contains(got.Error().Error(), c.cause) {
			t.Errorf("%s: %s %v", name, got, err)
		}
	}
}

// TestK3_Skew: a peer of each dialect asks a peer of each. Where they do not agree, a conditional decision is never an Allow.
func TestK3_Skew(t *testing.T) {
	all := append([]Dialect{None}, dialects...)
	spec := &authorizationv1.SubjectAccessReviewSpec{User: "u", ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "create", Resource: "pods"}}
	for _, asks := range all {
		asked, err := asks.Ask(spec)
		if err != nil {
			t.Fatal(err)
		}
		review, err := object("review", asked)
		if err != nil || !strings.Contains(string(review["spec"]), `"user":"u"`) {
			t.Fatalf("%s: %s", asks, asked)
		}
		for _, answers := range all {
			handles, err := answers.Handles(review["spec"])
			sameField := asks != None && answers != None && (asks == ConditionalDecision) == (answers == ConditionalDecision)
			if err != nil || handles != sameField {
				t.Errorf("%q asks %q: handles %t %v", asks, answers, handles, err)
			}
			for want, decision := range map[authorizer.Decision]authorizer.ConditionsAwareDecision{authorizer.DecisionNoOpinion: mayAllow, authorizer.DecisionDeny: chained} {
				got, err := asks.ReadStatus(answer(t, answers, decision, handles))
				switch {
				case asks == answers && asks != None:
					if err != nil || got.IsUnconditional() {
						t.Errorf("%q asks itself: %s %v", asks, got, err)
					}
				case sameField: // The first two texts ask in the same way. The answer tells them apart.
					if err == nil || !got.IsDeny() {
						t.Errorf("%q asks %q: %s %v", asks, answers, got, err)
					}
				case err != nil || !got.IsUnconditional() || !got.PossibleDecisions().Has(want):
					t.Errorf("%q asks %q: %s %v, want %s", asks, answers, got, err, want)
				}
			}
		}
	}
}

func TestK3_BadAnswersAreErrors(t *testing.T) {
	set := func(fields string) string { return `{"conditionSetChain":[{"authorizerName":"a",` + fields + `}]}` }
	draft := func(fields string) string { return `{"allowed":false,"conditionalDecision":{` + fields + `}}` }
	allow := `"conditions":[{"id":"a","effect":"Allow","condition":"x"}]`
	many := strings.TrimSuffix(strings.Repeat(`{"id":"a","effect":"Allow","condition":"x"},`, 129), ",")
	for i := range 129 {
		many = strings.Replace(many, `"id":"a"`, fmt.Sprintf(`"id":"a%d"`, i), 1)
	}
	for name, c := range map[string]struct {
		d            Dialect
		status, want string
	}{
		"no status":               {ConditionSetChain, `null`, "status: is null"},
		"nothing":                 {ConditionSetChain, `{}`, "has no field allowed"},
		"null":                    {None, `{"allowed":null}`, "has no field allowed"},
		"allowed and denied":      {None, `{"allowed":true,"denied":true}`, "is allowed and denied"},
		"allowed is a text":       {None, `{"allowed":"true"}`, "status.allowed"},
		"twice":                   {None, `{"allowed":false,"allowed":true}`, "duplicate"},
		"not asked for":           {None, set(allow), `has conditionSetChain, and "" was asked for`},
		"another dialect":         {ConditionalDecision, set(allow), `has conditionSetChain, and "conditionalDecision" was asked for`},
		"two dialects":            {ConditionSetChain, `{"conditionSetChain":[{"authorizerName":"a","allowed":true}],"conditionsChain":[]}`, "has conditionsChain"},
		"allowed beside":          {ConditionSetChain, `{"allowed":true,"conditionSetChain":[{"authorizerName":"a","denied":true}]}`, "has allowed or denied beside"},
		"empty chain":             {ConditionSetChain, `{"conditionSetChain":[]}`, "is empty"},
		"empty first chain":       {ConditionsChain, `{"conditionsChain":[]}`, "is empty"},
		"unknown field":           {ConditionSetChain, set(allow + `,"unless":"x"`), "unknown"},
		"unknown in a condition":  {ConditionSetChain, set(`"conditions":[{"id":"a","effect":"Allow","condition":"x","unless":"y"}]`), "unknown"},
		"upper case":              {ConditionSetChain, set(`"Conditions":[]`), "unknown"},
		"nothing in a set":        {ConditionSetChain, set(`"conditionsType":"x"`), "has 0 of allowed"},
		"allowed with conditions": {ConditionSetChain, set(`"allowed":true,` + allow), "has 2 of allowed"},
		"a chain with conditions": {ConditionSetChain, set(allow + `,"conditionSetChain":[]`), "has more than conditionSetChain"},
		"no effect":               {ConditionSetChain, set(`"conditions":[{"id":"a","condition":"x"}]`), `effect "" is not known`},
		"another effect":          {ConditionSetChain, set(`"conditions":[{"id":"a","effect":"allow","condition":"x"}]`), `effect "allow" is not known`},
		"no id":                   {ConditionSetChain, set(`"conditions":[{"id":"","effect":"Allow","condition":"x"}]`), "invalid condition ID"},
		"duplicate id":            {ConditionSetChain, set(`"conditions":[{"id":"a","effect":"Allow","condition":"x"},{"id":"a","effect":"Deny","condition":"x"}]`), "duplicate condition ID"},
		"invalid type":            {ConditionSetChain, set(`"conditionsType":"a b",` + allow), "invalid condition type"},
		"a type in the merged":    {ConditionSetChain, set(`"conditions":[{"id":"a","type":"x","effect":"Allow","condition":"x"}]`), "send conditionsType"},
		"129 conditions":          {ConditionSetChain, set(`"conditions":[` + many + `]`), "too many conditions"},
		"failure mode":            {ConditionSetChain, set(`"failureMode":"Allow",` + allow), `failureMode "Allow" is not known`},
		"name":                    {ConditionSetChain, `{"conditionSetChain":[{"authorizerName":"A","allowed":true}]}`, `authorizerName "A"`},
		"name twice":              {ConditionSetChain, `{"conditionSetChain":[{"authorizerName":"a",` + allow + `},{"authorizerName":"a","allowed":true}]}`, "occurs twice"},
		"long condition":          {ConditionSetChain, set(`"conditions":[{"id":"a","effect":"Allow","condition":"` + strings.Repeat("x", 1025) + `"}]`), "has 1025 bytes"},
		"long description":        {ConditionSetChain, set(`"conditions":[{"id":"a","effect":"Allow","condition":"x","description":"` + strings.Repeat("x", 1025) + `"}]`), "has 1025 bytes"},
		"deep":                    {ConditionSetChain, `{"conditionSetChain":` + strings.Repeat(`[{"authorizerName":"a","conditionSetChain":`, 12) + `[{"authorizerName":"a","allowed":true}]` + strings.Repeat("}]", 12) + `}`, "is deeper than"},
		"first text, no type":     {ConditionsChain, `{"conditionsChain":[{"authorizerName":"a","conditions":[{"id":"a","type":"a b","effect":"Allow","condition":"x"}]}]}`, "invalid condition type"},
		"no type":                 {ConditionalDecision, draft(`"allow":{}`), "is not conditional"},
		"allowed in the draft":    {ConditionalDecision, draft(`"type":"Allow","allow":{}`), "is not conditional"},
		"another member":          {ConditionalDecision, draft(`"type":"ConditionsMap","conditionsMap":{"allowConditions":[{"id":"a"}]},"allow":{}`), "set exactly the member of the type"},
		"no member":               {ConditionalDecision, draft(`"type":"ConditionsMap"`), "set exactly the member of the type"},
		"empty map":               {ConditionalDecision, draft(`"type":"ConditionsMap","conditionsMap":{"noOpinionConditions":[{"id":"a"}]}`), "send NoOpinion"},
		"empty union":             {ConditionalDecision, draft(`"type":"Union","union":[]`), "set exactly the member of the type"},
		"unknown type":            {ConditionalDecision, draft(`"type":"Union","union":[{"authorizerName":"a","decision":{"type":"Maybe"}}]`), `type "Maybe" is not known`},
		"id twice over effects":   {ConditionalDecision, draft(`"type":"ConditionsMap","conditionsMap":{"denyConditions":[{"id":"a"}],"allowConditions":[{"id":"a"}]}`), "duplicate condition ID"},
		"long in the draft":       {ConditionalDecision, draft(`"type":"ConditionsMap","conditionsMap":{"allowConditions":[{"id":"a","condition":"` + strings.Repeat("x", 10241) + `"}]}`), "has 10241 bytes"},
	} {
		got, err := c.d.ReadStatus(whole(c.status))
		if err == nil || !strings.Contains(err.Error(), c.want) || !got.IsDeny() {
			t.Errorf("%s: %s %v", name, got, err)
		}
	}
	if _, err := ConditionSetChain.ReadStatus(make([]byte, maxBytes+1)); err == nil || !strings.Contains(err.Error(), "send at most") {
		t.Errorf("a large answer: %v", err)
	}
}

func TestK3_Handles(t *testing.T) {
	for _, c := range []struct {
		d    Dialect
		spec string
		want bool
		err  string
	}{
		{ConditionSetChain, `{}`, false, ""},
		{ConditionSetChain, `{"conditionalAuthorization":null}`, false, ""},
		{ConditionSetChain, `{"conditionalAuthorization":{"mode":""}}`, false, ""},
		{ConditionSetChain, `{"conditionalAuthorization":{"mode":"Optimized"}}`, true, ""},
		{ConditionsChain, `{"conditionalAuthorization":{"mode":"HumanReadable"}}`, true, ""},
		{ConditionSetChain, `{"conditionalAuthorization":{"mode":"optimized"}}`, false, `mode "optimized" is not known`},
		{ConditionSetChain, `{"conditionalAuthorization":1}`, false, "spec.conditionalAuthorization"},
		{ConditionSetChain, `[]`, false, "spec: "},
		{ConditionalDecision, `{"authorizationOptions":null}`, false, ""},
		{ConditionalDecision, `{"authorizationOptions":{"handledDecisionTypes":["Allow","Deny","NoOpinion"]}}`, false, ""},
		{ConditionalDecision, `{"authorizationOptions":{"handledDecisionTypes":["Union","New","Deny","Allow","ConditionsMap","NoOpinion"]}}`, true, ""},
		{ConditionalDecision, `{"authorizationOptions":{"handledDecisionTypes":["Allow","Deny","NoOpinion","ConditionsMap"]}}`, false, ""},
		{ConditionalDecision, `{"authorizationOptions":{"handledDecisionTypes":["ConditionsMap","Union"]}}`, false, `lacks "Allow"`},
		{ConditionalDecision, `{"conditionalAuthorization":{"mode":"Optimized"}}`, false, ""},
		{None, `{"conditionalAuthorization":{"mode":"Optimized"}}`, false, ""},
	} {
		got, err := c.d.Handles([]byte(c.spec))
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%q: %s: %t %v", c.d, c.spec, got, err)
		}
	}
}

func TestK3_Parse(t *testing.T) {
	for _, d := range dialects {
		if got, err := Parse(string(d)); got != d || err != nil {
			t.Errorf("%s: %s %v", d, got, err)
		}
	}
	for _, bad := range []string{"", "ConditionSetChain", "v1"} {
		if _, err := Parse(bad); err == nil || !strings.Contains(err.Error(), "use conditionsChain, conditionSetChain or conditionalDecision") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// FuzzK3_ReadStatus: an answer is never read as an Allow unless it says so, and what is read can be written and read again.
func FuzzK3_ReadStatus(f *testing.F) {
	for _, decision := range []authorizer.ConditionsAwareDecision{chained, nested, mixed, mayAllow, authorizer.ConditionsAwareDecisionAllow("", nil)} {
		for i, d := range dialects {
			status, err := d.Status(decision, true)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(i, string(whole(string(status))))
		}
	}
	f.Fuzz(func(t *testing.T, i int, body string) {
		d := dialects[(i%len(dialects)+len(dialects))%len(dialects)]
		got, err := d.ReadStatus([]byte(body))
		if err != nil {
			if !got.IsDeny() {
				t.Fatalf("%s beside %v", got, err)
			}
			return
		}
		if got.IsAllow() && !strings.Contains(body, "llow") && !strings.Contains(body, `\u`) {
			t.Fatalf("%s is an Allow", body)
		}
		again, err := d.ReadStatus(answer(t, d, got, true))
		if err != nil || again.PossibleDecisions().Has(authorizer.DecisionAllow) && !got.PossibleDecisions().Has(authorizer.DecisionAllow) {
			t.Fatalf("%s: %s, then %s %v", body, got, again, err)
		}
	})
}
