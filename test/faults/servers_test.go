//go:build integration

package faults

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/fieldperm/fieldperm/test/cluster"
	"github.com/fieldperm/fieldperm/test/stack"
)

// restarts is how often TestFaults_AServerThatStartsAgain ends an API server in each way.
var restarts = flag.Int("restarts", 1, "how often an API server is killed and starts again, in each way")

// openTwo opens a scene with two API servers, and starts its writers.
func openTwo(t *testing.T, topology stack.Topology, arguments ...string) *scene {
	t.Helper()
	address, err := cluster.PublicAddress()
	must(t, err)
	if address == "" {
		t.Skip("this machine has loopback addresses only, which the API server refuses in EndpointSlices: give an interface an address")
	}
	config := configuration(t, topology)
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

// withoutAuthorizer returns the flags of an API server that does not ask fieldperm who may write.
func withoutAuthorizer(t *testing.T, c *scene) cluster.Config {
	t.Helper()
	server := c.ServerConfig()
	server.AuthorizationConfig = filepath.Join(t.TempDir(), "authorization.yaml")
	must(t, os.WriteFile(server.AuthorizationConfig, []byte(`apiVersion: apiserver.config.k8s.io/v1
kind: AuthorizationConfiguration
authorizers:
- {type: Node, name: node}
- {type: RBAC, name: rbac}
`), 0o600))
	return server
}

// withOtherManifest returns the flags of an API server whose static manifest leaves out what the scalers write.
func withOtherManifest(t *testing.T, c *scene) cluster.Config {
	t.Helper()
	server, dir := c.ServerConfig(), t.TempDir()
	manifest, err := os.ReadFile(c.File(staticManifest))
	must(t, err)
	narrowed, err := loosened(manifest, narrow)
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, filepath.Base(staticManifest)), narrowed, 0o600))
	config, err := os.ReadFile(server.AdmissionConfig)
	must(t, err)
	server.AdmissionConfig = c.File("other.yaml") // Beside the first, whose paths are relative.
	must(t, os.WriteFile(server.AdmissionConfig, regexp.MustCompile(`staticManifestsDir: .*`).ReplaceAll(config, []byte("staticManifestsDir: "+dir)), 0o600))
	return server
}

// TestFaults_AServerThatStartsAgain: a proof is about one run of a process. An API server is killed, and starts again at once, at the same address, otherwise
// than before. No round of proofs is in between: only the end of its watch shows it.
func TestFaults_AServerThatStartsAgain(t *testing.T) {
	for _, scenes := range []struct {
		title    string
		topology stack.Topology
		ways     map[string]func(*testing.T, *scene) cluster.Config
	}{
		{"objects of the API server", stack.REST, map[string]func(*testing.T, *scene) cluster.Config{
			"without the webhook": func(_ *testing.T, c *scene) cluster.Config { return withoutWebhook(c) }, "without the authorizer": withoutAuthorizer,
		}},
		{"static manifests", stack.Static, map[string]func(*testing.T, *scene) cluster.Config{"with another file": withOtherManifest}},
	} {
		t.Run(strings.ReplaceAll(scenes.title, " ", "_"), func(t *testing.T) {
			c := openTwo(t, scenes.topology, "--proof-interval=20s", "--release-delay=3m")
			again := func(t *testing.T, config cluster.Config) {
				t.Helper()
				crash("second")(t, c)
				must(t, c.Replace("second", config))
				boot("second")(t, c)
			}
			var faults []fault
			for i := range *restarts {
				for way, config := range scenes.ways {
					faults = append(faults, fault{
						name: fmt.Sprintf("killed, and starts again %s, %d", way, i+1), generic: true, lasts: authorizedTTL,
						end: func(t *testing.T, c *scene) { t.Helper(); again(t, c.ServerConfig()) },
						begin: func(t *testing.T, c *scene) {
							t.Helper()
							c.auditor.barriersDown.Store(true)
							again(t, config(t, c))
						},
					})
				}
			}
			c.playAll(t, "an API server that starts again: "+scenes.title, faults)
		})
	}
}

// TestFaults_SeveralAPIServers: fieldperm proves every API server that is published as an endpoint of the Service "kubernetes". Such
// endpoints may not have a loopback address.
func TestFaults_SeveralAPIServers(t *testing.T) {
	c := openTwo(t, stack.REST)
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
					if !c.allNotProven(t) {
						return errors.New("enforcement is proven")
					}
					return nil
				})
				bare("published")(t, c)
				must(t, c.Publish(t.Context(), cluster.APIServer, "second", "published"))
				c.serve(t, "published")
			},
			check: func(t *testing.T, c *scene, _ time.Time, _ []event) time.Duration {
				t.Helper()
				if !c.allNotProven(t) {
					t.Error("enforcement is proven while one API server has no webhook")
				}
				c.requireEvent(t, "EnforcementNotProven", stack.Configuration)
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
