//go:build integration

package chain

import (
	"net/http"
	"strings"
	"testing"
)

// TestKEP3221_DenyEndsTheChain: RBAC would allow the request, but a webhook before it denies it.
func TestKEP3221_DenyEndsTheChain(t *testing.T) {
	s := on(t, broken)
	dora := s.wire(t, person{name: "dora", groups: []string{scalers}})
	answer := s.patch(t, dora, protected, replicas(2))
	expect(t, answer, http.StatusForbidden, `User "jwt:dora" may not change .spec.replicas: needs any one of granular:scale`)
	audit := s.annotations(t, answer)
	authorizers := audit["authorizers"]
	for _, part := range []string{inCluster + "=", "granular", "protector=!granular:*", "!granular:scale"} {
		if !strings.Contains(authorizers, part) {
			t.Errorf("audit annotation %q lacks %q", authorizers, part)
		}
	}
	if strings.Contains(authorizers, "skipped") {
		t.Errorf("audit annotation %q names one that is skipped", authorizers)
	}
	if len(of(s.protector.questions(), "jwt:dora")) == 0 {
		t.Error("the webhook that denies was not asked")
	}
	// In another namespace the conditions of the webhook are not met.
	answer = s.patch(t, dora, plain, replicas(7))
	expect(t, answer, http.StatusOK)
	if got := s.annotations(t, answer)["authorizers"]; !strings.Contains(got, inCluster+"=granular,granular:scale") {
		t.Errorf("audit annotation %q, want that the API server allowed both verbs", got)
	}
}

// TestKEP3221_AllowEndsTheChain: a webhook allows a request by the extra of the token. RBAC would not allow it.
func TestKEP3221_AllowEndsTheChain(t *testing.T) {
	s := on(t, broken)
	mine, other := person{name: "gail", groups: []string{"markers"}, team: "payments"}, person{name: "gus", groups: []string{"markers"}, team: "search"}
	const image = `{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"web:2"}]}}}}`
	answer := s.patch(t, s.wire(t, other), granted, image)
	expect(t, answer, http.StatusForbidden, "may not change")
	answer = s.patch(t, s.wire(t, mine), granted, image)
	expect(t, answer, http.StatusOK)
	if got := s.annotations(t, answer)["authorizers"]; !strings.Contains(got, "grantor=granular:*") {
		t.Errorf("audit annotation %q, want that the webhook allowed", got)
	}
	for _, q := range s.grantor.questions() {
		if q.User == "jwt:gus" {
			t.Errorf("was asked about another team: %+v", q)
		}
	}
}

// TestKEP3221_SkippedByMatchConditions: fieldperm never asks a webhook whose conditions are not met. The webhook is down and has
// failurePolicy Deny, so that a call would be noticed.
func TestKEP3221_SkippedByMatchConditions(t *testing.T) {
	s := on(t, broken)
	s.skipped.fail(http.StatusInternalServerError)
	defer s.skipped.fail(0)
	answer := s.patch(t, s.wire(t, person{name: "sid", groups: []string{scalers}}), plain, replicas(8))
	expect(t, answer, http.StatusOK)
	// The audit log, which has the user and the resource too, names the webhook and the verbs.
	if got := s.annotations(t, answer)["webhook-skipped"]; !strings.Contains(" "+got, " skipped=") || !strings.Contains(got, "granular:scale") {
		t.Errorf("the audit annotation is %q, want the webhook and the verbs", got)
	}
	if asked := s.skipped.questions(); len(asked) > 0 {
		t.Errorf("was asked %d times: %+v", len(asked), asked)
	}
	if got := series(s.metrics(t), "apiserver_authorization_match_condition_exclusions_total", `name="skipped"`); got == "" {
		t.Error("no exclusion was counted")
	}
}
