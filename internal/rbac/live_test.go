package rbac

import (
	"context"
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	rbacv1 "k8s.io/api/rbac/v1"
)

func TestKEP3221_LiveFollowsChanges(t *testing.T) {
	t.Parallel()
	api := newFakeAPI(
		clusterRole("scaler", "granular:scale"), clusterRoleBinding("scalers", "scaler", "alice"),
		role("shop", "editor", "update"), roleBinding("shop", "editors", "editor", "eve"),
	)
	l, _ := ready(t, api)
	ctx, rbac := context.Background(), api.RbacV1()
	expect := func(what, name, verb, namespace string, allowed bool, reason string) {
		t.Helper()
		var gotAllowed bool
		var gotReason string
		await(t, what, func() bool {
			gotAllowed, gotReason = may(t, l, name, verb, namespace)
			return gotAllowed == allowed && gotReason == reason
		})
	}
	do := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	const byScalers, byEditors = `RBAC: allowed by ClusterRoleBinding "scalers" of ClusterRole "scaler" to User "alice"`, `RBAC: allowed by RoleBinding "editors/shop" of Role "editor" to User "eve"`
	expect("at first", "alice", "granular:scale", "shop", true, byScalers)
	expect("at first", "eve", "update", "shop", true, byEditors)

	do(rbac.ClusterRoles().Update(ctx, clusterRole("scaler", "granular:image"), metav1.UpdateOptions{}))
	expect("another role", "alice", "granular:scale", "shop", false, "")
	expect("another role", "alice", "granular:image", "", true, `RBAC: allowed by ClusterRoleBinding "scalers" of ClusterRole "scaler" to User "alice"`)
	do(rbac.ClusterRoleBindings().Update(ctx, clusterRoleBinding("scalers", "scaler", "bob"), metav1.UpdateOptions{}))
	expect("another subject", "alice", "granular:image", "", false, "")
	expect("another subject", "bob", "granular:image", "", true, `RBAC: allowed by ClusterRoleBinding "scalers" of ClusterRole "scaler" to User "bob"`)
	do(nil, rbac.ClusterRoles().Delete(ctx, "scaler", metav1.DeleteOptions{}))
	expect("role gone", "bob", "granular:image", "", false, `RBAC: clusterrole.rbac.authorization.k8s.io "scaler" not found`)
	do(rbac.ClusterRoles().Create(ctx, clusterRole("scaler", "*"), metav1.CreateOptions{}))
	expect("role replaced", "bob", "granular:image", "", true, `RBAC: allowed by ClusterRoleBinding "scalers" of ClusterRole "scaler" to User "bob"`)
	do(nil, rbac.ClusterRoleBindings().Delete(ctx, "scalers", metav1.DeleteOptions{}))
	expect("binding gone", "bob", "granular:image", "", false, "")

	do(nil, rbac.Roles("shop").Delete(ctx, "editor", metav1.DeleteOptions{}))
	expect("role gone", "eve", "update", "shop", false, `RBAC: role.rbac.authorization.k8s.io "editor" not found`)
	do(rbac.Roles("other").Create(ctx, role("other", "editor", "update"), metav1.CreateOptions{}))
	do(rbac.Roles("shop").Create(ctx, role("shop", "editor", "get"), metav1.CreateOptions{}))
	expect("a role of another namespace is another", "eve", "get", "shop", true, byEditors)
	expect("a role of another namespace is another", "eve", "update", "shop", false, "")
	do(nil, rbac.RoleBindings("shop").Delete(ctx, "editors", metav1.DeleteOptions{}))
	expect("binding gone", "eve", "get", "shop", false, "")
}

func TestKEP3221_LiveTakesAggregatedRolesAsStored(t *testing.T) {
	t.Parallel()
	aggregated := clusterRole("all", "granular:image")
	aggregated.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{}}}
	l, _ := ready(t, newFakeAPI(aggregated, clusterRole("scaler", "granular:scale"), clusterRoleBinding("everything", "all", "alice")))
	if holds(t, l, "alice", "granular:scale", "") {
		t.Error("rules count that the controller has not yet written")
	}
	if !holds(t, l, "alice", "granular:image", "") {
		t.Error("rules do not count that are stored")
	}
}

