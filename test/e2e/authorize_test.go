//go:build integration

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fieldperm/fieldperm/test/corpus"
	"github.com/fieldperm/fieldperm/test/stack"
)

// question is the subject of a SubjectAccessReview; resource may have a subresource.
type question struct{ verb, group, resource string }

// TestA1_A3_MarkerPassesAuthorization: a user with the marker may create, update and patch resources that this server stores, and the
// reason says that the Allow is not the generic permission. The manifest is static and proven for every resource at once, so that none of
// the objects has to exist.
func TestA1_A3_MarkerPassesAuthorization(t *testing.T) {
	s := start(t)
	grant(t, s, "everywhere", rule("*", []string{"*"}, "granular"))
	for _, q := range []question{
		{"update", "apps", "deployments"}, {"patch", "apps", "deployments"}, {"create", "apps", "deployments"},
		{"update", "apps", "deployments/status"}, {"patch", "apps", "deployments/scale"}, {"update", "", "pods"},
		{"update", "", "pods/resize"}, {"patch", "", "pods/ephemeralcontainers"},
		{"update", "rbac.authorization.k8s.io", "clusterroles"},
		{"update", "certificates.k8s.io", "certificatesigningrequests/approval"},
		{"patch", "", "nodes"}, {"patch", "apiextensions.k8s.io", "customresourcedefinitions"},
	} {
		status := ask(t, s, "everywhere", q, nil)
		if !status.Allowed || !strings.HasPrefix(status.Reason, "granular:") {
			t.Errorf("%+v: allowed %v, reason %q, want an Allow with a reason that begins with granular:", q, status.Allowed, status.Reason)
		}
	}
}

// TestA2_NoOpinion: fieldperm returns NoOpinion for a request that admission does not see, and the marker is no generic verb.
func TestA2_NoOpinion(t *testing.T) {
	s := start(t)
	grant(t, s, "everywhere", rule("*", []string{"*"}, "granular"))
	for _, q := range []question{
		{"watch", "apps", "deployments"}, {"list", "", "secrets"}, {"delete", "apps", "deployments"}, {"deletecollection", "", "pods"},
		{"*", "apps", "deployments"}, {"bind", "rbac.authorization.k8s.io", "clusterroles"}, {"escalate", "rbac.authorization.k8s.io", "clusterroles"},
		{"impersonate", "", "users"}, {"approve", "certificates.k8s.io", "signers"}, {"use", "policy", "podsecuritypolicies"},
		{"create", "", "pods/binding"}, {"create", "", "pods/eviction"}, {"create", "", "pods/exec"}, {"create", "", "pods/portforward"},
		{"update", "", "pods/proxy"}, {"update", "", "nodes/proxy"}, {"patch", "", "services/proxy"}, {"create", "", "bindings"},
		{"create", "", "serviceaccounts/token"}, {"update", "apps", "deployments/finalizers"},
		{"create", "authentication.k8s.io", "tokenreviews"}, {"create", "authorization.k8s.io", "subjectaccessreviews"},
		{"update", "admissionregistration.k8s.io", "validatingwebhookconfigurations"}, {"patch", "admissionregistration.k8s.io", "validatingadmissionpolicies"},
		{"update", "*", "*"}, {"update", "apps", "*"}, {"update", "nowhere.example.com", "things"}, {"update", "apps", "deployments/nothing"},
	} {
		if status := ask(t, s, "everywhere", q, nil); status.Allowed || status.Denied {
			t.Errorf("%+v: allowed %v, denied %v, reason %q, want no opinion", q, status.Allowed, status.Denied, status.Reason)
		}
	}
	// Without the marker fieldperm returns NoOpinion too.
	grant(t, s, "verbs-only", rule("*", []string{"*"}, "granular:*"))
	if status := ask(t, s, "verbs-only", question{"update", "apps", "deployments"}, nil); status.Allowed {
		t.Errorf("verbs without the marker pass: %+v", status)
	}
}

