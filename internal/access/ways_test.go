package access

import (
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/fieldperm/fieldperm/internal/rbac"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/test/schematest"
)

// given are policies about each verb, whatever the user.
type given map[string][]Policy

func (g given) About(a authorizer.Attributes) []Policy {
	if a.GetUser().GetName() == "none" {
		return nil
	}
	return g[a.GetVerb()]
}

func (g given) Subjects() []rbacv1.Subject { return []rbacv1.Subject{{Kind: "User", Name: "pat"}} }

func (g given) Verbs() []string {
	var out []string
	for verb := range g {
		out = append(out, verb)
	}
	return out
}

// grant binds a user to verbs on deployments: in a namespace, or "" for all, and on names, or all.
func grant(g *rbac.Grants, user, namespace string, names []string, verbs ...string) {
	name := fmt.Sprintf("r%d", len(g.ClusterRoles))
	g.ClusterRoles = append(g.ClusterRoles, rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, ResourceNames: names, Verbs: verbs},
	}})
	ref, subjects := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}, []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}}
	if namespace == "" {
		g.ClusterRoleBindings = append(g.ClusterRoleBindings, rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: ref, Subjects: subjects})
		return
	}
	g.RoleBindings = append(g.RoleBindings, rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, RoleRef: ref, Subjects: subjects})
}

// shown writes rows in one line each.
func shown(rows []Row) string {
	var out []string
	for i := range rows {
		for j := range rows[i].Ways {
			w := &rows[i].Ways[j]
			line := fmt.Sprintf("%s %s %s", rows[i].Subject.Name, w.By, strings.Join(w.Texts(), "+"))
			for _, c := range w.Conditions {
				line += " if " + c.String()
			}
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n")
}

func whoCan(t *testing.T, g *rbac.Grants, policies Policies, w *Write, compiled *schema.Schema, path string) string {
	t.Helper()
	cluster, err := New(*g, policies)
	must(t, err)
	w.Group, w.Version, w.Resource, w.TakesMarker = "apps", "v1", "deployments", true
	one := sample{group: "apps", version: "v1", kind: "Deployment", resource: "deployments", path: path}
	return shown(cluster.WhoCan(w, one.place(t, compiled)))
}

func TestK5_PoliciesAllowAndTakeAway(t *testing.T) {
	t.Parallel()
	compiled := schematest.Traced(t)
	var g rbac.Grants
	grant(&g, "eve", "", nil, "update")
	grant(&g, "bob", "", nil, "granular", "get", "granular:scale")
	grant(&g, "pat", "", nil, "granular", "get")
	grant(&g, "root", "", nil, "*")
	for name, test := range map[string]struct {
		policies given
		want     string
	}{
		"none": {nil, "bob granular granular+get+granular:scale\neve generic update\nroot wildcard *"},
		"Allow of a granular verb": {
			given{"granular:scale": {{Name: "p", Effect: Allow, Condition: "c"}}},
			"bob granular granular+get+granular:scale\nbob granular granular+get+granular:scale if c (ConditionalPolicy p)\neve generic update\npat granular granular+get+granular:scale if c (ConditionalPolicy p)\nroot wildcard *",
		},
		"Allow that fails, and one that is false": {
			given{"granular:scale": {{Name: "p", Effect: Allow, Failed: true}, {Name: "q", Effect: Allow, Condition: "false"}}},
			"bob granular granular+get+granular:scale\neve generic update\nroot wildcard *",
		},
		"Deny of the request": {
			given{"update": {{Name: "p", Effect: Deny, Condition: "c"}}},
			"bob granular granular+get+granular:scale if !(c) (ConditionalPolicy p)\neve generic update if !(c) (ConditionalPolicy p)\nroot wildcard * if !(c) (ConditionalPolicy p)",
		},
		"Deny of the request by a policy that fails": {given{"update": {{Name: "p", Effect: Deny, Failed: true}}}, ""},
		"Deny of the marker": {
			given{"granular": {{Name: "p", Effect: Deny, Condition: "true"}}},
			"eve generic update\nroot wildcard *",
		},
		"NoOpinion takes the place of Allow": {
			given{"update": {{Name: "n", Effect: NoOpinion, Condition: "true"}, {Name: "p", Effect: Allow, Condition: "c"}}},
			"bob granular granular+get+granular:scale\neve generic update\nroot wildcard *",
		},
	} {
		got := whoCan(t, &g, test.policies, &Write{Verb: "update", Namespace: "shop", Name: "web"}, compiled, ".spec.replicas")
		if got != test.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, test.want)
		}
	}
}

