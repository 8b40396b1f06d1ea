//go:build controllers

package trial

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/internal/manifest"
	"github.com/fieldperm/fieldperm/test/cluster"
)

const (
	marker = "granular"
	// added is the label of the objects that kubectl fieldperm tighten adds.
	added = "fieldperm.dev/tighten"
)

// proposal is what kubectl fieldperm tighten writes for a user.
type proposal struct {
	user string
	// objects are those to add, then those to change.
	objects []*unstructured.Unstructured
	// remarks are the comments of the file that takes update and patch away.
	remarks []string
	// rows are what the observation saw the user write.
	rows []v1alpha1.ObservedResource
}

// propose calls kubectl fieldperm tighten for each user in the status of the observation, and keeps what it writes. The objects of a user who
// wrote only what fieldperm does not decide on are none.
func (r *Run) propose(status *v1alpha1.PermissionObservationStatus) {
	r.T.Helper()
	users := map[string][]v1alpha1.ObservedResource{}
	for _, row := range status.Resources {
		users[row.User] = append(users[row.User], row)
	}
	Must(r.T, os.RemoveAll(filepath.Join(r.Dir, "proposals")))
	Must(r.T, os.MkdirAll(filepath.Join(r.Dir, "proposals"), 0o700))
	log := filepath.Join(r.Dir, "audit.log")
	for user, rows := range users {
		// Many controllers hold update without create, and some without a verb to read. The proposal lists what the marker adds.
		arguments := []string{"fieldperm", "tighten", user, "--audit-log", log, "--allow-read"}
		if r.trial.Flags != nil {
			arguments = append(arguments, r.trial.Flags(user)...)
		}
		files := filepath.Join(r.Dir, "proposals", strings.ReplaceAll(user, ":", "_"))
		if out, errs, err := r.kubectl(append(arguments, "--out", files)...); err != nil {
			r.T.Errorf("kubectl %s: %v\n%s\n%s", strings.Join(arguments, " "), err, errs, out)
			continue
		}
		// The proposal would refuse nothing of what it was made from.
		if out, errs, err := r.kubectl(append(arguments, "--simulate", log)...); err != nil {
			r.T.Errorf("kubectl %s --simulate: %v\n%s%s", strings.Join(arguments, " "), err, out, errs)
		}
		observed, err := json.Marshal(rows)
		Must(r.T, err)
		Must(r.T, os.WriteFile(files+".json", observed, 0o600))
	}
	if r.T.Failed() {
		r.T.Fatal("there are no proposals for all users")
	}
}

// kubectl runs kubectl as the administrator, with fieldperm's plugin in the path.
func (r *Run) kubectl(arguments ...string) (stdout, stderr string, err error) {
	r.T.Helper()
	assets, err := cluster.Assets()
	Must(r.T, err)
	admin, err := r.Stack.User("admin", "system:masters")
	Must(r.T, err)
	cmd := exec.CommandContext(r.T.Context(), filepath.Join(assets, "kubectl"), arguments...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+admin.Kubeconfig, "HOME="+r.Stack.Dir(), "KUBERC=off",
		"PATH="+Root(r.T, "bin")+string(os.PathListSeparator)+os.Getenv("PATH"))
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	return out.String(), errs.String(), err
}

// keptProposals reads what propose wrote, in the order of the users.
func keptProposals(t *testing.T, dir string) []*proposal {
	t.Helper()
	kept, err := filepath.Glob(filepath.Join(dir, "proposals", "*.json"))
	Must(t, err)
	var out []*proposal
	for _, file := range kept {
		base := strings.TrimSuffix(file, ".json")
		p := &proposal{user: strings.ReplaceAll(filepath.Base(base), "_", ":")}
		for _, name := range []string{"1-add.yaml", "2-remove.yaml"} {
			content, err := os.ReadFile(filepath.Join(base, name))
			if errors.Is(err, fs.ErrNotExist) {
				continue // There is nothing to add, or nothing to take away.
			}
			Must(t, err)
			p.objects = append(p.objects, documents(t, content)...)
			if name == "2-remove.yaml" {
				p.remarks = strings.Split(string(content), "\n")
			}
		}
		rows, err := os.ReadFile(file)
		Must(t, err)
		Must(t, json.Unmarshal(rows, &p.rows))
		out = append(out, p)
	}
	return out
}

