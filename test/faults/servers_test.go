//go:build integration

package faults

import (
	"errors"
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/fieldperm/fieldperm/test/cluster"
	"github.com/fieldperm/fieldperm/test/stack"
)

// restarts is how often TestFaults_AServerThatStartsAgain ends an API server.
var restarts = flag.Int("restarts", 2, "how often an API server is killed and starts again without the webhook")

// openTwo opens a scene with two API servers, and starts its writers.
func openTwo(t *testing.T, arguments ...string) *scene {
	t.Helper()
	address, err := cluster.PublicAddress()
	must(t, err)
	if address == "" {
		t.Skip("this machine has loopback addresses only, which the API server refuses in EndpointSlices: give an interface an address")
	}
	config := configuration(t, stack.REST)
	config.Address = address
	config.Arguments = append(config.Arguments, arguments...)
	c := open(t, config)
	must(t, c.AddAPIServer(t.Context(), "second", c.ServerConfig()))
	c.serve(t, "second")
	must(t, c.Publish(t.Context(), cluster.APIServer, "second"))
	c.start(t)
	return c
}

// withoutWebhook returns the flags of an API server that calls no webhook.
func withoutWebhook(c *scene) cluster.Config {
	server := c.ServerConfig()
	server.ExtraArgs["disable-admission-plugins"] = []string{"ServiceAccount", "ValidatingAdmissionWebhook"}
	return server
}

// TestFaults_AServerThatStartsAgain: a proof is about one run of a process. An API server is killed, and starts again at once, at the same address, without
// the webhook. No round of proofs is in between: only the end of its watch shows it.
func TestFaults_AServerThatStartsAgain(t *testing.T) {
	c := openTwo(t, "--interlock-interval=20s", "--release-delay=3m")
	again := func(config func(*scene) cluster.Config) action {
		return func(t *testing.T, c *scene) {
			t.Helper()
			crash("second")(t, c)
			must(t, c.Replace("second", config(c)))
			boot("second")(t, c)
		}
	}
	var faults []fault
	for i := range *restarts {
		faults = append(faults, fault{
			name: fmt.Sprintf("killed, and starts again without the webhook, %d", i+1), generic: true, lasts: authorizedTTL, end: again((*scene).ServerConfig),
			begin: func(t *testing.T, c *scene) {
				t.Helper()
				c.auditor.barriersDown.Store(true)
				again(withoutWebhook)(t, c)
			},
		})
	}
	c.playAll(t, "an API server that starts again", faults)
}

// TestFaults_SeveralAPIServers: fieldperm proves every API server that is published as an endpoint of the Service "kubernetes". Such
// endpoints may not have a loopback address.
func TestFaults_SeveralAPIServers(t *testing.T) {
	c := openTwo(t)
	bare := func(name string) func(t *testing.T, c *scene) {
		return func(t *testing.T, c *scene) {
			t.Helper()
			must(t, c.AddAPIServer(t.Context(), name, withoutWebhook(c)))
		}
	}
	// ends stops an API server.
	ends := func(name string) action {
		return func(t *testing.T, c *scene) {
			t.Helper()
			c.leave(name)
			must(t, c.Publish(t.Context(), cluster.APIServer, "second"))
			must(t, c.Shutdown(name))
		}
	}
	c.playAll(t, "several API servers", []fault{
		{name: "two API servers", lasts: time.Second, spared: true},
		{name: "one of two restarts", generic: true, begin: shutdown("second"), end: boot("second")},
		{
			name: "one without the webhook, published first", lasts: tamperLasts, end: ends("published"),
			begin: func(t *testing.T, c *scene) {
				t.Helper()
				// The barrier does not hold for a user that another authorizer lets in, because this API server does not ask fieldperm.
				c.auditor.barriersDown.Store(true)
				// The server is not running yet and cannot be proven. That alone makes enforcement not proven.
				port, err := cluster.FreePort()
				must(t, err)
				must(t, c.PublishAt(t.Context(), port, cluster.APIServer, "second"))
				await(t, recoverWithin, func() error {
					if !c.allOpen(t) {
						return errors.New("the interlock is closed")
					}
					return nil
				})
				bare("published")(t, c)
				must(t, c.Publish(t.Context(), cluster.APIServer, "second", "published"))
				c.serve(t, "published")
			},
			check: func(t *testing.T, c *scene, _ time.Time, _ []event) time.Duration {
				t.Helper()
				if !c.allOpen(t) {
					t.Error("the interlock is closed while one API server has no webhook")
				}
				c.requireEvent(t, "InterlockOpened", stack.Configuration)
				return 0
			},
		},
		{
			name: "one without the webhook, not published for 1 s", lasts: tamperLasts, window: time.Second + tamperWindow, end: ends("unannounced"),
			begin: func(t *testing.T, c *scene) {
				t.Helper()
				c.auditor.barriersDown.Store(true)
				bare("unannounced")(t, c)
				c.tampered = time.Now()
				c.serve(t, "unannounced")
				time.Sleep(time.Second)
				must(t, c.Publish(t.Context(), cluster.APIServer, "second", "unannounced"))
			},
		},
	})
}
