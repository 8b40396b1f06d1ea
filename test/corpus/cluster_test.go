//go:build integration

package corpus

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// TestCluster_Scenarios runs every scenario against a real kube-apiserver with real requests of real users. The reviews that it sends to
// webhooks must be equal to the recorded ones; -update records them.
func TestCluster_Scenarios(t *testing.T) {
	t.Parallel()
	startPlane(t, "").runAll(t)
}

func (p *plane) runAll(t *testing.T) {
	for _, s := range scenarios(t) {
		if s.NotOnCluster != "" {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			(&run{T: t, plane: p, s: s}).all()
		})
	}
}

// run is the run of one scenario on the control plane.
type run struct {
	*testing.T
	plane    *plane
	s        *Scenario
	admin    *Wire
	recorded []*Review
}

func (r *run) all() {
	lacks, err := r.plane.lacks(r.s)
	r.must(err)
	if lacks != "" {
		r.Skip(lacks)
	}
	r.admin = r.wire(Admin, "system:masters")
	r.prepare()
	for i := range r.s.Steps {
		step := &r.s.Steps[i]
		if !r.Run(step.Name, func(t *testing.T) { (&run{T: t, plane: r.plane, s: r.s, admin: r.admin}).step(step, &r.recorded) }) {
			// The following steps depend on this one.
			r.FailNow()
		}
	}
	if *update {
		raw, err := EncodeReviews(r.recorded)
		r.must(err)
		r.must(os.WriteFile(filepath.Join(r.s.Dir, reviewsFile), raw, 0o644))
	}
}

// prepare creates the objects and the grants, and waits until the API server knows the grants.
func (r *run) prepare() {
	if ns := r.s.Namespace(); ns != "" {
		r.create("/api/v1/namespaces", map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": ns}})
	}
	for _, object := range r.s.Grants() {
		raw, err := json.Marshal(object)
		r.must(err)
		decoded, err := decodeObject(raw)
		r.must(err)
		r.createAny(decoded)
	}
	for _, object := range r.s.Others {
		r.createAny(object)
	}
	if r.s.Object != nil {
		object := r.s.complete(r.s.Resource, r.s.Object, "")
		r.createWithStatus(object)
	}
	if r.s.Kind == "CustomResourceDefinition" {
		r.awaitEstablished()
	}
	for user := range r.s.Users {
		for _, rule := range r.s.PolicyRules(user) {
			r.awaitGrant(user, rule.Verbs[0], rule.APIGroups[0], rule.Resources[0])
		}
	}
}

func (r *run) createWithStatus(object map[string]any) {
	resource := r.s.Resource
	raw := r.create(resource.Path(r.s.Namespace()), object)
	status, ok := object["status"]
	if !ok {
		return
	}
	live, err := decodeObject(raw)
	r.must(err)
	live["status"] = status
	name, _ := live["metadata"].(map[string]any)["name"].(string)
	r.expect(http.MethodPut, resource.Path(r.s.Namespace(), name, "status"), live)
}

func (r *run) create(path string, object any) []byte { return r.expect(http.MethodPost, path, object) }

func (r *run) expect(method, path string, object any) []byte {
	r.Helper()
	answer, err := r.admin.Do(r.Context(), method, path, map[string][]string{"fieldManager": {"setup"}}, "application/json", object)
	r.must(err)
	if answer.Code >= 300 {
		r.Fatalf("setup: %s %s: %s", method, path, answer.Body)
	}
	return answer.Body
}

func (r *run) createAny(object map[string]any) {
	r.Helper()
	version, _ := object["apiVersion"].(string)
	kind, _ := object["kind"].(string)
	gvk := schema.FromAPIVersionAndKind(version, kind)
	mapping, err := r.plane.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	r.must(err)
	namespace := ""
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		namespace = r.s.Name
	}
	r.create(Resource{mapping.Resource}.Path(namespace), object)
}

// awaitEstablished waits until the API server has finished the status of a definition.
func (r *run) awaitEstablished() {
	r.Helper()
	path := r.s.Resource.Path("", r.s.ObjectName(&Step{}))
	r.must(wait.PollUntilContextTimeout(r.Context(), 10*time.Millisecond, 20*time.Second, true, func(context.Context) (bool, error) {
		object, err := r.live(path)
		if err != nil {
			return false, err
		}
		status, _ := object["status"].(map[string]any)
		conditions, _ := status["conditions"].([]any)
		return len(conditions) == 2, nil
	}))
}

// awaitGrant waits until the API server's authorizer has seen a role.
func (r *run) awaitGrant(user, verb, group, resource string) {
	r.Helper()
	resource, subresource, _ := strings.Cut(resource, "/")
	review := authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:               user,
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: verb, Group: group, Resource: resource, Subresource: subresource, Namespace: r.s.Namespace()},
	}}
	review.APIVersion, review.Kind = "authorization.k8s.io/v1", "SubjectAccessReview"
	err := wait.PollUntilContextTimeout(r.Context(), 10*time.Millisecond, 20*time.Second, true, func(ctx context.Context) (bool, error) {
		answer, err := r.admin.Do(ctx, http.MethodPost, "/apis/authorization.k8s.io/v1/subjectaccessreviews", nil, "application/json", review)
		if err != nil {
			return false, err
		}
		var out authorizationv1.SubjectAccessReview
		err = json.Unmarshal(answer.Body, &out)
		return out.Status.Allowed, err
	})
	r.must(err)
}