// documents reads the objects of a file of YAML.
func documents(t *testing.T, content []byte) []*unstructured.Unstructured {
	t.Helper()
	var out []*unstructured.Unstructured
	all, err := manifest.Documents(content)
	Must(t, err)
	for _, raw := range all {
		object := &unstructured.Unstructured{}
		Must(t, json.Unmarshal(raw, &object.Object))
		// The proposal is for another cluster than the one it was made on.
		object.SetResourceVersion("")
		out = append(out, object)
	}
	return out
}

// split returns the objects to add and those to change.
func (p *proposal) split() (add, change []*unstructured.Unstructured) {
	for _, o := range p.objects {
		if o.GetLabels()[added] != "" {
			add = append(add, o)
		} else {
			change = append(change, o)
		}
	}
	return add, change
}

// rules returns the rules of a Role or a ClusterRole, none for a binding.
func rules(t *testing.T, o *unstructured.Unstructured) []rbacv1.PolicyRule {
	t.Helper()
	role := &rbacv1.ClusterRole{}
	if o.GetKind() == "Role" || o.GetKind() == "ClusterRole" {
		Must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, role))
	}
	return role.Rules
}

// verbs returns the number of granular verbs that a proposal grants, without the marker.
func (p *proposal) verbs(t *testing.T) int {
	t.Helper()
	n := 0
	for _, o := range p.objects {
		for _, rule := range rules(t, o) {
			for _, verb := range rule.Verbs {
				if strings.HasPrefix(verb, marker+":") {
					n += len(rule.Resources)
				}
			}
		}
	}
	return n
}

// apply applies proposals as the administrator, and waits until they are in force.
func (r *Run) apply(proposals []*proposal) {
	r.T.Helper()
	for _, p := range proposals {
		name := filepath.Join(r.Dir, strings.ReplaceAll(p.user, ":", "_")+".yaml")
		Must(r.T, os.WriteFile(name, marshal(r.T, p.objects), 0o600))
		if out, errs, err := r.kubectl("apply", "--server-side", "--force-conflicts", "-f", name); err != nil {
			r.T.Fatalf("kubectl apply for %s: %v\n%s%s", p.user, err, out, errs)
		}
	}
	Must(r.T, r.Stack.AwaitGrants(r.T.Context()))
	Must(r.T, r.Stack.AwaitKind(r.T.Context(), schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, "ConfigMap"))
	for _, p := range proposals {
		r.noUpdate(p)
	}
}

func marshal(t *testing.T, objects []*unstructured.Unstructured) []byte {
	t.Helper()
	var out []byte
	for i, o := range objects {
		text, err := yaml.Marshal(o.Object)
		Must(t, err)
		if i > 0 {
			out = append(out, "---\n"...)
		}
		out = append(out, text...)
	}
	return out
}

// noUpdate fails the test if a user still holds update or patch where the proposal grants granular verbs.
func (r *Run) noUpdate(p *proposal) {
	r.T.Helper()
	for _, o := range p.objects {
		for _, rule := range rules(r.T, o) {
			if !slices.Contains(rule.Verbs, marker) || slices.Contains(rule.Resources, "*") {
				continue
			}
			for _, name := range rule.Resources {
				for _, verb := range []string{"update", "patch"} {
					if allowed, why := r.holds(p.user, verb, o.GetNamespace(), resource{rule.APIGroups[0], name}); allowed {
						r.T.Errorf("%s still holds %s on %s: %s", p.user, verb, name, why)
					}
				}
			}
		}
	}
}

// holds asks kube-apiserver whether a user has a generic permission. What fieldperm lets in by the marker is none.
func (r *Run) holds(user, verb, namespace string, at resource) (allowed bool, why string) {
	r.T.Helper()
	name, sub, _ := strings.Cut(at.name, "/")
	review, err := r.Client.AuthorizationV1().SubjectAccessReviews().Create(r.T.Context(), &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user, Groups: append(groupsOf(user), "system:authenticated"),
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: verb, Group: at.group, Version: "*", Resource: name, Subresource: sub},
	}}, metav1.CreateOptions{})
	Must(r.T, err)
	return review.Status.Allowed && !strings.HasPrefix(review.Status.Reason, marker+":"), fmt.Sprint(review.Status.Reason)
}
