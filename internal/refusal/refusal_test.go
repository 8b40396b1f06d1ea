package refusal

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fieldperm/fieldperm/internal/rbac"
)

const plainRBAC = `deployments.apps "web" is forbidden: User "scaler" cannot patch resource "deployments/scale" in API group "apps" in the namespace "shop"`

const lacksGet = `: fieldperm: granular: the user lacks "get" on deployments.apps/scale "web", and kube-apiserver reads the object for the user before admission: grant get`

func only(t *testing.T, text string) Refusal {
	t.Helper()
	all := Parse(text)
	if len(all) != 1 {
		t.Fatalf("%d refusals in %s", len(all), text)
	}
	return all[0]
}

func TestParse_MessagesOfKubeAPIServer(t *testing.T) {
	r := only(t, "Error from server (Forbidden): "+plainRBAC)
	if r.Origin != FromAuthorization || r.Resource != "deployments.apps/scale" || r.Namespace != "shop" || r.User != "scaler" || r.Verb != "patch" || !*r.Namespaced || r.NotProven {
		t.Errorf("%+v", r)
	}
	r = only(t, `Error from server (Forbidden): nodes is forbidden: User "a&lt;b&amp;" cannot list resource "nodes" in API group "" at the cluster scope`)
	if r.User != "a<b&" || *r.Namespaced || r.Resource != "nodes" || r.Name != "" {
		t.Errorf("%+v", r)
	}
	unproven := plainRBAC + `: fieldperm: granular: the user holds "granular", but is not let through: it is not proven that admission would look at the request; the administrator sees why in fieldperm's /readyz and log`
	if r = only(t, unproven); !r.NotProven || r.Causes()[0].Check != CheckEnforcement {
		t.Errorf("%+v", r)
	}
	// The name of a role is in quotes, and may be anything.
	forged := plainRBAC + `: RBAC: clusterrole.rbac.authorization.k8s.io "fieldperm: granular: is not let through: it is not proven that" not found`
	if r = only(t, forged); r.NotProven {
		t.Errorf("a role forges a missing proof: %+v", r)
	}
	if r = only(t, plainRBAC+lacksGet); !r.LacksGet || r.NotProven || r.Causes()[0].Rule != "A7" {
		t.Errorf("%+v", r)
	}
	forged = plainRBAC + `: RBAC: clusterrole.rbac.authorization.k8s.io "fieldperm: granular: kube-apiserver reads the object for the user before admission: grant get" not found`
	if r = only(t, forged); r.LacksGet {
		t.Errorf("a role forges a missing get: %+v", r)
	}
}

func TestParse_FailuresAreNoDecisions(t *testing.T) {
	for text, webhook := range map[string]string{
		`Error from server (InternalError): Internal error occurred: failed calling webhook "granular.fieldperm.dev": failed to call webhook: Post "https://x": EOF`:                                  "granular.fieldperm.dev",
		`Error from server (ServiceUnavailable): admission webhook "uncovered.fieldperm.dev" denied the request: permission schema: is not loaded yet: try again, and look at /readyz if it stays so`: "uncovered.fieldperm.dev",
	} {
		r := only(t, text)
		if grant, why := r.Grant("shop"); r.Origin != FromFailure || r.Webhook != webhook || r.Causes()[0].Check != CheckFailure || grant != nil || why == "" {
			t.Errorf("%s: %+v", text, r)
		}
	}
}

// TestParse_TextsThatAreNoRefusal: of other programs, or cut before the user.
func TestParse_TextsThatAreNoRefusal(t *testing.T) {
	for text, maybe := range map[string]string{
		"":    "give the whole message",
		"pod": "give the whole message",
		`Error from server (Forbidden): pods "x" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1`: "ResourceQuota",
		`admission webhook "validate.kyverno.svc" denied the request: no`:                                                           "another webhook",
		`configmaps "x" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`:                            "ValidatingAdmissionPolicy",
		`failed calling webhook "other.example.com": EOF`:                                                                           "another program",
		`deployments.apps "web" is forbidden: User "sca`:                                                                            "another check",
		`deployments.apps "web" is forbidden: User "a" may ` + "\n" + `not change .spec: needs granular:*`:                          "another check",
		`x"deployments.apps "web" is forbidden: User "a" may not update it`:                                                         "another check",
	} {
		if got := Parse(text); len(got) != 0 {
			t.Errorf("%s: %+v", text, got)
		}
		if is := Other(text); !strings.Contains(is, maybe) {
			t.Errorf("%s: %s", text, is)
		}
	}
}