func (r *run) step(step *Step, recorded *[]*Review) {
	key := r.s.Name
	if r.s.ClusterScoped {
		key = r.s.ObjectName(step)
	}
	user, dryRun := r.wire(step.User, r.s.Users[step.User].Groups...), step.DryRun
	switch {
	case step.User == Admin:
		user = r.admin
	case *update:
		user, dryRun = r.wire(recorderUser, "system:masters"), dryRun || !step.Allowed
	}
	r.plane.recorder.Take(key)
	answer, err := r.s.Send(r.Context(), user, step, dryRun, r.live)
	r.must(err)
	if step.User == Admin {
		if answer.Code >= 300 {
			r.Fatalf("preparing step: %s", answer.Body)
		}
		return
	}
	sent := r.plane.recorder.Take(key)
	if *update {
		if answer.Code >= 300 || sent == nil {
			r.Fatalf("recording: code %d, webhook asked: %v: %s", answer.Code, sent != nil, answer.Body)
		}
		*recorded = append(*recorded, r.normalize(step, sent))
		return
	}
	if sent != nil && r.plane.isRecorded() {
		r.compare(step, sent)
	}
	r.judge(step, answer, sent != nil)
	if step.Audit != nil {
		r.audited(step, answer.AuditID)
	}
}

func (r *run) normalize(step *Step, sent *admissionv1.AdmissionRequest) *Review {
	r.Helper()
	review, err := Normalize(step, sent)
	r.must(err)
	return review
}

// compare compares the recorded review with the review that the API server sent now.
func (r *run) compare(step *Step, sent *admissionv1.AdmissionRequest) {
	r.Helper()
	is, err := EncodeReviews([]*Review{r.normalize(step, sent)})
	r.must(err)
	recorded := r.s.Reviews[step.Name]
	if recorded == nil {
		r.Fatalf("is not recorded: run with -update")
	}
	was, err := EncodeReviews([]*Review{recorded})
	r.must(err)
	if !bytes.Equal(was, is) {
		r.Errorf("the recorded review is stale: run with -update\nrecorded: %s\nsent:     %s", was, is)
	}
}

// judge compares the API server's answer with the scenario and with the core's decision.
func (r *run) judge(step *Step, answer *Answer, admitted bool) {
	if step.Allowed {
		if answer.Code >= 300 {
			r.Fatalf("is not allowed: %s", answer.Body)
		}
		return
	}
	if answer.Code != http.StatusForbidden || answer.Status.Reason != "Forbidden" {
		r.Fatalf("got %d, want a 403 Forbidden: %s", answer.Code, answer.Body)
	}
	if step.ByAPIServer {
		if admitted {
			r.Errorf("admission was reached, want the API server's own refusal: %s", answer.Status.Message)
		}
		return
	}
	checkMessage(r.T, step, answer.Status.Message)
	if step.Field != "" {
		if d := answer.Status.Details; d == nil || len(d.Causes) == 0 || d.Causes[0].Field != step.Field {
			r.Errorf("details %+v, want one cause with the field %q first", answer.Status.Details, step.Field)
		}
	}
}

// audited waits for the request's event in the audit log and compares its annotations.
func (r *run) audited(step *Step, id string) {
	r.Helper()
	r.must(wait.PollUntilContextTimeout(r.Context(), 20*time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) {
		raw, err := os.ReadFile(r.plane.stack.AuditLog())
		if err != nil {
			return false, err
		}
		for line := range bytes.Lines(raw) {
			var event auditv1.Event
			if !bytes.Contains(line, []byte(id)) || json.Unmarshal(line, &event) != nil {
				continue
			}
			for name, want := range step.Audit {
				if got := event.Annotations["granular.fieldperm.dev/"+name]; got != want {
					r.Errorf("audit annotation %q is %q, want %q", name, got, want)
				}
			}
			return true, nil
		}
		return false, nil
	}))
}

func (r *run) live(path string) (map[string]any, error) {
	answer, err := r.admin.Do(r.Context(), http.MethodGet, path, nil, "", nil)
	if err != nil || answer.Code >= 300 {
		return nil, fmt.Errorf("GET %s: %w: %s", path, err, answer.Body)
	}
	return decodeObject(answer.Body)
}

func (r *run) wire(name string, groups ...string) *Wire {
	r.Helper()
	w, err := r.plane.wire(name, groups...)
	r.must(err)
	return w
}

func (r *run) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// recorderUser replays steps for -update.
const recorderUser = "recorder"

// wires caches the clients of users, because TLS handshakes are expensive.
type wires struct {
	mu    sync.Mutex
	known map[string]*Wire
}

func (p *plane) wire(name string, groups ...string) (*Wire, error) {
	p.wires.mu.Lock()
	defer p.wires.mu.Unlock()
	key := name + " " + strings.Join(slices.Sorted(slices.Values(groups)), ",")
	if w := p.wires.known[key]; w != nil {
		return w, nil
	}
	user, err := p.stack.User(name, groups...)
	if err != nil {
		return nil, err
	}
	w, err := NewWire(user.Config)
	if err != nil {
		return nil, err
	}
	if p.wires.known == nil {
		p.wires.known = map[string]*Wire{}
	}
	p.wires.known[key] = w
	return w, nil
}
