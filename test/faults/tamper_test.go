//go:build integration

package faults

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/yaml"

	"github.com/fieldperm/fieldperm/test/cluster"
	"github.com/fieldperm/fieldperm/test/stack"
)

const (
	// probeTimeout is the time that fieldperm waits for the answer to a probe.
	probeTimeout = 3 * time.Second
	// proofLife is the time for which a proof is valid.
	proofLife = 2 * interval
	// releaseDelay is the time for which fieldperm holds a deleted configuration here. The default is much longer.
	releaseDelay = 10 * time.Second

	// tamperLasts is longer than the lifetime of any earlier Allow.
	tamperLasts = authorizedTTL + proofLife + time.Second
	// tamperWindow is the time in which forbidden writes may be stored: until the next probe has returned or timed out, fieldperm gives no
	// Allow by the last proof, and kube-apiserver has dropped the last Allow.
	tamperWindow = interval + probeTimeout + authorizedTTL
	// staticWindow is shorter: a changed file makes enforcement unproven at once, or at the next check if no file event occurs.
	staticWindow = time.Second + authorizedTTL
)

// removal is the effect of "kubectl delete" of all objects: fieldperm leaves in a safe order, whatever the order of the deletions.
func removal() []fault {
	return []fault{{
		name: "delete every webhook configuration", begin: func(t *testing.T, c *scene) {
			t.Helper()
			// Barriers may be gone here. The test checks that nothing else is.
			c.auditor.barriersDown.Store(true)
			configurations := c.admin.AdmissionregistrationV1().ValidatingWebhookConfigurations()
			for _, name := range []string{stack.UncoveredConfiguration, stack.Configuration} {
				if err := configurations.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil && !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) {
					t.Fatal(err)
				}
			}
			await(t, releaseDelay+5*time.Second, func() error {
				_, err := configurations.Get(t.Context(), stack.Configuration, metav1.GetOptions{})
				if apierrors.IsNotFound(err) {
					return nil
				}
				return fmt.Errorf("%q is still there: %w", stack.Configuration, orNone(err))
			})
		}, lasts: time.Second, end: restore,
	}}
}

// tampering are changes by a member of system:masters. A change that the guard refuses has no effect. Without the guard fieldperm notices
// the change, after a window.
func tampering() []fault {
	return []fault{
		{name: "tamper under the guard", spared: true, begin: func(t *testing.T, c *scene) {
			t.Helper()
			for name, change := range map[string]loosening{
				"failurePolicy Ignore": ignore, "rules narrowed": narrow, "CA replaced": replaceCA, "object selector": selectObjects, "finalizer removed": forget,
			} {
				if err := c.tamper(t, change); !apierrors.IsForbidden(err) {
					t.Errorf("%s: %v, want a refusal by the guard", name, err)
				}
			}
		}},
		unguarded("failurePolicy Ignore", ignore, nil),
		unguarded("failurePolicy Ignore, fieldperm killed", ignore, kill(0, 1)),
		unguarded("rules narrowed", narrow, nil),
		unguarded("CA replaced", replaceCA, nil),
		unguarded("object selector", selectObjects, nil),
		unguarded("finalizer removed, then deleted", forget, func(t *testing.T, c *scene) {
			t.Helper()
			must(t, c.admin.AdmissionregistrationV1().ValidatingWebhookConfigurations().Delete(t.Context(), stack.Configuration, metav1.DeleteOptions{}))
		}),
	}
}

// loosening changes a configuration so that it no longer enforces, or so that a later change could make it so.
type loosening func(*admissionregistrationv1.ValidatingWebhookConfiguration)

func ignore(c *admissionregistrationv1.ValidatingWebhookConfiguration) {
	policy := admissionregistrationv1.Ignore
	everyWebhook(c, func(w *admissionregistrationv1.ValidatingWebhook) { w.FailurePolicy = &policy })
}

// narrow removes Deployments from the rules.
func narrow(c *admissionregistrationv1.ValidatingWebhookConfiguration) {
	everyWebhook(c, func(w *admissionregistrationv1.ValidatingWebhook) {
		for i := range w.Rules {
			w.Rules[i].APIGroups = []string{""}
		}
	})
}

func replaceCA(c *admissionregistrationv1.ValidatingWebhookConfiguration) {
	everyWebhook(c, func(w *admissionregistrationv1.ValidatingWebhook) { w.ClientConfig.CABundle = foreignBundle() })
}

func selectObjects(c *admissionregistrationv1.ValidatingWebhookConfiguration) {
	everyWebhook(c, func(w *admissionregistrationv1.ValidatingWebhook) {
		w.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"chosen": "true"}}
	})
}

