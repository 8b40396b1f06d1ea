//go:build controllers

package thirdparty

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/test/controllers/trial"
)

const deployments = "deployments.apps"

// TestOperator moves the operator of examples/operator to granular verbs, from its role for clusters without fieldperm.
func TestOperator(t *testing.T) {
	manifests := trial.Root(t, "examples", "operator", "manifests")
	(&trial.Trial{
		Name:    "supersafe",
		Observe: []v1alpha1.Subject{{Kind: "ServiceAccount", Namespace: "supersafe", Name: "supersafe"}},
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
		Proposed: func(t *testing.T, _ string, proposed []rbacv1.PolicyRule) {
			if got, want := granular(proposed), granular(shipped(t, filepath.Join(manifests, "rbac.yaml"))); !slices.Equal(got, want) {
				t.Errorf("rbac.yaml grants %q, and kubectl fieldperm tighten proposes %q", want, got)
			}
		},
	}).Prove(t)
}

// shipped returns the rules of the ClusterRole of a file.
func shipped(t *testing.T, file string) []rbacv1.PolicyRule {
	t.Helper()
	content, err := os.ReadFile(file)
	trial.Must(t, err)
	for _, document := range strings.Split(string(content), "\n---\n") {
		role := &rbacv1.ClusterRole{}
		trial.Must(t, yaml.Unmarshal([]byte(document), role))
		if role.Kind == "ClusterRole" {
			return role.Rules
		}
	}
	t.Fatalf("%s has no ClusterRole", file)
	return nil
}

// granular returns the granular verbs of rules, each with its resource.
func granular(rules []rbacv1.PolicyRule) (out []string) {
	for _, rule := range rules {
		for _, verb := range rule.Verbs {
			for _, resource := range rule.Resources {
				if strings.HasPrefix(verb, "granular") {
					out = append(out, resource+" "+verb)
				}
			}
		}
	}
	slices.Sort(out)
	return out
}

// controlled plays the Deployment's controller, which writes the status first.
func controlled(r *trial.Run, deployment string) {
	r.T.Helper()
	r.Patch(deployments, deployment, `{"status":{"observedGeneration":1}}`, "status")
}
