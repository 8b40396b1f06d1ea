package plugin

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/fieldperm/fieldperm/internal/rbac"
	"github.com/fieldperm/fieldperm/internal/tighten"
)

// TestTighten_ApplyRefusesWhatNoFlagAccepts: new access and losses.
func TestTighten_ApplyRefusesWhatNoFlagAccepts(t *testing.T) {
	for _, c := range []struct {
		o        tightening
		proposal tighten.Proposal
		proof    tighten.Proof
		want     string
	}{
		{proof: tighten.Proof{Read: []string{"a", "b"}}, want: "a; b: look at it, then give --allow-read"},
		{proposal: tighten.Proposal{Losses: []string{"a", "b"}}, want: "a; b: look at it, then give --allow-loss"},
		{proposal: tighten.Proposal{Losses: []string{"a"}}, o: tightening{allowLoss: true}},
		{},
	} {
		err := c.o.refusal(&c.proposal, &c.proof)
		if (err == nil) != (c.want == "") || err != nil && !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestC2_WhatWasAddedForAGroupProvesNothing: with and without --apply, before the subject has a record of its own.
func TestC2_WhatWasAddedForAGroupProvesNothing(t *testing.T) {
	group, bot := tighten.Subject{Kind: rbacv1.GroupKind, Name: "team"}, tighten.Subject{Kind: rbacv1.UserKind, Name: "bot"}
	record := `{"subject": "group:team", "suffix": "x", "plan": {}, "added": [{"kind": "Role", "namespace": "shop", "name": "granular-team-x", "uid": "1", "hash": ""}]}`
	for _, o := range []tightening{{}, {apply: true}} {
		known := &knownCluster{
			objects: rbac.Grants{Roles: []rbacv1.Role{
				{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "granular-team-x"}}, {ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "own"}},
			}},
			client: fake.NewClientset(&corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "fieldperm-" + group.ObservationName()},
				Type:       "fieldperm.dev/tighten-record", Data: map[string][]byte{"record": []byte(record)},
			}),
		}
		suffix, err := o.readRecord(t.Context(), known, bot)
		if err != nil || len(known.before.Roles) != 1 || known.before.Roles[0].Name != "own" || (suffix != "") != o.apply {
			t.Errorf("--apply %t: suffix %q, before %+v, %v", o.apply, suffix, known.before.Roles, err)
		}
	}
}