func TestKEP3221_LiveLeavesMastersAndAuthenticatedToOthers(t *testing.T) {
	t.Parallel()
	everyone := clusterRoleBinding("everyone", "scaler")
	everyone.Subjects = []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: user.AllAuthenticated}}
	l, _ := ready(t, newFakeAPI(clusterRole("scaler", "granular:scale"), everyone))
	for caller, want := range map[*user.DefaultInfo]authorizer.Decision{
		{Name: "alice"}: authorizer.DecisionNoOpinion,
		{Name: "alice", Groups: []string{user.AllAuthenticated}}:  authorizer.DecisionAllow,
		{Name: "m", Groups: []string{user.SystemPrivilegedGroup}}: authorizer.DecisionNoOpinion,
		nil: authorizer.DecisionNoOpinion,
	} {
		asked := authorizer.AttributesRecord{Verb: "granular:scale", APIGroup: "apps", Resource: "deployments", ResourceRequest: true}
		if caller != nil {
			asked.User = caller
		}
		if decision, reason, err := l.Authorize(context.Background(), asked); decision != want || err != nil {
			t.Errorf("%v: got %v %q %v, want %v", caller, decision, reason, err, want)
		}
		if d := l.ConditionsAwareAuthorize(context.Background(), asked); d.IsAllow() != (want == authorizer.DecisionAllow) || d.IsDeny() {
			t.Errorf("%v: got %v, want %v", caller, d, want)
		}
	}
	decision, _, err := l.EvaluateConditions(context.Background(), authorizer.ConditionsAwareDecision{}, nil)
	if decision != authorizer.DecisionDeny || !errors.Is(err, authorizer.ErrorConditionEvaluationNotSupported) {
		t.Errorf("got %v %v", decision, err)
	}
}

func TestLiveKeepsNoMetadataItDoesNotNeed(t *testing.T) {
	t.Parallel()
	heavy := func(m metav1.Object) {
		m.SetAnnotations(map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "…"})
		m.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "kubectl", Operation: metav1.ManagedFieldsOperationApply}})
	}
	cr, crb, r, rb := clusterRole("a", "get"), clusterRoleBinding("a", "a", "alice"), role("shop", "a", "get"), roleBinding("shop", "a", "a", "alice")
	for _, o := range []metav1.Object{cr, crb, r, rb} {
		heavy(o)
	}
	l, _ := ready(t, newFakeAPI(cr, crb, r, rb))
	for _, i := range l.informers {
		objects := i.shared.GetIndexer().List()
		if len(objects) != 1 {
			t.Errorf("%s: %d objects, want 1", i, len(objects))
		}
		for _, object := range objects {
			m, err := meta.Accessor(object)
			if err != nil {
				t.Fatal(err)
			}
			if len(m.GetAnnotations())+len(m.GetManagedFields()) > 0 || m.GetName() != "a" {
				t.Errorf("%s: kept %v", i, m)
			}
		}
	}
	if !holds(t, l, "alice", "get", "shop") {
		t.Error("a needed field is missing")
	}
}

func TestReasonNamesTheFirstBindingByName(t *testing.T) {
	t.Parallel()
	g := Grants{ClusterRoles: []rbacv1.ClusterRole{*clusterRole("scaler", "*")}}
	for _, name := range []string{"d", "b", "c", "e"} {
		g.ClusterRoleBindings = append(g.ClusterRoleBindings, *clusterRoleBinding(name, "scaler", "alice"))
	}
	a, err := New(g)
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if _, reason := may(t, a, "alice", "get", ""); reason != `RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "scaler" to User "alice"` {
			t.Fatal(reason)
		}
	}
}

// TestNamespacesThatHoldASeparatorAreOthers: a review may be about any user in any namespace.
func TestNamespacesThatHoldASeparatorAreOthers(t *testing.T) {
	t.Parallel()
	b := roleBinding("shop", "devs", "editor")
	b.Subjects = []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "x\x00dev"}}
	a, err := New(Grants{Roles: []rbacv1.Role{*role("shop", "editor", "*")}, RoleBindings: []rbacv1.RoleBinding{*b}})
	if err != nil {
		t.Fatal(err)
	}
	for namespace, want := range map[string]authorizer.Decision{"shop": authorizer.DecisionAllow, "shop\x00x": authorizer.DecisionNoOpinion} {
		q := someQuestion
		q.Namespace, q.User = namespace, &user.DefaultInfo{Name: "alice", Groups: []string{"dev", "x\x00dev"}}
		if decision, reason, err := a.Authorize(context.Background(), q); decision != want || err != nil {
			t.Errorf("%q: got %v %q %v, want %v", namespace, decision, reason, err, want)
		}
	}
}
