package needs

import (
	"fmt"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
)

func TestRulesOf(t *testing.T) {
	got := RulesOf([]Grant{
		{Namespace: "shop", Group: "apps", Resource: "deployments", Name: "web", Verbs: []string{"granular:scale", "granular"}},
		{Namespace: "shop", Group: "apps", Resource: "deployments", Name: "api", Verbs: []string{"granular", "granular:scale"}},
		{Namespace: "shop", Resource: "configmaps", Name: "new", Verbs: []string{"granular", "granular:data", "get"}, Unnamed: true},
		{Group: "example.com", Resource: "gauges", Name: "g", Verbs: []string{"granular:x"}},
	})
	want := "[{ [{[granular:x] [example.com] [gauges] [g] []}]} " +
		"{shop [{[get granular:data] [] [configmaps] [new] []} {[granular granular:scale] [apps] [deployments] [api web] []} {[granular] [] [configmaps] [] []}]}]"
	if text := fmt.Sprint(got); text != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
}

// TestObjectsOfAnotherQuestionDoNotReplaceThem: the name depends on what is granted and to which user.
func TestObjectsOfAnotherQuestionDoNotReplaceThem(t *testing.T) {
	names := []string{}
	for _, user := range []string{"alice", "bob"} {
		for _, verb := range []string{"granular:scale", "granular:image"} {
			rules := RulesOf([]Grant{{Namespace: "shop", Group: "apps", Resource: "deployments", Name: "web", Verbs: []string{verb}}})
			role, ok := Objects(rbacv1.Subject{Kind: rbacv1.UserKind, Name: user}, rules)[0].(*rbacv1.Role)
			if !ok || slices.Contains(names, role.Name) {
				t.Errorf("%s, %s: role %+v, names %q", user, verb, role, names)
				continue
			}
			names = append(names, role.Name)
		}
	}
}
