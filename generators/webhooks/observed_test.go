package webhooks

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
)

// P9: the webhooks for observations fail open, and receive updates of the observed users alone.
func TestP9_TheConfigurationForObservations(t *testing.T) {
	url := func(path string) admissionregistrationv1.WebhookClientConfig {
		at := "https://fieldperm.example" + path
		return admissionregistrationv1.WebhookClientConfig{URL: &at}
	}
	all := []v1alpha1.ResourceRule{{APIGroups: []string{""}, Resources: []string{"pods", "nodes/status"}}, {APIGroups: []string{"apps"}, Resources: []string{"*"}}}
	c := ObservedConfiguration(url, Observed{Users: []string{`a"b`, "z", `a"b`}, Groups: []string{"g"}, Resources: all, Tried: []v1alpha1.ResourceRule{{APIGroups: []string{"batch"}, Resources: []string{"jobs"}}}})
	if len(c.Webhooks) != 2 || c.Name != "fieldperm-observed" {
		t.Fatalf("%+v", c)
	}
	for _, w := range c.Webhooks {
		if *w.FailurePolicy != admissionregistrationv1.Ignore || *w.TimeoutSeconds > 3 || *w.SideEffects != admissionregistrationv1.SideEffectClassNone {
			t.Errorf("%+v", w)
		}
	}
	w := c.Webhooks[0]
	if got, want := w.MatchConditions[0].Expression, `request.userInfo.username in ["a\"b", "z"] || has(request.userInfo.groups) && request.userInfo.groups.exists(g, g in ["g"])`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	var rules []string
	for _, r := range w.Rules {
		rules = append(rules, fmt.Sprint(r.Operations, r.APIGroups, r.Resources))
	}
	if got, want := strings.Join(rules, " "), "[UPDATE] [] [nodes/status pods pods/*] [UPDATE] [apps] [*/*]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if c := ObservedConfiguration(url, Observed{Users: []string{"a"}}); len(c.Webhooks) > 0 {
		t.Errorf("without resources: %+v", c)
	}
	if c := ObservedConfiguration(url, Observed{Resources: all}); len(c.Webhooks) > 0 {
		t.Errorf("without users: %+v", c)
	}
}

// P9: above the limits of API servers they ask about more users and resources. Sets are tried in any case.
func TestP9_TheConfigurationIsBounded(t *testing.T) {
	url := func(path string) admissionregistrationv1.WebhookClientConfig {
		at := "https://fieldperm.example" + path
		return admissionregistrationv1.WebhookClientConfig{URL: &at}
	}
	names := func(n, length int) []string {
		var out []string
		for i := range n {
			out = append(out, fmt.Sprintf("%0*d", length, i))
		}
		return out
	}
	pods := []v1alpha1.ResourceRule{{APIGroups: []string{""}, Resources: []string{"pods"}}}
	long := []v1alpha1.ResourceRule{{APIGroups: []string{"a"}, Resources: names(1000, 253)}}
	const everything = "[* */*]"
	for name, c := range map[string]struct {
		observed     Observed
		conditions   int
		rules, tried string
	}{
		"few":             {Observed{Users: names(30, 1000), Groups: names(2, 100), Resources: pods, Tried: pods}, 1, "[ pods pods/*]", "[ pods]"},
		"long users":      {Observed{Users: names(40, 1000), Resources: pods, Tried: pods}, 0, "[ pods pods/*]", "[ pods]"},
		"escaped users":   {Observed{Users: []string{strings.Repeat("\x01", 9000)}, Resources: pods, Tried: pods}, 0, "[ pods pods/*]", "[ pods]"},
		"long groups":     {Observed{Groups: names(40, 1000), Resources: pods, Tried: pods}, 0, "[ pods pods/*]", "[ pods]"},
		"the same groups": {Observed{Groups: slices.Repeat([]string{"a"}, 1000), Resources: pods, Tried: pods}, 1, "[ pods pods/*]", "[ pods]"},
		"many groups":     {Observed{Groups: names(65, 2), Resources: pods, Tried: pods}, 0, "[ pods pods/*]", "[ pods]"},
		"many resources":  {Observed{Users: names(1, 1), Resources: long, Tried: pods}, 1, everything, "[ pods]"},
		"many tried":      {Observed{Users: names(1, 1), Resources: pods, Tried: long}, 1, "[ pods pods/*]", everything},
		"everything":      {Observed{Users: names(1, 1), Resources: pods, Tried: pods, Everything: true}, 0, everything, everything},
	} {
		t.Run(name, func(t *testing.T) {
			out := ObservedConfiguration(url, c.observed)
			shown := func(w admissionregistrationv1.ValidatingWebhook) string {
				if len(w.Rules) != 1 {
					t.Fatalf("%+v", w.Rules)
				}
				return fmt.Sprint(append(slices.Clone(w.Rules[0].APIGroups), w.Rules[0].Resources...))
			}
			if len(out.Webhooks) != 2 || len(out.Webhooks[0].MatchConditions) != c.conditions || shown(out.Webhooks[0]) != c.rules || shown(out.Webhooks[1]) != c.tried {
				t.Errorf("%d conditions, %s, %s", len(out.Webhooks[0].MatchConditions), shown(out.Webhooks[0]), shown(out.Webhooks[1]))
			}
			if text, err := json.Marshal(out); err != nil || len(text) > 512<<10 {
				t.Errorf("%d bytes, %v", len(text), err)
			}
		})
	}
	if out := ObservedConfiguration(url, Observed{Everything: true}); len(out.Webhooks) > 0 {
		t.Errorf("nothing to ask about: %+v", out)
	}
}
