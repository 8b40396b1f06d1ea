package diagnosis

import (
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fieldperm/fieldperm/internal/rbac"
)

// TestQuestions_AreAboutHoldersOfTheMarkerAlone: not about holders of update by the same role, nor about one object.
func TestQuestions_AreAboutHoldersOfTheMarkerAlone(t *testing.T) {
	grants := &rbac.Grants{}
	bind := func(name, namespace string, rule rbacv1.PolicyRule, subjects ...rbacv1.Subject) {
		meta := metav1.ObjectMeta{Name: name, Namespace: namespace}
		if namespace == "" {
			grants.ClusterRoles = append(grants.ClusterRoles, rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{rule}})
			grants.ClusterRoleBindings = append(grants.ClusterRoleBindings, rbacv1.ClusterRoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: name}})
			return
		}
		grants.Roles = append(grants.Roles, rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{rule}})
		grants.RoleBindings = append(grants.RoleBindings, rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: rbacv1.RoleRef{Kind: "Role", Name: name}})
	}
	rule := func(group, resource string, verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
	}
	user := func(name string) rbacv1.Subject { return rbacv1.Subject{Kind: "User", Name: name} }
	bind("scaler", "", rule("apps", "deployments/scale", "granular", "granular:scale"), user("scaler"))
	bind("bot", "shop", rule("apps", "deployments", "granular"), rbacv1.Subject{Kind: "ServiceAccount", Name: "bot"})
	bind("all", "", rule("*", "*", "granular"), rbacv1.Subject{Kind: "Group", Name: "team"})
	bind("updater", "", rule("", "pods", "granular", "update"), user("updater"))
	bind("wild", "", rule("", "secrets", "*"), user("root"))
	bind("verb", "", rule("", "services", "granular:ports"), user("unmarked"))
	named := rule("", "nodes", "granular")
	named.ResourceNames = []string{"n"}
	bind("named", "", named, user("named"))
	for i := range 5 {
		bind(fmt.Sprint("many", i), "", rule("batch", "jobs", "granular"), user(fmt.Sprint("many", i)))
	}
	var got []string
	for _, q := range Questions(grants) {
		got = append(got, fmt.Sprintf("%s %s %s %d", q.Name(), q.User, q.Namespace, len(q.Groups)))
	}
	const want = `configmaps fieldperm:status  2
deployments.apps system:serviceaccount:shop:bot shop 3
deployments.apps/scale scaler  1
jobs.batch many0  1
jobs.batch many1  1`
	if text := strings.Join(got, "\n"); text != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
}