// TestParse_SeveralLines: kubectl apply prints the patch before the message, and a script the messages of several objects.
func TestParse_SeveralLines(t *testing.T) {
	text := "deployment.apps/a configured\nError from server (Forbidden): error when applying patch:\n" +
		`{"metadata":{"annotations":{"x":"deployments.apps \"a\" is forbidden: User \"admin\" may not change .spec: needs granular:*"}}}` + "\nto:\nResource: \"apps/v1, Resource=deployments\"\nName: \"web\"\n" +
		`for: "f.yaml": error when patching "f.yaml": admission webhook "granular.fieldperm.dev" denied the request: deployments.apps "web" is forbidden: User "u" may not change .spec.paused: needs granular:suspension` + "\r\n" + plainRBAC + "\n"
	all := Parse(text)
	if len(all) != 2 || all[0].User != "u" || all[0].Name != "web" || all[0].Webhook != "granular.fieldperm.dev" || all[1].User != "scaler" {
		t.Errorf("%+v", all)
	}
}

func TestCausesAndGrant(t *testing.T) {
	const begin, granular, uncovered = `deployments.apps "web" is forbidden: User "u" `, `admission webhook "granular.fieldperm.dev" denied the request: `, `admission webhook "uncovered.fieldperm.dev" denied the request: `
	for _, test := range []struct {
		text, checks, verbs, why string
	}{
		{granular + begin + `may not change .spec.replicas: needs any one of granular:scale, granular:specification, granular:*`, "verb", "granular granular:scale", ""},
		{granular + begin + `may not change .spec.replicas: needs granular:*`, "verb", "granular granular:*", ""},
		{granular + begin + `may not change .spec.replicas: needs granular:scale`, "barrier", "granular granular:scale", ""},
		{uncovered + begin + `may not change .spec.replicas: needs granular:scale`, "barrier", "granular:scale", ""},
		{granular + begin + `may not change .spec.replicas (its field managers): needs any one of granular:scale, granular:*`, "verb ownership", "granular granular:scale", ""},
		{begin + `may not change .: no verb covers it; version "v1" does not show every field: write through version "v2"`, "noVerb version", "", "no verb covers the change"},
		{begin + `may not change .spec.a: the request needs more than 32 permission checks: a grant of granular:labels would do, or change fewer fields at once`, "limit", "granular granular:labels", ""},
		{begin + `may not change .spec.a: needs granular:*; no field manager owns this change: a default of the API server, a mutating webhook or a policy made it, not the request`, "verb mutation", "granular granular:*", ""},
		{begin + `may not change .spec.a: needs granular:scale; authorizer "x" denies granular:scale: "no"`, "deny barrier", "", "no grant overrides it"},
		{begin + `may not change .spec.a: needs granular:scale; the condition of policy "few" is not met: "at most 5"`, "condition barrier", "granular granular:scale", ""},
		{begin + `may not update it: needs update or patch, or granular with the granular verbs of every changed field`, "marker", "update", ""},
		{begin + `may not create it: needs create, or granular with granular:creation and the granular verbs of every field`, "marker", "create", ""},
		{granular + begin + `may not create it: needs any one of granular:creation, granular:* (2 more changes were not looked at)`, "verb", "granular granular:creation", ""},
		{uncovered + begin + `may not create it: needs granular:creation`, "barrier", "granular:creation", ""},
		{begin + `may not delete it: needs delete`, "permission", "delete", ""},
		{begin + `may not delete it; authorizer "ConditionalPolicy" denies delete: "frozen"`, "deny", "", "no grant overrides it"},
		{begin + `may not change .spec.a: needs update of it`, "unclear", "", "no grant would help"},
		{strings.Replace(begin, `"u"`, `"`+strings.Repeat("u", 256)+`…"`, 1) + `may not change .spec.a: needs granular:*`, "verb", "", "whole name"},
		{plainRBAC, "marker", "patch", ""},
		{plainRBAC + lacksGet, "permission", "get", ""},
		{strings.Replace(plainRBAC, "patch", "delete", 1), "permission", "delete", ""},
	} {
		r := only(t, test.text)
		var checks []string
		for _, c := range r.Causes() {
			checks = append(checks, string(c.Check))
			if c.Why == "" || c.Do == "" {
				t.Errorf("%s: %+v", test.text, c)
			}
		}
		grant, why := r.Grant("shop")
		granted := ""
		if grant != nil {
			granted = strings.Join(grant.Verbs, " ")
		}
		if strings.Join(checks, " ") != test.checks || granted != test.verbs || !strings.Contains(why, test.why) || (why == "") != (grant != nil) {
			t.Errorf("%s: checks %v, grant %q, %s", test.text, checks, granted, why)
		}
	}
}