// TestA4_GenericOnly: fieldperm never answers its own checks for the generic permission.
func TestA4_GenericOnly(t *testing.T) {
	s := start(t)
	grant(t, s, "everywhere", rule("*", []string{"*"}, "granular"))
	q := question{"update", "", "configmaps"}
	if status := ask(t, s, "everywhere", q, nil); !status.Allowed {
		t.Fatalf("%+v: %+v", q, status)
	}
	for _, key := range []string{"fieldperm.dev/generic-only", "Fieldperm.dev/Generic-Only"} {
		if status := ask(t, s, "everywhere", q, map[string]authorizationv1.ExtraValue{key: {"true"}}); status.Allowed {
			t.Errorf("extra %q: allowed, reason %q", key, status.Reason)
		}
	}
	grant(t, s, "generic", rule("", []string{"configmaps"}, "update"))
	if status := ask(t, s, "generic", q, map[string]authorizationv1.ExtraValue{"fieldperm.dev/generic-only": {"true"}}); !status.Allowed {
		t.Errorf("the generic permission itself is not found: %+v", status)
	}
}

// TestA6_Revocation: the API server keeps fieldperm's Allow for 10 s. Admission refuses a user without the marker earlier, as soon as
// fieldperm's own decisions (here 500 ms) have expired.
func TestA6_Revocation(t *testing.T) {
	s := start(t)
	grant(t, s, "leaver", rule("", []string{"configmaps"}, "granular", "granular:data"))
	admin, leaver := wire(t, s, "admin", "system:masters"), wire(t, s, "leaver")
	const one = "/api/v1/namespaces/default/configmaps/a6"
	expect(t, send(t, admin, http.MethodPost, "/api/v1/namespaces/default/configmaps", "application/json", fields(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a6"}}`)), 201)
	t.Cleanup(func() { send(t, admin, http.MethodDelete, one, "", nil) })
	n := 0
	change := func() *corpus.Answer {
		n++
		return send(t, leaver, http.MethodPatch, one, merge, fields(t, fmt.Sprintf(`{"data":{"k":"%d"}}`, n)))
	}
	expect(t, change(), 200)
	must(t, clients(t, s).RbacV1().ClusterRoleBindings().Delete(t.Context(), "e2e-leaver", metav1.DeleteOptions{}))
	revoked := time.Now()
	answer := eventually(t, change, 403)
	if took := time.Since(revoked); took > 8*time.Second {
		t.Errorf("the first refusal came after %s, when the API server's own cache may have ended", took)
	}
	if !strings.Contains(answer.Status.Message, `admission webhook "granular.fieldperm.dev" denied the request`) {
		t.Errorf("message %q is not admission's", answer.Status.Message)
	}
}

func ask(t *testing.T, s *stack.Stack, user string, q question, extra map[string]authorizationv1.ExtraValue) authorizationv1.SubjectAccessReviewStatus {
	t.Helper()
	resource, subresource, _ := strings.Cut(q.resource, "/")
	namespace := "default"
	switch resource {
	case "nodes", "namespaces", "clusterroles", "certificatesigningrequests", "customresourcedefinitions":
		namespace = ""
	}
	review, err := clients(t, s).AuthorizationV1().SubjectAccessReviews().Create(t.Context(), &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user, Extra: extra,
		// Send the version as the API server does: a check without a version is sent as "*", and no request of a user has that version.
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: q.verb, Group: q.group, Version: "v1", Resource: resource, Subresource: subresource, Namespace: namespace, Name: "x"},
	}}, metav1.CreateOptions{})
	must(t, err)
	return review.Status
}

// eventually repeats a request for at most ten seconds until it is answered with the code.
func eventually(t *testing.T, request func() *corpus.Answer, code int) *corpus.Answer {
	t.Helper()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.After(20 * time.Second)
	for {
		answer := request()
		if answer.Code == code {
			return answer
		}
		select {
		case <-deadline:
			t.Fatalf("still %d, want %d: %s", answer.Code, code, answer.Body)
		case <-ticker.C:
		}
	}
}
