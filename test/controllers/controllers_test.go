//go:build controllers

package controllers

import (
	"log/slog"
	"os"
	"regexp"
	"testing"

	"k8s.io/klog/v2"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/test/controllers/trial"
)

// scheduler is the user of kube-scheduler. The controllers of kube-controller-manager are ServiceAccounts of kube-system.
const scheduler = "system:kube-scheduler"

func TestMain(m *testing.M) {
	klog.SetSlogLogger(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}

// TestControllers moves the controllers of kube-controller-manager, and kube-scheduler, to granular verbs.
func TestControllers(t *testing.T) {
	(&trial.Trial{
		Name: "kubernetes",
		Observe: []v1alpha1.Subject{
			{Kind: "Group", Name: "system:serviceaccounts:kube-system"},
			{Kind: "User", Name: scheduler},
		},
		Flags: flags,
		ServerFlags: map[string][]string{
			// The plugin ServiceAccount is on here: kube-controller-manager makes what it needs.
			"disable-admission-plugins":              {"AlwaysPullImages"},
			"enable-admission-plugins":               {"OwnerReferencesPermissionEnforcement"},
			"default-unreachable-toleration-seconds": {"2"},
			"default-not-ready-toleration-seconds":   {"2"},
			"service-cluster-ip-range":               {"10.96.0.0/16"},
			"allow-privileged":                       {"true"},
		},
		Start: startControllers,
		Play:  play,
		Differing: []trial.Differing{
			{Pattern: regexp.MustCompile(`serving:[0-9a-f]{24}`), Same: "serving:<hash>"},
			{Pattern: regexp.MustCompile(`minutely-\d+`), Same: "minutely-<time>"},
			{Pattern: regexp.MustCompile(`\b(worker|away)-\d\b`), Same: "$1-<n>"},
			{Pattern: regexp.MustCompile(`\boutside-[a-z0-9]{5}\b`), Same: "outside-<name>"},
			// It has the nodes of the last time that the scheduler looked, which it does every half minute.
			{Pattern: regexp.MustCompile(`\b\d+/\d+ nodes are available: .*`), Same: "<why no node fits>"},
			// A message of a condition names the Pod or the ReplicaSet that was last when the condition changed.
			{Pattern: regexp.MustCompile(`"[a-z]+-[a-z0-9]{8,10}(-[a-z0-9]{5})?"`), Same: "<name>"},
		},
		Roles: "config/roles/kubernetes-1.37",
	}).Prove(t)
}
