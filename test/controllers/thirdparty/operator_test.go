//go:build controllers

package thirdparty

import (
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/test/controllers/trial"
)

const deployments = "deployments.apps"

// TestOperator moves the operator of examples/operator to granular verbs, from its role for clusters without fieldperm.
func TestOperator(t *testing.T) {
	manifests := trial.Root(t, "examples", "operator", "manifests")
	(&trial.Trial{
		Name:    "supersafe",
		Observe: []v1alpha1.ObservedSubject{{Kind: "ServiceAccount", Namespace: "supersafe", Name: "supersafe"}},
		Prepare: func(r *trial.Run) {
			r.Apply(filepath.Join("testdata", "supersafe.yaml"))
			r.Apply(filepath.Join(manifests, "rbac-without-fieldperm.yaml"))
		},
		Start: func(r *trial.Run) {
			r.Launch(trial.Program{
				Name: "supersafe", Path: program(t, "supersafe"),
				Args: []string{"--kubeconfig=" + r.User("system:serviceaccount:supersafe:supersafe").Kubeconfig},
			})
		},
		Play: func(r *trial.Run) {
			r.Apply(filepath.Join(manifests, "deployment.yaml"))
			controlled(r, "default/shop")
			verdict := func(value string) {
				r.T.Helper()
				r.Count(deployments, "default", "super.safe.com/verdict="+value, 1, func(o *unstructured.Unstructured) bool { return o.GetName() == "shop" })
				r.Until(deployments, "default/shop", "status.conditions[SuperSafe].status", map[string]string{"safe": "True", "unsafe": "False"}[value])
			}
			verdict("unsafe")
			pinned := `{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"web@sha256:1"},{"name":"proxy","image":"proxy@sha256:2"}]}}}}`
			r.Patch(deployments, "default/shop", pinned)
			verdict("safe")
			// Another says something else, and removes the finalizer.
			r.Patch(deployments, "default/shop", `{"metadata":{"labels":{"super.safe.com/verdict":"none"},"finalizers":null}}`)
			r.Patch(deployments, "default/shop", `{"status":{"conditions":[{"type":"SuperSafe","status":"Unknown"}]}}`, "status")
			verdict("safe")
			r.Until(deployments, "default/shop", "metadata.finalizers[0]", "super.safe.com/report")
			r.Apply(filepath.Join("testdata", "passing.yaml"))
			controlled(r, "default/passing")
			r.Until(deployments, "default/passing", "status.conditions[SuperSafe].status", "False")
			r.Remove(deployments, "default/passing", metav1.DeletePropagationBackground)
			r.Gone(deployments, "default/passing")
		},
		Foreign: []string{
			`{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"evil:1"}]}}}}`,
			`{"status":{"conditions":[{"type":"Available","status":"True"}]}}`,
		},
	}).Prove(t)
}

// controlled plays the Deployment's controller, which writes the status first.
func controlled(r *trial.Run, deployment string) {
	r.T.Helper()
	r.Patch(deployments, deployment, `{"status":{"observedGeneration":1}}`, "status")
}
