package authz

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/fieldperm"
)

// reloads returns the number of reloads of an identity.
func reloads(t *testing.T, identity, result string) float64 {
	t.Helper()
	hash := fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(identity)))
	return max(0, series(gather(t)["apiserver_authorization_config_controller_automatic_reloads_total"], "apiserver_id_hash="+hash, "status="+result))
}

// decider returns the name of the authorizer that decides on a request of bob. RBAC grants bob nothing.
func decider(t *testing.T, c *Chain) string {
	t.Helper()
	answer, err := c.For(by("bob")).Authorize(t.Context(), "update", false)
	if err != nil {
		return err.Error()
	}
	return answer.By
}

func TestKEP3221_ReloadPutsANewFileInForce(t *testing.T) {
	p := newPlace(t)
	one, two := newRemote(t, allow("")), newRemote(t, deny(""))
	p.configure(hook{name: "one", kubeconfig: p.kubeconfig("1", one)})
	chain := run(t, p.chain(Settings{Identity: p.dir}))
	if got := decider(t, chain); got != "one" {
		t.Fatalf("decided by %s", got)
	}
	before := chain.For(by("bob"))
	p.configure(hook{name: "two", kubeconfig: p.kubeconfig("2", two)})
	until(t, "the new one decides", func() bool { return decider(t, chain) == "two" })
	if err := chain.Fault(); err != nil {
		t.Errorf("fault: %v", err)
	}
	// Files that were written during the reload are read again.
	until(t, "the reload is counted", func() bool { return reloads(t, p.dir, "success") >= 1 })
	if n := reloads(t, p.dir, "failure"); n != 0 {
		t.Errorf("%v failures", n)
	}
	data, err := os.ReadFile(p.file())
	if err != nil {
		t.Fatal(err)
	}
	hash := func(text string) string { return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(text))) }
	if series(gather(t)["apiserver_authorization_config_controller_last_config_info"], "apiserver_id_hash="+hash(p.dir), "hash="+hash(string(data))) != 1 {
		t.Error("the configuration in force differs from last_config_info")
	}
	// A review ends on the chain that it started with.
	if answer, err := before.Authorize(t.Context(), "patch", false); err != nil || answer.By != "one" {
		t.Errorf("the review that began before: %+v, %v", answer, err)
	}
}

func TestKEP3221_RequestInFlightEndsOnTheChainThatItBeganWith(t *testing.T) {
	p := newPlace(t)
	g := newGate()
	one, two := newRemote(t, g.then(allow("one"))), newRemote(t, deny("two"))
	p.configure(hook{name: "one", kubeconfig: p.kubeconfig("1", one), timeout: "30s"})
	chain := run(t, p.chain(Settings{}))
	type outcome struct {
		answer fieldperm.AuthorizerDecision
		err    error
	}
	done := make(chan outcome)
	go func() {
		answer, err := chain.For(by("bob")).Authorize(t.Context(), "update", false)
		done <- outcome{answer, err}
	}()
	<-g.waits
	p.configure(hook{name: "two", kubeconfig: p.kubeconfig("2", two)})
	until(t, "the new one decides the same question", func() bool {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		old := chain.current.Load().webhooks[0].name == "one"
		if old {
			return false
		}
		answer, err := chain.For(by("bob")).Authorize(ctx, "update", false)
		return err == nil && answer.By == "two" && !answer.Allowed()
	})
	close(g.open)
	if got := <-done; got.err != nil || got.answer != (fieldperm.AuthorizerDecision{Outcome: fieldperm.Allow, Reason: "one", By: "one"}) {
		t.Errorf("got %+v", got)
	}
}

// A decision of a webhook is valid only under the configuration that asked for it.
func TestKEP3221_CachesEndWithTheirGeneration(t *testing.T) {
	p := newPlace(t)
	r := newRemote(t, allow(""))
	var seen notes
	h := hook{name: "hook", kubeconfig: p.kubeconfig("k", r)}
	p.configure(h)
	chain := run(t, p.chain(Settings{Observer: &seen}))
	for range 2 {
		decider(t, chain)
	}
	if r.questions() != 1 || seen.entries()["hook"] != 1 {
		t.Fatalf("asked %d times", r.questions())
	}
	// The same configuration in other words makes a new snapshot.
	first := chain.current.Load()
	p.configure("# Means the same.\n", h)
	until(t, "another snapshot is in force", func() bool { return chain.current.Load() != first })
	if n := seen.entries()["hook"]; n != 0 {
		t.Errorf("%d answers are in the new cache", n)
	}
	r.become(deny(""))
	if answer, err := chain.For(by("bob")).Authorize(t.Context(), "update", false); err != nil || answer.Allowed() {
		t.Errorf("got %+v, %v", answer, err)
	}
}

