package rbac

import (
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
)

func TestF4_HoldersOfAVerb(t *testing.T) {
	t.Parallel()
	unbound, wild := clusterRole("unbound", "granular:image"), clusterRole("wild", "*")
	status, other := clusterRole("status", "granular:image(web)"), clusterRole("other", "granular:image")
	status.Rules[0].Resources, other.Rules[0].Resources = []string{"deployments/status"}, []string{"pods"}
	robots := clusterRoleBinding("robots", "images")
	robots.Subjects = []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "shop", Name: "bot"}, {Kind: rbacv1.GroupKind, Name: "ops"}}
	api := newFakeAPI(unbound, wild, status, other, clusterRole("images", "granular:image"), role("shop", "web", "get", "granular:image(web)"),
		clusterRoleBinding("wild", "wild", "root"), clusterRoleBinding("status", "status", "sue"), clusterRoleBinding("other", "other", "oscar"),
		clusterRoleBinding("images", "images", "bob", "ann"), robots, roleBinding("shop", "web", "web", "eve"), clusterRoleBinding("dangling", "nowhere", "nobody"))
	l, _ := ready(t, api)
	got, err := l.Holders("apps", "deployments", func(verb string) bool { return strings.HasPrefix(verb, "granular:image") })
	if err != nil {
		t.Fatal(err)
	}
	const want = "[{ClusterRole images [Group ops ServiceAccount shop/bot User ann User bob]} {ClusterRole status [User sue]} {Role web in shop [User eve]}]"
	if fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
	if _, err := (&Live{}).Holders("apps", "deployments", func(string) bool { return true }); err == nil {
		t.Error("an authorizer that has read nothing names holders")
	}
}