// On the floor no Deny reaches a user whose role has the generic permission.
func TestW4_ADenyOnTheFloorIsForGranularUsers(t *testing.T) {
	t.Parallel()
	compiled := schematest.Traced(t)
	var g rbac.Grants
	grant(&g, "eve", "", nil, "update")
	grant(&g, "bob", "", nil, "granular", "get", "granular:scale")
	grant(&g, "pat", "", nil, "granular", "get", "patch")
	grant(&g, "root", "", nil, "*")
	for condition, want := range map[string]string{
		"c":    "bob granular granular+get+granular:scale if !(c) (ConditionalPolicy p)\neve generic update\npat generic granular+patch+get if !(c) (ConditionalPolicy p)\nroot wildcard *",
		"true": "eve generic update\nroot wildcard *",
	} {
		policies := given{"update": {{Name: "p", Effect: Deny, Condition: condition}}}
		if got := whoCan(t, &g, policies, &Write{Verb: "update", Namespace: "shop", OnFloor: true}, compiled, ".spec.replicas"); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", condition, got, want)
		}
	}
}

// TestA7_TheMarkerAndAConditionNeedGet: where get is held for some objects, so is the way. A creation needs none.
func TestA7_TheMarkerAndAConditionNeedGet(t *testing.T) {
	compiled := schematest.Traced(t)
	var g rbac.Grants
	grant(&g, "ann", "", nil, "granular", "granular:scale")
	grant(&g, "bob", "", nil, "granular", "granular:scale")
	grant(&g, "bob", "", []string{"web"}, "get")
	grant(&g, "bob", "", nil, "granular:creation")
	grant(&g, "cat", "", nil, "get")
	policies := given{"update": {{Name: "p", Effect: Allow, Condition: "c"}}}
	want := "bob generic update+get if only web if c (ConditionalPolicy p)\nbob granular granular+get+granular:scale if only web\ncat generic update+get if c (ConditionalPolicy p)"
	if got := whoCan(t, &g, policies, &Write{Verb: "update", Namespace: "shop"}, compiled, ".spec.replicas"); got != want {
		t.Errorf("update: got %s\nwant %s", got, want)
	}
	if got, want := whoCan(t, &g, nil, &Write{Verb: "create", Namespace: "shop"}, compiled, ".spec.replicas"), "bob granular granular+granular:creation+granular:scale"; got != want {
		t.Errorf("create: got %s\nwant %s", got, want)
	}
}