func forget(c *admissionregistrationv1.ValidatingWebhookConfiguration) { c.Finalizers = nil }

func everyWebhook(c *admissionregistrationv1.ValidatingWebhookConfiguration, change func(*admissionregistrationv1.ValidatingWebhook)) {
	for i := range c.Webhooks {
		change(&c.Webhooks[i])
	}
}

// foreignBundle is the bundle of a CA that signed no certificate here.
func foreignBundle() []byte {
	authority, err := cluster.NewAuthority("foreign")
	if err != nil {
		return nil
	}
	bundle, err := authority.Bundle()
	if err != nil {
		return nil
	}
	return bundle
}

// tamper changes fieldperm's configuration as the administrator, or only tries the change with a dry run.
func (c *scene) tamper(t *testing.T, change loosening, dryRun ...string) error {
	t.Helper()
	configurations := c.admin.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		configuration, err := configurations.Get(context.WithoutCancel(t.Context()), stack.Configuration, metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(configuration)
		_, err = configurations.Update(context.WithoutCancel(t.Context()), configuration, metav1.UpdateOptions{DryRun: dryRun})
		return err
	})
}

// unguarded tampers after the guard was removed, and checks that fieldperm notices the change and reports it. then follows at once.
func unguarded(name string, change loosening, then action) fault {
	var before []int
	var intact *admissionregistrationv1.ValidatingWebhookConfiguration
	return fault{
		name: "no guard: " + name, lasts: tamperLasts, window: tamperWindow,
		begin: func(t *testing.T, c *scene) {
			t.Helper()
			c.auditor.barriersDown.Store(true)
			var err error
			intact, err = c.admin.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(t.Context(), stack.Configuration, metav1.GetOptions{})
			must(t, err)
			before = c.withdrawals(t)
			must(t, c.admin.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Delete(t.Context(), guardName, metav1.DeleteOptions{}))
			// The API server learns by a watch that the guard is gone.
			await(t, 20*time.Second, func() error { return c.tamper(t, change) })
			c.tampered = time.Now()
			if then != nil {
				then(t, c)
			}
		},
		check: func(t *testing.T, c *scene, _ time.Time, _ []event) time.Duration {
			t.Helper()
			c.requireWithdrawn(t, before)
			c.requireEvent(t, "EnforcementNotProven", stack.Configuration)
			return 0
		},
		end: func(t *testing.T, c *scene) {
			t.Helper()
			// Do not use apply here: it does not remove fields that other managers have added.
			err := c.tamper(t, func(w *admissionregistrationv1.ValidatingWebhookConfiguration) {
				w.Webhooks, w.Finalizers = intact.Webhooks, intact.Finalizers
			})
			if !apierrors.IsNotFound(err) {
				must(t, err)
			}
			restore(t, c)
		},
	}
}

const guardName = "fieldperm-guard"

// restore installs fieldperm again, starts the processes that are not running, and waits for the guard.
func restore(t *testing.T, c *scene) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	must(t, c.Apply(ctx, c.File("webhooks.yaml")))
	must(t, c.Apply(ctx, c.File("guard.yaml")))
	for number := range c.Replicas() {
		if !c.Running(number) {
			launch(number)(t, c)
		}
	}
	await(t, 20*time.Second, func() error {
		if err := c.tamper(t, ignore, metav1.DryRunAll); !apierrors.IsForbidden(err) {
			return fmt.Errorf("the guard is not in force yet: %w", orNone(err))
		}
		return nil
	})
}

// staticTampering are changes by an administrator that may write the files of the control plane. No webhook can refuse them. fieldperm
// notices them when kube-apiserver does.
func staticTampering() []fault {
	edited := func(name string, change loosening) fault {
		return manifest(name, func(content []byte) ([]byte, error) { return loosened(content, change) })
	}
	killed := edited("has failurePolicy Ignore, fieldperm killed", ignore)
	tampered := killed.begin
	killed.begin = func(t *testing.T, c *scene) { t.Helper(); tampered(t, c); kill(0, 1)(t, c) }
	mend := killed.end
	killed.end = func(t *testing.T, c *scene) { t.Helper(); mend(t, c); launch(0, 1)(t, c) }
	killed.check = nil // No process is left that could report it.
	return []fault{
		edited("narrowed", narrow),
		edited("spares one object", func(configuration *admissionregistrationv1.ValidatingWebhookConfiguration) {
			everyWebhook(configuration, func(w *admissionregistrationv1.ValidatingWebhook) {
				w.MatchConditions = append(w.MatchConditions, admissionregistrationv1.MatchCondition{Name: "spared", Expression: "request.name != 'scaled-0'"})
			})
		}),
		edited("has failurePolicy Ignore", ignore),
		killed,
		edited("has a decoy", decoy),
		manifest("emptied", nil),
	}
}

