//go:build integration

package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	dialects "github.com/fieldperm/fieldperm/internal/conditions/wire"
)

// TestK3_Cluster_ConditionsAreServed: a caller that handles conditions gets, in both phases, the decisions that kube-apiserver gets by its
// webhooks.
func TestK3_Cluster_ConditionsAreServed(t *testing.T) {
	s := start(t)
	grant(t, s, "served", rule("apps", []string{"deployments"}, "granular", "granular:scale"))
	deployment := func(replicas int, image string) []byte {
		return fmt.Appendf(nil, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"default"},"spec":{"replicas":%d,"selector":{"matchLabels":{"a":"b"}},`+
			`"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"a","image":%q}]}}}}`, replicas, image)
	}
	send := func(path string, body []byte) []byte {
		t.Helper()
		code, answer := post(t, s, path, "application/json", bytes.NewReader(body))
		if code != http.StatusOK {
			t.Fatalf("%s: %d %s", path, code, answer)
		}
		return []byte(answer)
	}
	first := func(d dialects.Dialect, user string) authorizer.ConditionsAwareDecision {
		t.Helper()
		body, err := d.Ask(&authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: "update", Group: "apps", Version: "v1", Resource: "deployments", Namespace: "default", Name: "web",
		}})
		must(t, err)
		decision, err := d.ReadStatus(send("/authorize/"+string(d), body))
		must(t, err)
		return decision
	}
	for _, d := range dialects.All() {
		var decision authorizer.ConditionsAwareDecision
		// kube-apiserver learns of the grant with a delay.
		for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
			if decision = first(d, "served"); !decision.IsUnconditional() {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: %s, want conditions", d, decision)
			}
		}
		if other := first(d, "stranger"); !other.IsNoOpinion() {
			t.Errorf("%s: a user without verbs gets %s", d, other)
		}
		for name, c := range map[string]struct {
			object []byte
			want   bool
		}{
			"replicas": {deployment(2, "a"), true},
			"image":    {deployment(1, "evil"), false},
			"both":     {deployment(2, "evil"), false},
		} {
			req := &admissionv1.AdmissionRequest{
				UID: "1", Operation: admissionv1.Update, Name: "web", Namespace: "default",
				Kind:     metav1.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"},
				Resource: metav1.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"},
				UserInfo: authenticationv1.UserInfo{Username: "served"},
			}
			req.Object.Raw, req.OldObject.Raw = c.object, deployment(1, "a")
			body, err := d.AskConditions(dialects.ConditionsRequest{Decision: decision, Admission: req})
			must(t, err)
			got, err := d.ReadConditionsAnswer(send("/conditions/"+string(d), body), "1")
			must(t, err)
			if got.IsAllow() != c.want || got.IsDeny() {
				t.Errorf("%s: %s: %s", d, name, got)
			}
		}
	}
}