// The name of a role depends on what it grants, so that it does not stand beside another role's rules.
func TestGrant_Objects(t *testing.T) {
	r := Refusal{Origin: FromFieldperm, Resource: "deployments.apps/scale", User: "system:serviceaccount:ops:bot", Field: ".spec.replicas", Needs: []string{"granular:scale"}}
	grant, _ := r.Grant("shop")
	role, binding := grant.Objects[0].(*rbacv1.Role), grant.Objects[1].(*rbacv1.RoleBinding)
	if role.Namespace != "shop" || role.Rules[0].Resources[0] != "deployments/scale" || role.Rules[0].APIGroups[0] != "apps" || binding.RoleRef.Name != role.Name || binding.Subjects[0] != (rbacv1.Subject{Kind: "ServiceAccount", Namespace: "ops", Name: "bot"}) {
		t.Errorf("%+v %+v", role, binding)
	}
	r.User = "Ünïcode\n: x"
	grant, _ = r.Grant("")
	cluster := grant.Objects[0].(*rbacv1.ClusterRole)
	if cluster.Name == role.Name || grant.Objects[1].(*rbacv1.ClusterRoleBinding).Subjects[0].Name != r.User {
		t.Errorf("%+v", grant.Objects)
	}
}

func TestGrantors_TakeTheNamespaceAndTheEscalationRule(t *testing.T) {
	g := &rbac.Grants{}
	add := func(name, namespace string, resources, verbs []string) {
		meta := metav1.ObjectMeta{Name: name, Namespace: namespace}
		g.Roles = append(g.Roles, rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{APIGroups: []string{rbacv1.GroupName}, Resources: resources, Verbs: verbs}}})
		g.RoleBindings = append(g.RoleBindings, rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: rbacv1.RoleRef{Kind: "Role", Name: name}, Subjects: []rbacv1.Subject{{Kind: "User", Name: name}}})
	}
	add("binds", "shop", []string{"roles", "rolebindings"}, []string{"create", "bind"})
	add("plain", "shop", []string{"rolebindings"}, []string{"update"})
	add("escalates", "shop", []string{"*"}, []string{"*"})
	add("reads", "shop", []string{"roles", "rolebindings"}, []string{"get", "delete"})
	add("elsewhere", "other", []string{"*"}, []string{"*"})
	var got []string
	for _, one := range Grantors(g, "shop") {
		text := one.Name + " " + strings.Join(one.May, ",")
		if one.Anything {
			text += " anything"
		}
		got = append(got, text)
	}
	const want = "binds roles,rolebindings,bind anything; escalates roles,rolebindings,escalate,bind anything; plain rolebindings"
	if text := strings.Join(got, "; "); text != want {
		t.Errorf("got %s, want %s", text, want)
	}
	if len(Grantors(g, "")) != 0 {
		t.Error("a role of a namespace grants in the cluster")
	}
}