// loosened changes a manifest.
func loosened(manifest []byte, change loosening) ([]byte, error) {
	var configuration admissionregistrationv1.ValidatingWebhookConfiguration
	if err := yaml.Unmarshal(manifest, &configuration); err != nil {
		return nil, err
	}
	change(&configuration)
	return yaml.Marshal(configuration)
}

// decoy makes a webhook of another name answer probes, while the rules of granular do not contain Deployments.
func decoy(c *admissionregistrationv1.ValidatingWebhookConfiguration) {
	answering := c.Webhooks[0].DeepCopy()
	answering.Name = "decoy.example.com"
	answering.Rules[0].Resources, answering.Rules[0].APIGroups = []string{"configmaps"}, []string{""}
	narrow(c)
	c.Webhooks = append(c.Webhooks, *answering)
}

// manifest changes or removes the static manifest.
func manifest(name string, change func([]byte) ([]byte, error)) fault {
	var intact []byte
	var before []int
	write := func(t *testing.T, c *scene, content []byte) {
		t.Helper()
		// The API server reads every file of the directory, so the new file is written in another directory.
		draft := c.File("draft.yaml")
		must(t, os.WriteFile(draft, content, 0o600))
		must(t, os.Rename(draft, c.File(staticManifest)))
	}
	return fault{
		name: "static directory " + name, lasts: tamperLasts, window: staticWindow,
		begin: func(t *testing.T, c *scene) {
			t.Helper()
			c.auditor.barriersDown.Store(true)
			before = c.withdrawals(t)
			var err error
			intact, err = os.ReadFile(c.File(staticManifest))
			must(t, err)
			if change == nil {
				must(t, os.Remove(c.File(staticManifest)))
			} else {
				changed, err := change(intact)
				must(t, err)
				write(t, c, changed)
			}
			c.tampered = time.Now()
		},
		check: func(t *testing.T, c *scene, _ time.Time, _ []event) time.Duration {
			t.Helper()
			c.requireWithdrawn(t, before)
			c.requireEvent(t, "EnforcementNotProven", "fieldperm.static.k8s.io")
			return 0
		},
		end: func(t *testing.T, c *scene) { t.Helper(); write(t, c, intact) },
	}
}

const staticManifest = "admission/fieldperm.yaml"

// requireWithdrawn checks that the metric of every replica that ran all the time has counted a loss of the enforcement proof.
func (c *scene) requireWithdrawn(t *testing.T, before []int) {
	t.Helper()
	for number, after := range c.withdrawals(t) {
		if after >= 0 && before[number] >= 0 && after <= before[number] {
			t.Errorf("replica %d: fieldperm_enforcement_transitions_total{to=\"not_proven\"} is %d as before", number, after)
		}
	}
}

// withdrawals returns how often each replica lost its enforcement proof, -1 for a replica that is not running.
func (c *scene) withdrawals(t *testing.T) []int {
	t.Helper()
	return c.metric(t, `fieldperm_enforcement_transitions_total{to="not_proven"}`)
}

// allNotProven reports whether enforcement is not proven at every replica.
func (c *scene) allNotProven(t *testing.T) bool {
	t.Helper()
	return !slices.Contains(c.metric(t, "fieldperm_enforcement_proven"), 1)
}

// metric returns the value of a metric of each replica, -1 for a replica that is not running.
func (c *scene) metric(t *testing.T, name string) []int {
	t.Helper()
	client, err := c.WebhookClient()
	must(t, err)
	defer client.CloseIdleConnections()
	line := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(name) + ` (\d+)$`)
	var out []int
	for number := range c.Replicas() {
		value := -1
		if response, err := client.Get(c.ReplicaURL(number) + "/metrics"); err == nil {
			body, err := io.ReadAll(response.Body)
			must(t, errors.Join(err, response.Body.Close()))
			match := line.FindSubmatch(body)
			if match == nil {
				t.Fatalf("replica %d: has no metric %s", number, name)
			}
			value, err = strconv.Atoi(string(match[1]))
			must(t, err)
		}
		out = append(out, value)
	}
	return out
}

// requireEvent waits for an Event about fieldperm's configuration. Repeated Events are merged into the first one.
func (c *scene) requireEvent(t *testing.T, reason, configuration string) {
	t.Helper()
	await(t, 10*time.Second, func() error {
		events, err := c.admin.EventsV1().Events(metav1.NamespaceDefault).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, e := range events.Items {
			if e.Reason == reason && e.Regarding.Name == configuration {
				return nil
			}
		}
		return fmt.Errorf("no Event %s about %q", reason, configuration)
	})
}
