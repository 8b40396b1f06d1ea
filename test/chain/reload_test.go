//go:build integration

package chain

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// kep3221 are the nine metrics of KEP-3221.
var kep3221 = []string{
	"apiserver_authorization_decisions_total",
	"apiserver_authorization_webhook_evaluations_total",
	"apiserver_authorization_webhook_duration_seconds_bucket",
	"apiserver_authorization_webhook_evaluations_fail_open_total",
	"apiserver_authorization_config_controller_automatic_reload_last_timestamp_seconds",
	"apiserver_authorization_config_controller_automatic_reloads_total",
	"apiserver_authorization_match_condition_evaluation_errors_total",
	"apiserver_authorization_match_condition_exclusions_total",
	"apiserver_authorization_match_condition_evaluation_seconds_bucket",
}

// TestKEP3221_Reload: a new file is in force without a restart. If a file is faulty, or its webhooks do not answer, the last configuration
// stays in force, and fieldperm says why.
func TestKEP3221_Reload(t *testing.T) {
	s := on(t, healthy)
	s.inForce = ""
	reloads := func(status string) string {
		return series(s.metrics(t), "apiserver_authorization_config_controller_automatic_reloads_total", `status="`+status+`"`)
	}
	if got := reloads("success") + reloads("failure"); got != "" {
		t.Errorf("before any reload %s", got)
	}
	rob, n := s.wire(t, person{name: "rob", groups: []string{scalers}}), 20
	change := func() (int, string) {
		n++
		answer := s.patch(t, rob, protected, replicas(n))
		return answer.Code, answer.Status.Message
	}
	inForce := func(code int) {
		t.Helper()
		eventually(t, func() error {
			if got, message := change(); got != code {
				return fmt.Errorf("got %d, want %d: %s", got, code, message)
			}
			return nil
		})
	}
	inForce(http.StatusForbidden)

	// The new file does not have the webhook that denies.
	must(t, s.writeChain(chainOf(entry{name: inCluster})))
	inForce(http.StatusOK)
	if reloads("success") == "" {
		t.Error("the reload was not counted")
	}

	for name, c := range map[string]struct {
		content string
		says    []string
	}{
		"an unknown field": {
			chainHead + strings.Replace(entry{name: "protector", kubeconfig: s.protector.kubeconfig}.String(), "failurePolicy", "failPolicy", 1),
			[]string{s.authorization() + ":", "failPolicy"},
		},
		"a webhook that does not run": {
			chainOf(entry{name: "protector", kubeconfig: s.protector.kubeconfig}, entry{name: "closed", kubeconfig: s.closed}, entry{name: inCluster}),
			[]string{"closed"},
		},
		"RBAC added": {chainHead + rbacEntry + entry{name: inCluster}.String(), []string{"restart"}},
	} {
		must(t, s.writeChain(c.content))
		eventually(t, func() error {
			code, body := s.get(t, "/readyz?verbose")
			if code != http.StatusOK {
				t.Fatalf("%s: /readyz: %d: %s", name, code, body)
			}
			if !strings.Contains(body, "[!]authorization: an earlier configuration is in force") {
				return fmt.Errorf("%s: /readyz?verbose: %s", name, body)
			}
			for _, part := range c.says {
				if log := s.WebhookLogTail(); !strings.Contains(log, part) {
					return fmt.Errorf("%s: the log lacks %q: %s", name, part, log)
				}
			}
			return nil
		})
		if got, message := change(); got != http.StatusOK {
			t.Errorf("%s: the last good file is not in force: %d: %s", name, got, message)
		}
	}
	if reloads("failure") == "" {
		t.Error("the failures were not counted")
	}

	// This webhook answers now, and fails later.
	s.failing.fail(0)
	defer s.failing.fail(http.StatusInternalServerError)
	namespace := downIn("failing", "NoOpinion")
	must(t, s.writeChain(chainOf(append(s.inOrder(),
		entry{name: "failing", kubeconfig: s.failing.kubeconfig, conditions: []string{inNamespace(namespace), aboutFields}},
		entry{name: erring, kubeconfig: s.skipped.kubeconfig, conditions: []string{inNamespace(erring) + " && " + aboutFields + " && request.extra['example.com/absent'][0] == 'x'"}},
		entry{name: inCluster},
	)...)))
	inForce(http.StatusForbidden)
	eventually(t, func() error {
		if _, body := s.get(t, "/readyz?verbose"); strings.Contains(body, "[!]authorization") {
			return errors.New(body)
		}
		return nil
	})
	// A changed kubeconfig also causes a reload: the webhook that denies is replaced by one without an opinion.
	_, err := s.watcher.introduceAs(s.dir, "protector")
	must(t, err)
	inForce(http.StatusOK)
	must(t, s.protector.introduce(s.dir))
	inForce(http.StatusForbidden)

	s.failing.fail(http.StatusInternalServerError)
	// The files of kube-apiserver are in the same directory: a change there makes fieldperm prove them again.
	eventually(t, func() error {
		if code, body := s.get(t, "/readyz/enforcement"); code != http.StatusOK {
			return errors.New(body)
		}
		return nil
	})
	roy := s.wire(t, person{name: "roy", groups: []string{owners}})
	expect(t, s.patch(t, roy, namespace, replicas(30)), http.StatusOK)
	expect(t, s.patch(t, roy, erring, replicas(30)), http.StatusOK)
	metrics := s.metrics(t)
	for _, name := range kep3221 {
		if series(metrics, name) == "" {
			t.Errorf("%s: is not there", name)
		}
	}
}

// TestKEP3331_Reload: the same for the issuers whose tokens are accepted.
func TestKEP3331_Reload(t *testing.T) {
	s := on(t, healthy)
	content := s.issuers()
	t.Cleanup(func() { must(t, replace(s.authentication(), content)) })
	uma := s.mustToken(t, person{name: "uma", groups: []string{scalers}})
	name := func(want string) {
		t.Helper()
		eventually(t, func() error {
			code, body := s.tell(t, http.MethodPost, "/review", uma, question(one, paused, ""))
			if code != http.StatusOK || !strings.Contains(body, want) {
				return fmt.Errorf("%d: %s", code, body)
			}
			return nil
		})
	}
	name(`jwt:uma`)
	must(t, replace(s.authentication(), strings.ReplaceAll(content, "'jwt:'", "'oidc:'")))
	name(`oidc:uma`)
	must(t, replace(s.authentication(), strings.ReplaceAll(content, "audiences", "audience")))
	eventually(t, func() error {
		// kube-apiserver's own token has another user name now, so that enforcement may be unproven.
		_, body := s.get(t, "/readyz?verbose")
		if log := s.WebhookLogTail(); !strings.Contains(body, "[!]authentication: an earlier configuration is in force") || !strings.Contains(log, s.authentication()+":") {
			return fmt.Errorf("%s: %s", body, log)
		}
		return nil
	})
	name(`oidc:uma`)
	must(t, replace(s.authentication(), content))
	name(`jwt:uma`)
}
