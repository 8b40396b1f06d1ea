//go:build integration

package chain

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fieldperm/fieldperm/test/corpus"
)

// soon is shorter than the time for which kube-apiserver keeps fieldperm's own decisions.
const soon = 8 * time.Second

// TestKEP3221_RBACInProcess: a grant and its revocation take effect as soon as fieldperm's watches deliver them. fieldperm reads roles and
// bindings in process: it asks the API server only about requests that they do not allow.
func TestKEP3221_RBACInProcess(t *testing.T) {
	s := on(t, withRBAC)
	ray, n := s.wire(t, person{name: "ray", groups: []string{"markers"}}), 10
	change := func() *corpus.Answer {
		n++
		return s.patch(t, ray, plain, replicas(n))
	}
	expect(t, change(), http.StatusForbidden, "granular:scale")

	must(t, s.grant(t.Context(), "ray", rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "jwt:ray"},
		rule("apps", "deployments", "granular:scale")))
	began := time.Now()
	answer := s.until(t, change, http.StatusOK)
	if got := s.annotations(t, answer)["authorizers"]; got != "rbac=granular,granular:scale" {
		t.Errorf("audit annotation %q, want that all came from RBAC", got)
	}
	must(t, s.revoke(t.Context(), "ray"))
	answer = s.until(t, change, http.StatusForbidden)
	if took := time.Since(began); took > soon {
		t.Errorf("a grant and its end took %s", took)
	}
	if !strings.Contains(answer.Status.Message, "granular:scale") {
		t.Errorf("message %q is not fieldperm's", answer.Status.Message)
	}
	if series(s.metrics(t), "apiserver_authorization_decisions_total", `type="RBAC"`, `name="rbac"`, `decision="allowed"`) == "" {
		t.Error("decisions of RBAC are not counted")
	}
}

// until repeats a request until it is answered with the code.
func (s *scene) until(t *testing.T, request func() *corpus.Answer, code int) *corpus.Answer {
	t.Helper()
	var answer *corpus.Answer
	eventually(t, func() error {
		if answer = request(); answer.Code != code {
			return fmt.Errorf("got %d, want %d: %s", answer.Code, code, answer.Body)
		}
		return nil
	})
	return answer
}

// ownRole is the ClusterRole of fieldperm's user.
const ownRole = "fieldperm"

// TestKEP3221_RBACWithoutRights: fieldperm that may not read roles and bindings knows no grants. It is not ready, says which permission it
// lacks, and answers with an error. It never decides with an empty set of roles.
func TestKEP3221_RBACWithoutRights(t *testing.T) {
	s := on(t, withRBAC)
	must(t, s.StopWebhook())
	s.inForce = ""
	admin, err := s.clients()
	must(t, err)
	roles := admin.RbacV1().ClusterRoles()
	role, err := roles.Get(t.Context(), ownRole, metav1.GetOptions{})
	must(t, err)
	kept := slices.DeleteFunc(slices.Clone(role.Rules), func(rule rbacv1.PolicyRule) bool {
		return slices.Contains(rule.APIGroups, rbacv1.GroupName)
	})
	if len(kept) == len(role.Rules) {
		t.Fatal("fieldperm's role has no rule about roles and bindings")
	}
	taken := role.DeepCopy()
	taken.Rules = kept
	_, err = roles.Update(t.Context(), taken, metav1.UpdateOptions{})
	must(t, err)
	must(t, s.AwaitGrants(t.Context()))
	restore := func(ctx context.Context) error {
		now, err := roles.Get(ctx, ownRole, metav1.GetOptions{})
		if err != nil {
			return err
		}
		now.Rules = role.Rules
		_, err = roles.Update(ctx, now, metav1.UpdateOptions{})
		return err
	}
	t.Cleanup(func() { must(t, restore(context.WithoutCancel(t.Context()))) })

	must(t, s.LaunchReplica(0))
	client, err := s.WebhookClient()
	must(t, err)
	defer client.CloseIdleConnections()
	eventually(t, func() error {
		response, err := client.Get(s.WebhookURL() + "/livez")
		if err != nil {
			return err
		}
		return response.Body.Close()
	})
	eventually(t, func() error {
		code, body := s.get(t, "/readyz/authorization")
		for _, part := range []string{"list", "rbac.authorization.k8s.io"} {
			if code != http.StatusInternalServerError || !strings.Contains(body, part) {
				return fmt.Errorf("/readyz/authorization: %d, want 500 and %q: %s", code, part, body)
			}
		}
		return nil
	})
	// All other checks pass.
	for _, check := range []string{"schemas", "discovery"} {
		eventually(t, func() error {
			if code, body := s.get(t, "/readyz/"+check); code != http.StatusOK {
				return fmt.Errorf("/readyz/%s: %d: %s", check, code, body)
			}
			return nil
		})
	}
	if code, body := s.get(t, "/readyz"); code != http.StatusInternalServerError {
		t.Errorf("/readyz: %d, want 500: %s", code, body)
	}
	// kube-apiserver would also get 500, and would repeat its call for seconds.
	server := s.mustToken(t, person{name: "kube-apiserver"})
	code, body := s.tell(t, http.MethodPost, "/authorize", server, `{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","spec":{"user":"jwt:ray",
		"groups":["jwt:scalers"],"resourceAttributes":{"verb":"update","group":"apps","version":"v1","resource":"deployments","namespace":"plain","name":"web"}}}`)
	if code < http.StatusInternalServerError || !strings.Contains(body, `authorizer "rbac"`) {
		t.Errorf("/authorize: %d, want a fault of RBAC's: %s", code, body)
	}
	rose := s.mustToken(t, person{name: "rose", groups: []string{scalers}})
	if code, body := s.tell(t, http.MethodPost, "/review", rose, question(one, two, "")); code < http.StatusInternalServerError || !strings.Contains(body, `authorizer "rbac"`) {
		t.Errorf("/review: %d, want a fault of RBAC's: %s", code, body)
	}

	// fieldperm needs no restart after it gets the permission.
	must(t, restore(t.Context()))
	must(t, s.AwaitReplica(t.Context(), 0))
	s.inForce = withRBAC(s)
	expect(t, s.patch(t, s.wire(t, person{name: "rose", groups: []string{scalers}}), plain, replicas(9)), http.StatusOK)
}
