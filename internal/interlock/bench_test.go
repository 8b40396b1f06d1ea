package interlock

import (
	"context"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/fieldperm/fieldperm/internal/allowlist"
)

func noConfiguration(context.Context) (*admissionregistrationv1.ValidatingWebhookConfiguration, error) {
	return nil, nil
}

// BenchmarkEnforced measures what the interlock adds to an Allow of /authorize: with a webhook configuration that was read, and
// with a manifest whose object was proven within the interval.
func BenchmarkEnforced(b *testing.B) {
	for _, name := range []string{"object", "manifest"} {
		b.Run(name, func(b *testing.B) {
			clock := clocktesting.NewFakeClock(begin())
			config := Config{Interval: testInterval, Clock: clock, Resources: func(string, string) (allowlist.Served, bool) {
				return allowlist.Served{Version: "v1", Versions: []string{"v1"}}, true
			}}
			i := New(config)
			if name == "object" {
				i.config.Configuration = noConfiguration
			}
			i.state.Store(&state{until: begin().Add(testInterval)})
			asked := asking("patch", "apps", "deployments", "web")
			i.resources.remember(Target{Operation: "UPDATE", Group: "apps", Version: "v1", Resource: "deployments", Namespace: "shop", Name: "web"}, &proof{until: begin().Add(testInterval)})
			for b.Loop() {
				if err := i.Enforced(b.Context(), asked); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
