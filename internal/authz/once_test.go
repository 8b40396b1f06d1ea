package authz

import (
	"errors"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// TestRBACOnceDecidesAsStored: by the stored rules of an aggregated role and the groups that are given, listed once. An error is no denial by RBAC.
func TestRBACOnceDecidesAsStored(t *testing.T) {
	bound := func(name, kind, to string) *rbacv1.ClusterRoleBinding {
		return &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "aggregated"},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: kind, Name: to}},
		}
	}
	client := fake.NewClientset(
		&rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: "aggregated"}, AggregationRule: &rbacv1.AggregationRule{},
			Rules: []rbacv1.PolicyRule{{Verbs: []string{"update"}, APIGroups: []string{"apps"}, Resources: []string{"deployments"}}},
		},
		bound("a", rbacv1.UserKind, "alice"), bound("b", rbacv1.GroupKind, "system:unauthenticated"),
	)
	down := true
	client.PrependReactor("list", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		return down, nil, errors.New("down")
	})
	l := &listedRoles{client: client}
	ask := func(name string, groups ...string) (authorizer.Decision, error) {
		decision, _, err := l.Authorize(t.Context(), authorizer.AttributesRecord{
			User: &user.DefaultInfo{Name: name, Groups: groups}, Verb: "update", APIGroup: "apps", Resource: "deployments", ResourceRequest: true,
		})
		return decision, err
	}
	if got, err := ask("alice"); got != authorizer.DecisionDeny || err == nil || !strings.Contains(err.Error(), "allow list on roles") {
		t.Errorf("while the API server is down: %v, %v", got, err)
	}
	down = false
	for _, c := range []struct {
		name, group string
		want        authorizer.Decision
	}{
		{"alice", "dev", authorizer.DecisionAllow},
		{"bob", "dev", authorizer.DecisionNoOpinion},
		{"bob", "system:unauthenticated", authorizer.DecisionAllow},
		{"bob", user.SystemPrivilegedGroup, authorizer.DecisionNoOpinion},
	} {
		if got, err := ask(c.name, c.group); got != c.want || err != nil {
			t.Errorf("%s of %s: %v, %v", c.name, c.group, got, err)
		}
	}
	lists := 0
	for _, action := range client.Actions() {
		if action.GetResource().Resource == "rolebindings" {
			lists++
		}
	}
	if lists > 2 {
		t.Errorf("%d lists of RoleBindings", lists)
	}
}

// TestOnceTellsItsWarnings: they are for the caller, and nothing is logged.
func TestOnceTellsItsWarnings(t *testing.T) {
	l, p := newLabels(t, "red"), newPlace(t)
	p.configure(l.entry(p, "Deny"), nodeEntry)
	chain, warnings, err := Once(t.Context(), Settings{File: p.file()})
	if err != nil || len(chain.Conditional()) != 1 || !strings.Contains(strings.Join(warnings, "\n"), "Node") {
		t.Errorf("%v, %v", warnings, err)
	}
	p.write("authorization.yaml", "no configuration")
	if _, _, err := Once(t.Context(), Settings{File: p.file()}); err == nil {
		t.Error("a faulty file is accepted")
	}
}
