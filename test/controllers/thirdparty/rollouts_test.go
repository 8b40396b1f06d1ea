//go:build controllers

package thirdparty

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/test/controllers/trial"
)

const (
	rollouts = "rollouts.argoproj.io"
	// promote is what the command promote of Argo Rollouts' plugin for kubectl writes to the status.
	promote = `{"status":{"pauseConditions":null}}`
)

// TestArgoRollouts moves Argo Rollouts to granular verbs. Its ClusterRole is that of its manifests.
func TestArgoRollouts(t *testing.T) {
	dir := module(t, "argo-rollouts", "github.com/argoproj/argo-rollouts")
	(&trial.Trial{
		Name:    "argo-rollouts",
		Observe: []v1alpha1.Subject{{Kind: "ServiceAccount", Namespace: "argo-rollouts", Name: "argo-rollouts"}},
		// The leader stays one while fieldperm is down. The scenario elects none.
		Flags: func(string) []string {
			return []string{"--keep-update=leases.coordination.k8s.io", "--also=events=granular:message"}
		},
		Prepare: func(r *trial.Run) {
			for _, name := range []string{"rollout", "analysis-run", "analysis-template", "cluster-analysis-template", "experiment"} {
				r.Apply(filepath.Join(dir, "manifests", "crds", name+"-crd.yaml"))
			}
			r.Apply(filepath.Join(dir, "manifests", "role", "argo-rollouts-clusterrole.yaml"))
			r.Apply(filepath.Join("testdata", "rollouts-namespaces.yaml"))
		},
		Start: func(r *trial.Run) {
			r.OnStop(playWorkloads(r.Client))
			health := r.Port()
			r.Launch(trial.Program{
				Name: "argo-rollouts", Path: program(t, "argo-rollouts"),
				Args: []string{
					"--kubeconfig=" + r.User("system:serviceaccount:argo-rollouts:argo-rollouts").Kubeconfig, "--leader-elect=false",
					fmt.Sprintf("--healthzPort=%d", health), fmt.Sprintf("--metricsPort=%d", r.Port()), "--qps=200", "--burst=400",
				},
				Health: fmt.Sprintf("http://127.0.0.1:%d/healthz", health),
			})
		},
		Play: playRollouts,
		Foreign: []string{
			`{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"evil:1"}]}}}}`,
			`{"spec":{"externalIPs":["192.0.2.1"]}}`,
		},
		Roles: "config/roles/argo-rollouts-1.10",
	}).Prove(t)
}

func playRollouts(r *trial.Run) {
	r.Apply(filepath.Join("testdata", "rollouts.yaml"))
	phase := func(name, value string) {
		r.T.Helper()
		r.Until(rollouts, "shop/"+name, "status.phase", value)
	}
	image := func(name, image string) {
		r.T.Helper()
		r.Patch(rollouts, "shop/"+name, fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":"web","image":%q}]}}}}`, image))
	}
	all := []string{"bluegreen", "canary", "basic", "failing", "experimenting", "taken-over"}
	for _, name := range all {
		phase(name, "Healthy")
	}
	r.Until("deployments.apps", "shop/taken-over", "spec.replicas", "0")
	for _, name := range all[:5] {
		image(name, "web:2")
	}
	r.Patch("deployments.apps", "shop/taken-over", `{"spec":{"template":{"metadata":{"annotations":{"example.com/release":"2"}}}}}`)

	phase("bluegreen", "Paused")
	r.Until("services", "shop/bluegreen-preview", "spec.selector.app", "bluegreen")
	r.Patch(rollouts, "shop/bluegreen", promote, "status")
	phase("bluegreen", "Healthy")

	phase("canary", "Paused")
	r.Patch(rollouts, "shop/canary", promote, "status")
	r.Until(rollouts, "shop/canary", "status.currentStepIndex", "4")
	phase("canary", "Paused")
	r.Patch(rollouts, "shop/canary", promote, "status")
	phase("canary", "Healthy")

	phase("basic", "Paused")
	r.Patch(rollouts, "shop/basic", `{"status":{"abort":true}}`, "status")
	phase("basic", "Degraded")
	r.Patch(rollouts, "shop/basic", `{"status":{"abort":false}}`, "status")
	phase("basic", "Paused")
	r.Patch(rollouts, "shop/basic", `{"status":{"promoteFull":true}}`, "status")
	phase("basic", "Healthy")
	image("basic", "web:1")
	phase("basic", "Paused")
	image("basic", "web:2")
	phase("basic", "Healthy")
	r.Patch(rollouts, "shop/basic", `{"spec":{"replicas":5}}`)
	r.Until(rollouts, "shop/basic", "status.availableReplicas", "5")
	r.Patch(rollouts, "shop/basic", `{"spec":{"paused":true}}`)
	phase("basic", "Paused")
	r.Patch(rollouts, "shop/basic", `{"spec":{"paused":false,"replicas":2}}`)
	phase("basic", "Healthy")
	r.Until(rollouts, "shop/basic", "status.availableReplicas", "2")
	at := time.Now().UTC().Format(time.RFC3339)
	r.Patch(rollouts, "shop/basic", fmt.Sprintf(`{"spec":{"restartAt":%q}}`, at))
	r.Until(rollouts, "shop/basic", "status.restartedAt", at)

	phase("failing", "Degraded")
	phase("experimenting", "Healthy")
	r.Until("experiments.argoproj.io", "shop/alone", "status.phase", "Successful")
	phase("taken-over", "Healthy")
	// Its Services are given back.
	r.Remove(rollouts, "shop/bluegreen", metav1.DeletePropagationBackground)
	r.Until("services", "shop/bluegreen-active", "spec.selector.rollouts-pod-template-hash", "")
}
