package rbac

import (
	"context"
	"errors"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// world has the grants of the table below.
const world = `
kind: ClusterRole
apiVersion: rbac.authorization.k8s.io/v1
metadata: {name: scaler}
rules:
- {apiGroups: [apps], resources: [deployments], verbs: [granular, "granular:scale"]}
- {apiGroups: [apps], resources: [deployments/scale], verbs: [update], resourceNames: [web, ""]}
---
kind: ClusterRole
apiVersion: rbac.authorization.k8s.io/v1
metadata: {name: wide}
rules:
- {apiGroups: ["*"], resources: ["*"], verbs: [granular]}
- {apiGroups: [apps, batch], resources: ["*/status"], verbs: ["*"]}
- {nonResourceURLs: [/healthz, "/logs/*", "/a*b"], verbs: [get]}
---
kind: ClusterRole
apiVersion: rbac.authorization.k8s.io/v1
metadata: {name: everything}
rules:
- {apiGroups: ["*"], resources: ["*"], verbs: ["*"]}
- {nonResourceURLs: ["*"], verbs: ["*"]}
---
kind: Role
apiVersion: rbac.authorization.k8s.io/v1
metadata: {name: editor, namespace: shop}
rules:
- {apiGroups: [""], resources: [configmaps], verbs: [update]}
---
# The same name as the cluster role "scaler": a Role is another thing.
kind: Role
apiVersion: rbac.authorization.k8s.io/v1
metadata: {name: scaler, namespace: shop}
rules:
- {apiGroups: [""], resources: [secrets], verbs: [update]}
---
kind: ClusterRoleBinding
apiVersion: rbac.authorization.k8s.io/v1
metadata: {name: scalers}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: scaler}
subjects:
- {kind: User, name: alice, apiGroup: rbac.authorization.k8s.io}
- {kind: Group, name: ops}
- {kind: ServiceAccount, name: robot, namespace: shop}
---
kind: ClusterRoleBinding
apiVersion: rbac.authorization.k8s.io/v1
metadata: {name: wide}
roleRef: {kind: ClusterRole, name: wide}
subjects: [{kind: User, name: wim}]
---
kind: ClusterRoleBinding
apiVersion: rbac.authorization.k8s.io/v1
metadata: {name: roots}
roleRef: {kind: ClusterRole, name: everything}
subjects: [{kind: User, name: root}]
---
kind: ClusterRoleBinding
apiVersion: rbac.authorization.k8s.io/v1
metadata: {name: gone}
roleRef: {kind: ClusterRole, name: gone}
subjects: [{kind: User, name: gina}, {kind: User, name: alice}]
---
kind: ClusterRoleBinding
apiVersion: rbac.authorization.k8s.io/v1
metadata: {name: everyone}
roleRef: {kind: ClusterRole, name: public}
subjects: [{kind: Group, name: "system:authenticated"}]
---
kind: ClusterRole
apiVersion: rbac.authorization.k8s.io/v1
metadata: {name: public}
rules: [{apiGroups: [public], resources: [notes], verbs: [read]}]
---
kind: RoleBinding
apiVersion: rbac.authorization.k8s.io/v1
metadata: {name: editors, namespace: shop}
roleRef: {kind: Role, name: editor}
subjects: [{kind: User, name: eve}, {kind: ServiceAccount, name: robot}, {kind: ServiceAccount, name: far, namespace: other}]
---
kind: RoleBinding
apiVersion: rbac.authorization.k8s.io/v1
metadata: {name: scalers, namespace: shop}
roleRef: {kind: ClusterRole, name: scaler}
subjects: [{kind: User, name: sam}, {kind: User, name: alice}]
---
# The role of this name is in another namespace.
kind: RoleBinding
apiVersion: rbac.authorization.k8s.io/v1
metadata: {name: editors, namespace: other}
roleRef: {kind: Role, name: editor}
subjects: [{kind: User, name: eve}]
`

func TestAuthorizeAsAPIServer(t *testing.T) {
	const (
		byScalers = `RBAC: allowed by ClusterRoleBinding "scalers" of ClusterRole "scaler" to `
		noEditor  = `RBAC: role.rbac.authorization.k8s.io "editor" not found`
		noGone    = `RBAC: clusterrole.rbac.authorization.k8s.io "gone" not found`
	)
	// request is "verb group/resource[/subresource] [namespace]/[name]", or "verb path" for a path that begins with a slash.
	for _, test := range []struct {
		name, user, request string
		allowed             bool
		reason              string
	}{
		{"user", "alice", "granular:scale apps/deployments shop/web", true, byScalers + `User "alice"`},
		{"names of users are exact", "Alice", "granular:scale apps/deployments shop/web", false, ""},
		{"group", "olga,ops", "granular apps/deployments shop/web", true, byScalers + `Group "ops"`},
		{"a group's name is no user's", "ops", "granular apps/deployments shop/web", false, ""},
		{"a user's name is no group's", "olga,alice", "granular apps/deployments shop/web", false, ""},
		{"service account", "system:serviceaccount:shop:robot", "granular apps/deployments /web", true, byScalers + `ServiceAccount "robot/shop"`},
		{"service account of another namespace", "system:serviceaccount:other:robot", "granular apps/deployments /web", false, ""},
		{"service account's bare name", "robot", "granular apps/deployments /web", false, ""},
		{"first subject that fits is named", "alice,ops", "granular apps/deployments /web", true, byScalers + `User "alice"`},

		{"verb not held", "alice", "update apps/deployments shop/web", false, noGone},
		{"another granular verb", "alice", "granular:image(web) apps/deployments shop/web", false, noGone},
		{"granular:* is a literal verb, held by none here", "alice", "granular:* apps/deployments shop/web", false, noGone},
		{"group not held", "alice", "granular extensions/deployments shop/web", false, noGone},
		{"resource not held", "alice", "granular apps/replicasets shop/web", false, noGone},
		{"resource does not stand for subresource", "alice", "granular apps/deployments/status shop/web", false, noGone},
		{"subresource does not stand for resource", "sam", "update apps/deployments shop/web", false, ""},
		{"resource name", "alice", "update apps/deployments/scale shop/web", true, byScalers + `User "alice"`},
		{"resource name differs", "alice", "update apps/deployments/scale shop/api", false, noGone},
		{"empty resource name is the request without name", "alice", "update apps/deployments/scale shop/", true, byScalers + `User "alice"`},

		{"star of groups and resources", "wim", "granular batch/jobs shop/x", true, `RBAC: allowed by ClusterRoleBinding "wide" of ClusterRole "wide" to User "wim"`},
		{"star of resources has subresources", "wim", "granular /pods/log shop/x", true, `RBAC: allowed by ClusterRoleBinding "wide" of ClusterRole "wide" to User "wim"`},
		{"star subresource", "wim", "update apps/deployments/status shop/x", true, `RBAC: allowed by ClusterRoleBinding "wide" of ClusterRole "wide" to User "wim"`},
		{"star subresource is not another", "wim", "update apps/deployments/scale shop/x", false, ""},
		{"star subresource is not the resource", "wim", "update apps/deployments shop/x", false, ""},
		{"star subresource in another group", "wim", "update /pods/status shop/x", false, ""},
		{"star of verbs has granular verbs", "root", "granular:scale apps/deployments shop/x", true, `RBAC: allowed by ClusterRoleBinding "roots" of ClusterRole "everything" to User "root"`},

		{"path", "wim", "get /healthz", true, `RBAC: allowed by ClusterRoleBinding "wide" of ClusterRole "wide" to User "wim"`},
		{"path by its beginning", "wim", "get /logs/kubelet.log", true, `RBAC: allowed by ClusterRoleBinding "wide" of ClusterRole "wide" to User "wim"`},
		{"path without star is whole", "wim", "get /healthz/etcd", false, ""},
		{"path's star inside is a letter", "wim", "get /axb", false, ""},
		{"path and verb", "wim", "post /healthz", false, ""},
		{"every path", "root", "post /x", true, `RBAC: allowed by ClusterRoleBinding "roots" of ClusterRole "everything" to User "root"`},
		{"a rule about resources is not about paths", "alice", "granular /apps", false, noGone},

		{"role in its namespace", "eve", "update /configmaps shop/x", true, `RBAC: allowed by RoleBinding "editors/shop" of Role "editor" to User "eve"`},
		{"role in no other namespace", "eve", "update /configmaps third/x", false, ""},
		{"role is not cluster-wide", "eve", "update /configmaps /x", false, ""},
		{"role of another namespace is missing", "eve", "update /configmaps other/x", false, noEditor},
		{"binding's namespace is the account's", "system:serviceaccount:shop:robot", "update /configmaps shop/x", true, `RBAC: allowed by RoleBinding "editors/shop" of Role "editor" to ServiceAccount "robot/shop"`},
		{"account of another namespace", "system:serviceaccount:other:far", "update /configmaps shop/x", true, `RBAC: allowed by RoleBinding "editors/shop" of Role "editor" to ServiceAccount "far/other"`},
		{"cluster role in one namespace", "sam", "granular apps/deployments shop/x", true, `RBAC: allowed by RoleBinding "scalers/shop" of ClusterRole "scaler" to User "sam"`},
		{"cluster role in no other", "sam", "granular apps/deployments other/x", false, ""},
		{"role and cluster role of one name differ", "sam", "update /secrets shop/x", false, ""},
		{"cluster role bindings come first", "alice", "granular apps/deployments shop/x", true, byScalers + `User "alice"`},

		{"missing role grants nothing", "gina", "granular apps/deployments shop/x", false, noGone},
		{"who asks is authenticated", "nobody", "read public/notes /x", true, `RBAC: allowed by ClusterRoleBinding "everyone" of ClusterRole "public" to Group "system:authenticated"`},
		{"anonymous is not", "system:anonymous", "read public/notes /x", false, ""},
		{"nor who is said not to be", "nobody,system:unauthenticated", "read public/notes /x", false, ""},
		{"system:masters passes before RBAC", "m,system:masters", "update /secrets shop/x", true, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := parse(t, world)
			decision, reason, err := a.Authorize(context.Background(), attributes(test.user, test.request))
			if err != nil {
				t.Fatal(err)
			}
			want := authorizer.DecisionNoOpinion
			if test.allowed {
				want = authorizer.DecisionAllow
			}
			if decision != want || reason != test.reason {
				t.Errorf("%s: %s:\n got %v %s\nwant %v %s", test.user, test.request, decision, reason, want, test.reason)
			}
		})
	}
}

