//go:build integration

package faults

import (
	"errors"
	"testing"
	"time"

	"github.com/fieldperm/fieldperm/test/cluster"
	"github.com/fieldperm/fieldperm/test/stack"
)

// TestFaults_SeveralAPIServers: fieldperm proves every API server that is published as an endpoint of the Service "kubernetes". Such
// endpoints may not have a loopback address.
func TestFaults_SeveralAPIServers(t *testing.T) {
	address, err := cluster.PublicAddress()
	must(t, err)
	if address == "" {
		t.Skip("this machine has loopback addresses only, which the API server refuses in EndpointSlices: give an interface an address")
	}
	config := configuration(t, stack.REST)
	config.Address = address
	c := open(t, config)
	must(t, c.AddAPIServer(t.Context(), "second", c.ServerConfig()))
	c.serve(t, "second")
	must(t, c.Publish(t.Context(), cluster.APIServer, "second"))
	c.start(t)
	bare := func(name string) func(t *testing.T, c *scene) {
		return func(t *testing.T, c *scene) {
			t.Helper()
			server := c.ServerConfig()
			server.ExtraArgs["disable-admission-plugins"] = []string{"ServiceAccount", "ValidatingAdmissionWebhook"}
			must(t, c.AddAPIServer(t.Context(), name, server))
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
