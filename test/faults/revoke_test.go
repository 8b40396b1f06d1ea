//go:build integration

package faults

import (
	"context"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// revocations remove permissions while they are used. After fieldperm's own decisions have expired nothing more is allowed, however long
// kube-apiserver would keep an Allow (A6).
func revocations() []fault {
	const lasts = decisionTTL + 2500*time.Millisecond
	return []fault{
		{name: "revoke scalers' marker and keepers' verb", begin: revoke("granular", "granular:datum(mine)"), lasts: lasts, check: ends, end: grantAgain},
		{name: "revoke scalers' verb and keepers' marker", begin: revoke("granular:scale", "granular"), lasts: lasts, check: ends, end: grantAgain},
	}
}

// revoke removes one verb from the role of the scalers and one from the role of the keepers.
func revoke(scaler, keeper string) action {
	return func(t *testing.T, c *scene) {
		t.Helper()
		for name, verb := range map[string]string{"scaler": scaler, "keeper": keeper} {
			role, err := c.admin.RbacV1().Roles(namespace).Get(t.Context(), name, metav1.GetOptions{})
			must(t, err)
			for i, rule := range role.Rules {
				role.Rules[i].Verbs = strings.Fields(strings.ReplaceAll(" "+strings.Join(rule.Verbs, "  ")+" ", " "+verb+" ", " "))
			}
			_, err = c.admin.RbacV1().Roles(namespace).Update(t.Context(), role, metav1.UpdateOptions{})
			must(t, err)
		}
		c.tampered = time.Now()
	}
}

func grantAgain(t *testing.T, c *scene) {
	t.Helper()
	for _, name := range []string{"scaler", "keeper"} {
		role, err := c.admin.RbacV1().Roles(namespace).Get(t.Context(), name, metav1.GetOptions{})
		must(t, err)
		role.Rules = roles[name]
		_, err = c.admin.RbacV1().Roles(namespace).Update(context.WithoutCancel(t.Context()), role, metav1.UpdateOptions{})
		must(t, err)
	}
}

// ends returns the time between the revocation and the start of the last write that was allowed.
func ends(t *testing.T, c *scene, _ time.Time, during []event) time.Duration {
	t.Helper()
	var last time.Duration
	for _, e := range during {
		if e.class == granular && e.outcome == allowed {
			last = max(last, e.begin.Sub(c.tampered))
		}
	}
	if limit := decisionTTL + time.Second; last > limit {
		t.Errorf("a write is allowed %s after the revocation, want none after %s", last, limit)
	}
	return last
}