func TestReasonNamesEveryMissingRoleOnce(t *testing.T) {
	a := parse(t, `
{kind: ClusterRoleBinding, apiVersion: rbac.authorization.k8s.io/v1, metadata: {name: a}, roleRef: {kind: ClusterRole, name: x}, subjects: [{kind: User, name: u}]}
---
{kind: ClusterRoleBinding, apiVersion: rbac.authorization.k8s.io/v1, metadata: {name: b}, roleRef: {kind: ClusterRole, name: x}, subjects: [{kind: User, name: u}]}
---
{kind: RoleBinding, apiVersion: rbac.authorization.k8s.io/v1, metadata: {name: c, namespace: shop}, roleRef: {kind: Role, name: viewer}, subjects: [{kind: User, name: u}]}
`)
	_, reason, _ := a.Authorize(context.Background(), attributes("u", "update /pods shop/x"))
	if want := `RBAC: [clusterrole.rbac.authorization.k8s.io "x" not found, role.rbac.authorization.k8s.io "viewer" not found]`; reason != want {
		t.Errorf("got %s, want %s", reason, want)
	}
	if warnings := a.Warnings(); len(warnings) != 3 || warnings[0] != `ClusterRoleBinding "a": ClusterRole "x" is not among the grants, and so it grants nothing: add the role` {
		t.Errorf("warnings: %q", warnings)
	}
}