func TestKEP3221_FaultyFileLeavesTheLastGood(t *testing.T) {
	p := newPlace(t)
	r := newRemote(t, allow(""))
	good := hook{name: "good", kubeconfig: p.kubeconfig("k", r)}
	for name, c := range map[string]struct {
		entries []any
		line    int
		text    string
	}{
		"not YAML":             {[]any{"- {"}, 0, "YAML"},
		"unknown field":        {[]any{"- {type: RBAC, name: rbac, colour: red}\n"}, 4, "colour"},
		"two of a name":        {[]any{good, good}, 0, "good"},
		"a type twice":         {[]any{rbacEntry, rbacEntry}, 0, "RBAC"},
		"RBAC is added":        {[]any{good, rbacEntry}, 12, "restart"},
		"Node is added":        {[]any{nodeEntry, good}, 4, "restart"},
		"no kubeconfig":        {[]any{hook{name: "good", kubeconfig: p.path("none")}}, 0, "none"},
		"condition is no bool": {[]any{hook{name: "good", kubeconfig: p.path("k"), conditions: []string{"request.user"}}}, 0, "bool"},
	} {
		t.Run(name, func(t *testing.T) {
			p := place{t, t.TempDir()}
			p.configure(good)
			chain := run(t, p.chain(Settings{Identity: p.dir}))
			p.configure(c.entries...)
			until(t, "the file is refused", func() bool { return chain.Fault() != nil })
			err := chain.Fault()
			if !strings.Contains(err.Error(), p.file()+":") || !strings.Contains(err.Error(), c.text) || !strings.Contains(err.Error(), fmt.Sprintf(":%d", c.line)) && c.line > 0 {
				t.Errorf("fault: %v", err)
			}
			if got := decider(t, chain); got != "good" {
				t.Errorf("decided by %s", got)
			}
			if reloads(t, p.dir, "failure") < 1 || reloads(t, p.dir, "success") != 0 {
				t.Error("the failure is not counted as one")
			}
			p.configure(hook{name: "cured", kubeconfig: good.kubeconfig})
			until(t, "the cured file decides", func() bool { return decider(t, chain) == "cured" })
			until(t, "the fault is over", func() bool { return chain.Fault() == nil })
		})
	}
}

func TestKEP3221_RBACIsNotDroppedAndMayBeMoved(t *testing.T) {
	p := newPlace(t)
	r := newRemote(t, pass())
	h := hook{name: "hook", kubeconfig: p.kubeconfig("k", r)}
	p.configure(rbacEntry, nodeEntry, h)
	chain := run(t, p.chain(Settings{newRoles: mayAll(t, "alice")}))
	for _, entries := range [][]any{{h, nodeEntry}, {rbacEntry, h}} {
		p.configure(entries...)
		until(t, "the file is refused", func() bool {
			err := chain.Fault()
			return err != nil && strings.Contains(err.Error(), "is not dropped by a reload: restart fieldperm, or put it back")
		})
		if answer, err := chain.For(request()).Authorize(t.Context(), "update", false); err != nil || answer.By != "rbac" || r.questions() > 0 {
			t.Errorf("got %+v, %v", answer, err)
		}
		p.configure(rbacEntry, nodeEntry, h)
		until(t, "the fault is over", func() bool { return chain.Fault() == nil })
	}
	p.configure(h, rbacEntry, nodeEntry)
	until(t, "the webhook is asked first", func() bool {
		_, err := chain.For(request()).Authorize(t.Context(), "update", false)
		return err == nil && r.questions() > 0
	})
}

