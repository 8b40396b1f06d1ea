package fieldperm

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/verbs"
)

// decidedBy answers every verb with the name of one authorizer.
type decidedBy map[string]AuthorizerDecision

func (d decidedBy) Authorize(_ context.Context, verb string, _ bool) (AuthorizerDecision, error) {
	return d[verb], nil
}

func TestP7_ChecksNameTheirAuthorizer(t *testing.T) {
	d, err := Decide(context.Background(), decidedBy{
		"update":             {Outcome: Deny, By: "protector"},
		verbs.Marker:         {Outcome: Allow, By: "rbac"},
		verbs.Prefix + "one": {Outcome: Allow, By: "rbac"},
	}, Review{Generic: update, Requirements: []Requirement{need("x", "*", "one")}}, Limits{})
	want := []Check{{"update", false, "protector", ""}, {"patch", false, "", ""}, {"granular", true, "rbac", ""}, {"granular:*", false, "", ""}, {"granular:one", true, "rbac", ""}}
	if err != nil || !slices.Equal(d.Checks, want) {
		t.Errorf("checks %v, error %v; want %v", d.Checks, err, want)
	}
}

// An Allow of fieldperm's own authorizer does not count, so no authorizer is named as the one that decided.
func TestP7_A4_OwnAllowNamesNoAuthorizer(t *testing.T) {
	d, err := Decide(context.Background(), decidedBy{
		"update": {Outcome: Allow, By: "in-cluster-authorizer", Reason: verbs.Prefix + " the user holds it"},
	}, Review{Generic: update}, Limits{})
	if err != nil || d.Allowed || slices.ContainsFunc(d.Checks, func(c Check) bool { return c.By != "" || c.Allowed }) {
		t.Errorf("decision %+v, error %v", d, err)
	}
}

// passedOver answers some verbs with a Failure, and allows others.
type passedOver struct {
	failing, held string
}

func (p passedOver) Authorize(_ context.Context, verb string, _ bool) (AuthorizerDecision, error) {
	if strings.Contains(p.failing, " "+verb+" ") {
		return AuthorizerDecision{Outcome: NoOpinion, Failure: errBroken}, nil
	}
	return AuthorizerDecision{Outcome: OutcomeOf(strings.Contains(p.held, " "+verb+" "))}, nil
}

func TestP4_AnIgnoredFailureIsNoDenial(t *testing.T) {
	scale := []Requirement{need("replicas", "*", "specification", "scale")}
	for name, test := range map[string]struct {
		failing, held string
		allowed, err  bool
	}{
		"others allow a more specific verb": {" update patch granular:* granular:specification ", " granular granular:scale ", true, false},
		"the last verb is unknown":          {" granular:scale ", " granular ", false, true},
		"a general verb is unknown":         {" granular:* ", " granular ", false, true},
		"the marker is unknown":             {" granular ", " granular:scale ", false, true},
		"the generic verb is unknown":       {" update ", "", false, true},
		"the other generic verb is held":    {" update ", " patch ", true, false},
		"nothing fails":                     {"", " granular ", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := Decide(context.Background(), passedOver{test.failing, test.held}, Review{Generic: update, Requirements: scale}, Limits{})
			if d.Allowed != test.allowed || errors.Is(err, errBroken) != test.err {
				t.Errorf("allowed %t, error %v", d.Allowed, err)
			}
			if err != nil && d.Denial != nil {
				t.Error("an error comes with a denial")
			}
		})
	}
}

func TestP5_ADenialNamesTheAuthorizerThatDenies(t *testing.T) {
	scale := []Requirement{need("replicas", "*", "specification", "scale")}
	subject := Subject{Resource: "deployments.apps", Name: "web", User: "alice", Verb: "update"}
	for name, test := range map[string]struct {
		answers decidedBy
		want    string
	}{
		"the most specific verb": {decidedBy{verbs.Marker: {Outcome: Allow}, "granular:*": {By: "x"}, "granular:scale": {By: "freeze", Reason: "until Monday\n"}}, `; authorizer "freeze" denies granular:scale: "until Monday\n"`},
		"a general verb":         {decidedBy{verbs.Marker: {Outcome: Allow}, "granular:*": {By: "freeze"}}, `; authorizer "freeze" denies granular:*`},
		"the marker":             {decidedBy{verbs.Marker: {By: "freeze", Reason: "no bots"}}, `; authorizer "freeze" denies granular: "no bots"`},
		"nobody":                 {decidedBy{verbs.Marker: {Outcome: Allow}}, ""},
		"no opinion":             {decidedBy{verbs.Marker: {Outcome: Allow}, "granular:*": {Outcome: NoOpinion, By: "passer"}}, ""},
		"only the generic verb":  {decidedBy{"update": {By: "freeze"}, verbs.Marker: {Outcome: Allow}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := Decide(context.Background(), test.answers, Review{Generic: update, Requirements: scale}, Limits{})
			if err != nil || d.Denial == nil {
				t.Fatalf("%+v, %v", d, err)
			}
			message := d.Denial.Message(subject)
			if _, rest, _ := strings.Cut(message, "; "); "; "+rest != test.want && rest+test.want != "" {
				t.Errorf("got %s\nwant %s at its end", message, test.want)
			}
		})
	}
}