func TestC6_MarkerAndTheOtherGenericVerb(t *testing.T) {
	t.Parallel()
	compiled := schematest.Traced(t)
	var g rbac.Grants
	grant(&g, "ann", "", nil, "patch")
	grant(&g, "bob", "", nil, "patch", "granular", "get")
	if got, want := whoCan(t, &g, nil, &Write{Verb: "update", Namespace: "shop"}, compiled, ".spec.replicas"), "bob generic granular+patch+get"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestRBAC_NamesAndNamespacesAreConditions(t *testing.T) {
	t.Parallel()
	compiled := schematest.Traced(t)
	var g rbac.Grants
	grant(&g, "ann", "", []string{"web", "api"}, "update")
	grant(&g, "bob", "shop", nil, "granular", "get")
	grant(&g, "bob", "", []string{"web"}, "granular:scale")
	grant(&g, "cat", "shop", nil, "update")
	for _, test := range []struct {
		w    Write
		want string
	}{
		{Write{Namespace: "shop"}, "ann generic update if only api, web\nbob granular granular+get+granular:scale if only web\ncat generic update"},
		{Write{Namespace: "shop", Name: "web"}, "ann generic update\nbob granular granular+get+granular:scale\ncat generic update"},
		{Write{Namespace: "shop", Name: "db"}, "cat generic update"},
		{Write{Namespace: "other"}, "ann generic update if only api, web"},
		{Write{AllNamespaces: true}, "ann generic update if only api, web\nbob granular granular+get+granular:scale if only in shop if only web\ncat generic update if only in shop"},
	} {
		test.w.Verb = "update"
		if got := whoCan(t, &g, nil, &test.w, compiled, ".spec.replicas"); got != test.want {
			t.Errorf("%+v:\n%s\nwant\n%s", test.w, got, test.want)
		}
	}
}

func TestC2_ValueOfAParameter(t *testing.T) {
	t.Parallel()
	compiled := schematest.Traced(t, schematest.UncoveredSet("web", "{uncoveredPermissions: ['granular:image(web)'], resources: [{apiGroups: [apps], resources: [deployments]}]}"))
	var g rbac.Grants
	grant(&g, "ann", "", nil, "granular", "get", "granular:image(web)")
	grant(&g, "bob", "", nil, "update")
	got := whoCan(t, &g, nil, &Write{Verb: "update", Namespace: "shop"}, compiled, "spec.template.spec.containers.image")
	if !strings.HasPrefix(got, "ann granular granular+get+granular:image(web) if only containerName web\nbob generic update if not ") || !strings.Contains(got, "(else the barrier granular:image(web) ") {
		t.Errorf("got %s", got)
	}
	got = whoCan(t, &g, nil, &Write{Verb: "update", Namespace: "shop"}, compiled, `.spec.template.spec.containers[name="web"].image`)
	if got != "ann granular granular+get+granular:image(web)" {
		t.Errorf("got %s", got)
	}
}

// Without the marker's effect, on the floor and without fieldperm, only the generic permission counts, and barriers do not hold for it.
func TestA2W4_WhereTheMarkerAndBarriersDoNotCount(t *testing.T) {
	t.Parallel()
	compiled := schematest.Traced(t, schematest.UncoveredSet("all", "{uncoveredPermissions: ['granular:scale'], resources: [{apiGroups: [apps], resources: [deployments]}]}"))
	var g rbac.Grants
	grant(&g, "ann", "", nil, "granular", "get", "granular:scale")
	grant(&g, "bob", "", nil, "update")
	cluster, err := New(g, nil)
	must(t, err)
	one := sample{group: "apps", version: "v1", kind: "Deployment", resource: "deployments", path: ".spec.replicas"}
	for want, w := range map[string]*Write{
		"ann granular granular+get+granular:scale": {TakesMarker: true},
		"":                   {},
		"bob generic update": {OnFloor: true, Absent: true},
	} {
		w.Verb, w.Group, w.Version, w.Resource, w.Namespace = "update", "apps", "v1", "deployments", "shop"
		if got := shown(cluster.WhoCan(w, one.place(t, compiled))); got != want {
			t.Errorf("%+v: got %s, want %s", w, got, want)
		}
	}
}

// A new object has no name before admission, so that a rule for some names lets it in only beside another verb.
func TestC5_APOSTHasNoNameInTheAuthorizationPhase(t *testing.T) {
	t.Parallel()
	compiled := schematest.Traced(t)
	var g rbac.Grants
	grant(&g, "ann", "", []string{"web"}, "create")
	grant(&g, "bob", "", []string{"web"}, "granular", "granular:*")
	grant(&g, "cat", "", nil, "granular")
	grant(&g, "cat", "", []string{"web"}, "granular:*")
	grant(&g, "dan", "", []string{"web"}, "*")
	grant(&g, "eve", "", nil, "create")
	if got, want := whoCan(t, &g, nil, &Write{Verb: "create", Namespace: "shop", Name: "web"}, compiled, ".spec.replicas"), "cat granular granular+granular:*\neve generic create"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// The groups are those that an API server gives to such users.
func TestC1_SubjectsAreInTheGroupsOfEverySuchUser(t *testing.T) {
	t.Parallel()
	for subject, want := range map[Subject]string{
		{Kind: "User", Name: "ann"}:                              "ann [system:authenticated]",
		{Kind: "User", Name: "system:anonymous"}:                 "system:anonymous [system:unauthenticated]",
		{Kind: "ServiceAccount", Namespace: "shop", Name: "bot"}: "system:serviceaccount:shop:bot [system:serviceaccounts system:serviceaccounts:shop system:authenticated]",
		{Kind: "Group", Name: "ops"}:                             " [ops system:authenticated]",
		{Kind: "Group", Name: "system:authenticated"}:            " [system:authenticated]",
		{Kind: "Group", Name: "system:unauthenticated"}:          " [system:unauthenticated]",
		{Kind: "Group", Name: "system:serviceaccounts"}:          " [system:serviceaccounts system:authenticated]",
		{Kind: "Group", Name: "system:serviceaccounts:shop"}:     " [system:serviceaccounts:shop system:serviceaccounts system:authenticated]",
	} {
		u := subject.User()
		if got := fmt.Sprintf("%s %v", u.GetName(), u.GetGroups()); got != want {
			t.Errorf("%v: %s, want %s", subject, got, want)
		}
	}
	if s, ok := subjectOf(&rbacv1.Subject{Kind: "User", Name: "system:serviceaccount:shop:bot"}, ""); !ok || s != (Subject{"ServiceAccount", "shop", "bot"}) {
		t.Errorf("a user with the name of a ServiceAccount is %v", s)
	}
}

// TestD4_APartOfAnAtomicValueNeedsTheVerbOfTheWhole, so that the verb of the part alone is no way.
func TestD4_APartOfAnAtomicValueNeedsTheVerbOfTheWhole(t *testing.T) {
	t.Parallel()
	compiled := schematest.Traced(t)
	var g rbac.Grants
	grant(&g, "block", "", nil, "granular", "get", "granular:deletionBlock")
	grant(&g, "own", "", nil, "granular", "get", "granular:ownerReferences")
	grant(&g, "eve", "", nil, "update")
	got := whoCan(t, &g, nil, &Write{Verb: "update", Namespace: "shop", Name: "web"}, compiled, `.metadata.ownerReferences[uid="k"].blockOwnerDeletion`)
	if want := "eve generic update\nown granular granular+get+granular:ownerReferences"; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}