func TestKEP3221_AnUnhealthyWebhookLeavesTheLastGood(t *testing.T) {
	all := faults()
	all["allows and denies"] = both()
	for name, fault := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			good, sick := newRemote(t, allow("")), newRemote(t, fault)
			one := hook{name: "good", kubeconfig: p.kubeconfig("1", good)}
			p.configure(one)
			chain := run(t, p.chain(Settings{}))
			// Match conditions do not exempt a webhook from the health check, even if they exclude every question.
			two := hook{name: "sick", kubeconfig: p.kubeconfig("2", sick), timeout: "100ms", conditions: []string{"false"}}
			if name != "hangs" {
				two.timeout = "10s"
			}
			p.configure(one, two)
			until(t, "the file is refused", func() bool { return chain.Fault() != nil })
			err := chain.Fault()
			if want := p.file() + `:14: authorizers[1].webhook: authorizer "sick" does not answer: `; !strings.HasPrefix(err.Error(), want) || !strings.HasSuffix(err.Error(), "correct its connectionInfo") {
				t.Errorf("fault: %v", err)
			}
			if got := decider(t, chain); got != "good" {
				t.Errorf("decided by %s", got)
			}
			// The reload is tried again without a change of a file.
			sick.become(pass())
			until(t, "the fault is over", func() bool { return chain.Fault() == nil })
			if n := len(chain.current.Load().webhooks); n != 2 {
				t.Errorf("%d webhooks", n)
			}
		})
	}
}

func TestKEP3221_InClusterConfigIsHealthCheckedToo(t *testing.T) {
	p := newPlace(t)
	hookServer, api := newRemote(t, allow("")), newRemote(t, code(http.StatusForbidden))
	one := hook{name: "one", kubeconfig: p.kubeconfig("1", hookServer)}
	p.configure(one)
	chain := run(t, p.chain(Settings{Cluster: api.Config()}))
	p.configure(one, hook{name: "api"})
	until(t, "the file is refused", func() bool { return chain.Fault() != nil })
	if err := chain.Fault(); !strings.Contains(err.Error(), `authorizer "api" does not answer`) {
		t.Errorf("fault: %v", err)
	}
	api.become(pass())
	until(t, "the fault is over", func() bool { return chain.Fault() == nil })
}

// Like kube-apiserver, fieldperm rereads the files that a kubeconfig names. It replaces the chain to do so.
func TestKEP3221_FilesOfAKubeconfigCount(t *testing.T) {
	p := newPlace(t)
	one, two := newRemote(t, allow("one")), newRemote(t, allow("two"))
	p.configure(hook{name: "hook", kubeconfig: p.kubeconfig("k", one), more: keepNone})
	chain := run(t, p.chain(Settings{}))
	reason := func() string {
		answer, err := chain.For(by("bob")).Authorize(t.Context(), "update", false)
		if err != nil {
			return err.Error()
		}
		return answer.Reason
	}
	if got := reason(); got != "one" {
		t.Fatal(got)
	}
	p.write("k.token", "another")
	until(t, "the new token is sent", func() bool {
		return reason() == "one" && one.headers[len(one.headers)-1].Get("Authorization") == "Bearer another"
	})
	// The address changes first: the CA is still the previous one, so the new webhook is not healthy.
	config, err := os.ReadFile(p.path("k"))
	if err != nil {
		t.Fatal(err)
	}
	p.write("k", strings.ReplaceAll(string(config), one.URL, two.URL))
	until(t, "the new address is refused", func() bool {
		err := chain.Fault()
		return err != nil && strings.Contains(err.Error(), "x509")
	})
	if got := reason(); got != "one" {
		t.Errorf("meanwhile: %s", got)
	}
	p.write("k.ca", string(two.CA()))
	until(t, "the new address answers", func() bool { return reason() == "two" })
	until(t, "the fault is over", func() bool { return chain.Fault() == nil })
	p.write("k.ca", "no certificate")
	until(t, "the CA is refused", func() bool { return chain.Fault() != nil })
	if got := reason(); got != "two" {
		t.Errorf("with a CA that is none: %s", got)
	}
}

func TestKEP3221_ARemovedFileLeavesTheLastGood(t *testing.T) {
	p := newPlace(t)
	r := newRemote(t, allow(""))
	h := hook{name: "hook", kubeconfig: p.kubeconfig("k", r)}
	p.configure(h)
	chain := run(t, p.chain(Settings{Identity: p.dir}))
	if err := os.Remove(p.file()); err != nil {
		t.Fatal(err)
	}
	until(t, "it is a fault that is counted again and again", func() bool { return chain.Fault() != nil && reloads(t, p.dir, "failure") >= 2 })
	if got := decider(t, chain); got != "hook" {
		t.Errorf("decided by %s", got)
	}
	p.configure(h)
	until(t, "the fault is over", func() bool { return chain.Fault() == nil })
}
