package authz

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/fieldperm/fieldperm/fieldperm"
)

// A webhook that fails denies nothing: under failurePolicy Deny the user gets a 500, and the metric of decisions does not count a denial.
func TestKEP3221_P4_AFailureIsNotCountedAsADenial(t *testing.T) {
	suffix := strconv.FormatInt(time.Now().UnixNano(), 36)
	failing, contradicting, denying := "failing-"+suffix, "contradicting-"+suffix, "denying-"+suffix
	condition := "condition-" + suffix
	for name, h := range map[string]hook{
		failing:       {kubeconfig: "f"},
		contradicting: {kubeconfig: "c"},
		condition:     {kubeconfig: "d", conditions: []string{"request.nonResourceAttributes.path == '/'"}},
		denying:       {kubeconfig: "d"},
	} {
		p := newPlace(t)
		remote := map[string]*remote{"f": newRemote(t, code(http.StatusBadRequest)), "c": newRemote(t, both()), "d": newRemote(t, deny(""))}[h.kubeconfig]
		h.name, h.kubeconfig = name, p.kubeconfig(h.kubeconfig, remote)
		p.configure(h)
		chain := p.chain(Settings{})
		answer, err := chain.For(by("alice")).Authorize(t.Context(), "update", false)
		want := float64(-1)
		if name == denying {
			want = 1
		}
		if (err != nil || answer.Failure != nil) == (name == denying) {
			t.Errorf("%s: %v, %v", name, answer, err)
		}
		if got := series(gather(t)["apiserver_authorization_decisions_total"], "name="+name, "decision=denied"); got != want {
			t.Errorf("%s: %v denials are counted, want %v", name, got, want)
		}
	}
}

// A decision names the webhooks that match conditions kept from being asked, also if it comes from the caches (KEP-3221, webhook-skipped).
func TestKEP3221_SkippedWebhooksAreNamed(t *testing.T) {
	p := newPlace(t)
	r := newRemote(t, allow(""))
	elsewhere := []string{"request.resourceAttributes.namespace == 'kube-system'"}
	p.configure(
		hook{name: "first", kubeconfig: p.kubeconfig("a", r), conditions: elsewhere},
		hook{name: "fails", kubeconfig: p.kubeconfig("b", r), policy: "NoOpinion", conditions: []string{"request.nonResourceAttributes.path == '/'"}},
		hook{name: "second", kubeconfig: p.kubeconfig("c", r), conditions: []string{"request.user != 'alice'"}},
		hook{name: "asked", kubeconfig: p.kubeconfig("d", r)},
		hook{name: "behind", kubeconfig: p.kubeconfig("e", r), conditions: elsewhere},
	)
	chain := p.chain(Settings{})
	for range 2 {
		answer, err := chain.For(by("alice")).Authorize(t.Context(), "update", false)
		if err != nil || answer.By != "asked" || answer.Skipped != "first,second" {
			t.Errorf("decision is %+v, %v, want skipped first,second", answer, err)
		}
	}
	if answer, err := chain.For(by("bob")).Authorize(t.Context(), "update", false); err != nil || answer.By != "second" || answer.Skipped != "first" {
		t.Errorf("decision is %+v, %v, want skipped first", answer, err)
	}
	// Decisions of the caches name them too.
	p.configure(hook{name: "first", kubeconfig: p.path("a"), conditions: elsewhere}, hook{name: "second", kubeconfig: p.path("c"), conditions: elsewhere})
	chain = p.chain(Settings{})
	for range 2 {
		answer, err := chain.For(by("alice")).Authorize(t.Context(), "update", false)
		if err != nil || answer.By != "" || answer.Skipped != "first,second" {
			t.Errorf("decision is %+v, %v, want skipped first,second", answer, err)
		}
	}
}

// The same is true of a webhook that returns conditions.
func TestKEP3221_ASkippedWebhookWithConditionsIsNamed(t *testing.T) {
	l, p := newLabels(t, "red"), newPlace(t)
	p.configure(l.entry(p, "Deny", "request.user != 'alice'"), rbacEntry)
	c := p.chain(Settings{newRoles: mayAll(t)})
	if _, second, _, err := phases(t, c, `{"team":"red"}`); err != nil || second.Outcome != fieldperm.NoOpinion || second.Skipped != "labels" {
		t.Errorf("decision is %+v, %v, want skipped labels", second, err)
	}
	if got := l.asked(); got != "" {
		t.Errorf("was asked for %q", got)
	}
}

// A round trip that takes too long, and one whose caller leaves, are counted as such.
func TestKEP3221_TimeoutsAndCanceledCallsAreCounted(t *testing.T) {
	name := "hanging-" + strconv.FormatInt(time.Now().UnixNano(), 36)
	counted := func(result string) float64 {
		return series(gather(t)["apiserver_authorization_webhook_evaluations_total"], "name="+name, "result="+result)
	}
	p := newPlace(t)
	g := newGate()
	r := newRemote(t, g.then(pass()))
	defer close(g.open)
	h := hook{name: name, kubeconfig: p.kubeconfig("k", r), timeout: "100ms"}
	p.configure(h)
	if answer, err := p.chain(Settings{}).For(request()).Authorize(t.Context(), "update", false); err == nil {
		t.Errorf("decision is %+v, want an error", answer)
	}
	if got := counted("timeout"); got < 1 {
		t.Errorf("%v timeouts are counted", got)
	}
	h.timeout = "30s"
	p.configure(h)
	for len(g.waits) > 0 {
		<-g.waits
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-g.waits
		cancel()
	}()
	if _, err := p.chain(Settings{}).For(request()).Authorize(ctx, "update", false); err == nil {
		t.Error("a caller that left has a decision")
	}
	until(t, "the canceled call is counted", func() bool { return counted("canceled") == 1 })
}

// An operator can tell from the log that the file is in force, and which authorizers it has.
func TestKEP3221_TheStartIsLogged(t *testing.T) {
	p := newPlace(t)
	p.configure(hook{name: "protector", kubeconfig: p.kubeconfig("k", newRemote(t, pass()))})
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
	if _, err := NewChain(klog.NewContext(t.Context(), logger), Settings{File: p.file()}); err != nil {
		t.Fatal(err)
	}
	sink, ok := logger.GetSink().(ktesting.Underlier)
	if !ok {
		t.Fatal("the log cannot be read")
	}
	for _, want := range []string{"Authorization configuration: is in force", p.file(), "protector (Webhook)"} {
		if text := sink.GetBuffer().String(); !strings.Contains(text, want) {
			t.Errorf("log has no %q:\n%s", want, text)
		}
	}
}