func TestZeroAuthorizerAllowsNothing(t *testing.T) {
	for _, a := range []*Authorizer{{}, parse(t, "")} {
		if decision, reason, err := a.Authorize(context.Background(), attributes("alice", "get /pods shop/x")); decision != authorizer.DecisionNoOpinion || reason != "" || err != nil {
			t.Errorf("got %v %q %v", decision, reason, err)
		}
	}
	if decision, _, _ := parse(t, world).Authorize(context.Background(), authorizer.AttributesRecord{Verb: "granular", ResourceRequest: true}); decision != authorizer.DecisionNoOpinion {
		t.Error("a request without a user was allowed")
	}
}

func TestConditionsAwareAnswersAreTheSame(t *testing.T) {
	a := parse(t, world)
	if d := a.ConditionsAwareAuthorize(context.Background(), attributes("alice", "granular apps/deployments /web")); !d.IsAllow() {
		t.Errorf("got %v, want Allow", d)
	}
	if d := a.ConditionsAwareAuthorize(context.Background(), attributes("bob", "granular apps/deployments /web")); !d.IsNoOpinion() {
		t.Errorf("got %v, want NoOpinion", d)
	}
	decision, _, err := a.EvaluateConditions(context.Background(), authorizer.ConditionsAwareDecision{}, nil)
	if decision != authorizer.DecisionDeny || !errors.Is(err, authorizer.ErrorConditionEvaluationNotSupported) {
		t.Errorf("got %v %v", decision, err)
	}
}

func parse(t *testing.T, manifest string) *Authorizer {
	t.Helper()
	g, err := Decode("test.yaml", []byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	a, err := New(g)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// attributes parses a user in the form "name,group,…".
func attributes(caller, request string) authorizer.Attributes {
	names := strings.Split(caller, ",")
	fields := strings.Fields(request)
	record := authorizer.AttributesRecord{User: &user.DefaultInfo{Name: names[0], Groups: names[1:]}, Verb: fields[0]}
	if len(fields) == 2 {
		record.Path = fields[1]
		return record
	}
	resource := strings.SplitN(fields[1], "/", 3)
	record.ResourceRequest, record.APIGroup, record.Resource = true, resource[0], resource[1]
	if len(resource) == 3 {
		record.Subresource = resource[2]
	}
	record.Namespace, record.Name, _ = strings.Cut(fields[2], "/")
	return record
}
