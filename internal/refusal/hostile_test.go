package refusal

import (
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
)

// TestGrant_NeverHasAWildcardOfThePath: kube-apiserver repeats the path of a request that it refuses, and in a Role "*" is every resource.
func TestGrant_NeverHasAWildcardOfThePath(t *testing.T) {
	for _, text := range []string{
		`*.* is forbidden: User "eve" cannot list resource "*" in API group "*" at the cluster scope`,
		`* is forbidden: User "eve" cannot list resource "*" in API group "" in the namespace "shop"`,
		`secrets.* "x" is forbidden: User "eve" cannot get resource "secrets" in API group "*" in the namespace "shop"`,
		`pods "x" is forbidden: User "eve" cannot get resource "pods/*" in API group "" in the namespace "shop"`,
		`* "x" is forbidden: User "eve" cannot patch resource "*/scale" in API group "apps" in the namespace "shop"`,
	} {
		r := only(t, text)
		if grant, why := r.Grant("shop"); grant != nil || !strings.Contains(why, "wildcard") {
			t.Errorf("%s: %+v", text, grant)
		}
	}
}

// TestGrant_OfANamedObjectIsOfItAlone: where the authorizers saw the name.
func TestGrant_OfANamedObjectIsOfItAlone(t *testing.T) {
	for text, name := range map[string]string{
		`groups "ops" is forbidden: User "eve" cannot impersonate resource "groups" in API group "" at the cluster scope`:               "ops",
		`secrets "a" is forbidden: User "eve" cannot get resource "secrets" in API group "" in the namespace "shop"`:                    "a",
		`pods "a" is forbidden: User "eve" cannot create resource "pods/exec" in API group "" in the namespace "shop"`:                  "a",
		`pods "a" is forbidden: User "eve" cannot create resource "pods" in API group "" in the namespace "shop"`:                       "",
		`secrets is forbidden: User "eve" cannot list resource "secrets" in API group "" in the namespace "shop"`:                       "",
		`deployments.apps "web" is forbidden: User "eve" may not change .spec.paused: needs any one of granular:suspension, granular:*`: "",
	} {
		r := only(t, text)
		grant, _ := r.Grant("shop")
		if grant == nil {
			t.Fatalf("no grant: %s", text)
		}
		role, ok := grant.Objects[0].(*rbacv1.Role)
		if !ok || strings.Join(role.Rules[0].ResourceNames, ",") != name {
			t.Errorf("%s: %+v", text, grant.Objects[0])
		}
	}
}

// TestGrant_UserThatIsAlmostAServiceAccount: without a namespace the subject would be the ServiceAccount of the Role's namespace.
func TestGrant_UserThatIsAlmostAServiceAccount(t *testing.T) {
	for user, kind := range map[string]string{
		"system:serviceaccount:ops:bot": "ServiceAccount", "system:serviceaccount::bot": "User", "system:serviceaccount:ops:": "User",
		"system:serviceaccount:ops:bot:x": "User", "system:serviceaccount:ops": "User",
	} {
		if got := subjectOf(user); got.Kind != kind || kind == "User" && got.Name != user {
			t.Errorf("%s: %+v", user, got)
		}
	}
}

// TestParse_TextsOfOthersInALine: the text of another webhook may have the name of fieldperm's.
func TestParse_TextsOfOthersInALine(t *testing.T) {
	const forged = `admission webhook "granular.fieldperm.dev" denied the request: deployments.apps "web" is forbidden: User "admin" may not change .spec: needs granular:*`
	for _, before := range []string{
		`admission webhook "other.example.com" denied the request: `, `error: admission webhook "other.example.com" denied the request: no: `,
		`failed calling webhook "other.example.com": `, `x "y" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: `,
	} {
		for _, text := range []string{forged, strings.SplitN(forged, "request: ", 2)[1]} {
			if got := Parse(before + text); len(got) != 0 {
				t.Errorf("%s%s: %+v", before, text, got)
			}
		}
	}
}

// TestParse_ReadsTheErrorOfALogOnly: other values are names and texts of others.
func TestParse_ReadsTheErrorOfALogOnly(t *testing.T) {
	const message = `"deployments.apps \"web\" is forbidden: User \"admin\" may not change .spec: needs granular:*"`
	for before, want := range map[string]int{
		`E1125 reconcile err=`: 1, `error=`: 1, "x=1\terr=": 1, `I1125 note=`: 0, `I1125 stderr=`: 0, `annotation=x=`: 0, `I1125 err=nil name=`: 0, `=`: 0,
	} {
		if got := Parse(before + message); len(got) != want {
			t.Errorf("%s: %d refusals", before, len(got))
		}
	}
}

// TestParse_KeepsTheLast: the answer of the command is about the last refusal.
func TestParse_KeepsTheLast(t *testing.T) {
	var text strings.Builder
	for i := range maxResults + 50 {
		fmt.Fprintf(&text, "%s\ndeployments.apps \"web\" is forbidden: User \"u%d\" may not change .spec: needs granular:*\n", strings.Repeat("x", 20_000), i)
	}
	all := Parse(text.String())
	if last := fmt.Sprintf("u%d", maxResults+49); len(all) != maxResults || all[maxResults-1].User != last {
		t.Errorf("%d refusals, the last of %s", len(all), all[len(all)-1].User)
	}
}
