package interlock

import (
	"errors"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/fieldperm/fieldperm/admission"
)

// barriersOf returns Barriers of two servers that have loaded "1-a", which is stored.
func barriersOf(t *testing.T) (b *Barriers, apis []*apiserver, stored *string, changes *int) {
	t.Helper()
	tokens, _, _ := newTestTokens(t)
	stored, changes = new(string), new(int)
	*stored = "1-a"
	var servers []Server
	for range 2 {
		api := newAPIServer(t, tokens)
		api.has = admission.Loaded{State: *stored, Known: "objects"}
		apis, servers = append(apis, api), append(servers, api.server(t))
	}
	return NewBarriers(BarriersConfig{
		Prober:  &Prober{Tokens: tokens},
		Servers: func() ([]Server, error) { return servers, nil },
		State:   func() string { return *stored },
		Known:   func() string { return "objects" },
		Renew:   func(string) {},
		Changed: func() { *changes++ },
	}), apis, stored, changes
}

func TestA6_BarriersHoldWhereTheStoredStateIsLoaded(t *testing.T) {
	b, apis, stored, changes := barriersOf(t)
	expect := func(when string, servers int, cure string, wrapped error) {
		t.Helper()
		switch n, err := b.Missing(); {
		case n != servers:
			t.Errorf("%s: %d servers have the rules, want %d: %v", when, n, servers, err)
		case (err == nil) != (cure == ""), err != nil && !strings.Contains(err.Error(), cure), wrapped != nil && !errors.Is(err, wrapped):
			t.Errorf("%s: %v, want %q", when, err, cure)
		}
	}
	expect("before the first round", 0, "have not been asked yet", nil)
	if err := b.round(t.Context()); err != nil {
		t.Fatal(err)
	}
	expect("both", 2, "", nil)
	_ = b.round(t.Context())
	if *changes != 1 {
		t.Errorf("%d changes without one", *changes-1)
	}
	*stored = "2-b"
	expect("new rules", 0, "have not been asked yet", nil)
	apis[0].has.State = *stored
	_ = b.round(t.Context())
	expect("one has the old rules", 0, "does not have the rules of the webhook configuration fieldperm-uncovered yet", ErrOtherState)
	apis[1].has.State = *stored
	_ = b.round(t.Context())
	expect("both", 2, "", nil)
	apis[1].has.Known = "older objects"
	_ = b.round(t.Context())
	expect("a replica is behind", 0, "does not know the same objects yet", nil)
	if _, err := b.Missing(); errors.Is(err, ErrOtherState) {
		t.Errorf("the server is blamed for a replica: %v", err)
	}
	apis[1].has.Known = "objects"
	apis[1].set(always("passes"))
	_ = b.round(t.Context())
	expect("one asks no webhook", 0, "ValidatingAdmissionWebhook is on", ErrOtherState)
	apis[1].set(always(`podtemplates is forbidden: User "fieldperm:probe" cannot create resource "podtemplates"`))
	_ = b.round(t.Context())
	expect("the role is gone", 0, "apply rbac.yaml", nil)
	before := *changes
	for _, text := range []string{"another policy says no at 12:00", "another policy says no at 12:01"} {
		apis[1].set(always(text))
		_ = b.round(t.Context())
	}
	if _, err := b.Missing(); strings.Contains(err.Error(), "12:0") || *changes != before+1 {
		t.Errorf("the status changes %d times with the text of another: %v", *changes-before, err)
	}
	expect("another webhook refuses it", 0, "what refused the probe was not fieldperm", nil)
	apis[0].has.State = "1-a"
	_ = b.round(t.Context())
	expect("one has other rules, and the answer of the other is not known", 0, "does not have the rules", ErrOtherState)
	apis[0].has.State = *stored
	apis[1].Close()
	_ = b.round(t.Context())
	expect("one does not answer", 0, "no answer to a probe", nil)
	*stored = ""
	_ = b.round(t.Context())
	expect("nothing is stored", 0, "has not been written yet", nil)
	if sent := apis[0].sent[0]; sent != (Target{Operation: admissionv1.Create, Version: "v1", Resource: "podtemplates", Namespace: "kube-system"}) {
		t.Errorf("the probe is %+v", sent)
	}
}
