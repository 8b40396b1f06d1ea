package tighten

import (
	"slices"
	"strings"
	"testing"
)

const rbacGroup = "rbac.authorization.k8s.io"

// TestPropose_AllVerbsKeepWhatIsNoUpdate: kube-apiserver asks about more verbs than those of requests, and a subject with "*" has them.
func TestPropose_AllVerbsKeepWhatIsNoUpdate(t *testing.T) {
	for _, c := range []struct{ rule, want string }{
		{`{apiGroups: [rbac.authorization.k8s.io], resources: [clusterroles], verbs: ["*"]}`, ",bind,escalate rbac.authorization.k8s.io clusterroles"},
		{`{apiGroups: ["*"], resources: [roles], verbs: ["*"]}`, ",bind,escalate,use * roles"},
		{`{apiGroups: [rbac.authorization.k8s.io], resources: [rolebindings], verbs: ["*"]}`, usual + " rbac.authorization.k8s.io rolebindings"},
		{`{apiGroups: [""], resources: [serviceaccounts], verbs: ["*"]}`, ",impersonate  serviceaccounts"},
		{`{apiGroups: [authentication.k8s.io], resources: [userextras/scopes], verbs: ["*"]}`, ",impersonate,impersonate:user-info,impersonate:serviceaccount,impersonate:arbitrary-node,impersonate:associated-node authentication.k8s.io userextras/scopes"},
		{`{apiGroups: [authentication.k8s.io], resources: [admissionReviewAPIGroups], verbs: ["*"]}`, ",attest authentication.k8s.io admissionReviewAPIGroups"},
		{`{apiGroups: [certificates.k8s.io], resources: [signers], verbs: ["*"], resourceNames: [a]}`, ",approve,sign,attest certificates.k8s.io signersa"},
		{`{apiGroups: [resource.k8s.io], resources: [resourceclaims/driver], verbs: ["*"]}`, ",associated-node:update,associated-node:patch,arbitrary-node:update,arbitrary-node:patch resource.k8s.io resourceclaims/driver"},
		{`{apiGroups: [""], resources: ["*/scale"], verbs: ["*"]}`, usual + "  */scale"},
		{`{apiGroups: [""], resources: ["*"], verbs: ["*"]}`, ",impersonate,request-serviceaccounts-token-audience  *; update,patch  */finalizers"},
	} {
		p := propose(t, operator, grants(t, bound(deployments+", "+c.rule, "")), webLog)
		if got := rulesText(after(t, p, Ref{clusterRoleKind, "", "operator"})); !strings.HasSuffix(got, c.want) {
			t.Errorf("%s becomes %q, want %q", c.rule, got, c.want)
		}
	}
}

// TestPropose_VerbsOfOtherProgramsAreALoss, and not those of kube-apiserver.
func TestPropose_VerbsOfOtherProgramsAreALoss(t *testing.T) {
	for rule, want := range map[string]string{
		`{apiGroups: ["", batch, apps, apiextensions.k8s.io, apiregistration.k8s.io, certificates.k8s.io], resources: [jobs], verbs: ["*"]}`:                "",
		`{apiGroups: [gateway.networking.k8s.io], resources: [gateways], verbs: ["*"]}`:                                                                     "other programs",
		`{apiGroups: ["*"], resources: [jobs], verbs: ["*"]}`:                                                                                               "other programs",
		`{apiGroups: [gateway.networking.k8s.io], resources: [gateways], verbs: [use, update]}`:                                                             "",
		`{apiGroups: [batch], resources: [jobs], verbs: ["*"]}, {apiGroups: [authentication.k8s.io], resources: [users], verbs: ["impersonate:user-info"]}`: "impersonate-on:MODE:VERB",
		`{apiGroups: [authentication.k8s.io], resources: [users], verbs: ["*"]}`:                                                                            "impersonate-on:MODE:VERB",
		`{apiGroups: [""], resources: [users], verbs: ["*"]}`:                                                                                               "",
	} {
		p := propose(t, operator, grants(t, bound(deployments+", "+rule, "")), webLog)
		if got := strings.Join(p.Losses, "; "); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: losses %q, want %q", rule, got, want)
		}
	}
}

// TestPropose_GrantingWhatIsNoLongerHeldIsALoss: kube-apiserver compares the rights in Roles and bindings with those of their author.
func TestPropose_GrantingWhatIsNoLongerHeldIsALoss(t *testing.T) {
	roles := line(rbacGroup+"/roles", "", "team", "r", "granular:rules")
	for name, c := range map[string]struct{ rules, log, want string }{
		"creates roles":               {`, {apiGroups: [rbac.authorization.k8s.io], resources: [roles], verbs: [create]}`, "", "roles"},
		"creates all":                 {`, {apiGroups: ["*"], resources: ["*"], verbs: [create]}`, "", "clusterroles roles clusterrolebindings rolebindings"},
		"updates roles":               {`, {apiGroups: [rbac.authorization.k8s.io], resources: [roles], verbs: [update]}`, roles, "roles"},
		"updates roles no longer":     {`, {apiGroups: [rbac.authorization.k8s.io], resources: [roles], verbs: [update]}`, "", ""},
		"sets owners":                 {`, {apiGroups: [rbac.authorization.k8s.io], resources: [roles], verbs: [update]}`, strings.Replace(roles, "granular:rules", "granular:ownerReferences,granular:deletionBlock,granular:finalizers,granular:finalizer(x)", 1), ""},
		"may escalate":                {`, {apiGroups: [rbac.authorization.k8s.io], resources: [roles], verbs: [create, escalate]}`, "", ""},
		"may bind, which is no help":  {`, {apiGroups: [rbac.authorization.k8s.io], resources: [roles], verbs: [create, bind]}`, "", "roles"},
		"escalates one":               {`, {apiGroups: [rbac.authorization.k8s.io], resources: [roles], verbs: [create]}, {apiGroups: [rbac.authorization.k8s.io], resources: [roles], verbs: [escalate], resourceNames: [r]}`, "", "roles"},
		"updates what it escalates":   {`, {apiGroups: [rbac.authorization.k8s.io], resources: [roles], verbs: [update, escalate], resourceNames: [r]}`, roles, ""},
		"binds":                       {`, {apiGroups: [rbac.authorization.k8s.io], resources: [rolebindings, clusterrolebindings], verbs: [create]}`, "", "clusterrolebindings rolebindings"},
		"binds ClusterRoles":          {`, {apiGroups: [rbac.authorization.k8s.io], resources: [rolebindings, clusterrolebindings], verbs: [create]}, {apiGroups: [rbac.authorization.k8s.io], resources: [clusterroles], verbs: [bind]}`, "", "rolebindings"},
		"binds all":                   {`, {apiGroups: [rbac.authorization.k8s.io], resources: [rolebindings, clusterrolebindings], verbs: [create]}, {apiGroups: [rbac.authorization.k8s.io], resources: [clusterroles, roles], verbs: [bind]}`, "", ""},
		"all verbs on Roles":          {`, {apiGroups: [rbac.authorization.k8s.io], resources: [roles, clusterroles, rolebindings, clusterrolebindings], verbs: ["*"]}`, roles, ""},
		"all verbs on their bindings": {`, {apiGroups: [rbac.authorization.k8s.io], resources: [rolebindings], verbs: ["*"]}`, "", "rolebindings"},
		"in its namespace": {`]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: r, namespace: team}, rules: [{apiGroups: [rbac.authorization.k8s.io], resources: [roles], verbs: [create]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: r, namespace: team}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: r}, subjects: [{kind: ServiceAccount, namespace: ops, name: operator}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: x}, rules: [`, "", "roles in team"},
	} {
		p := propose(t, operator, grants(t, bound(deployments+c.rules, "")), webLog+c.log)
		var got []string
		for _, g := range p.guarded {
			text := g.resource.Name
			if g.scope != "" {
				text += " in " + g.scope
			}
			got = append(got, text)
		}
		if strings.Join(got, " ") != c.want || len(p.Losses) != len(got) {
			t.Errorf("%s: %q, want %q; %q", name, got, c.want, p.Losses)
		}
		for _, loss := range p.Losses {
			has(t, loss, "update on deployments.apps", "patch on deployments.apps")
		}
	}
	// What a group or --keep-update leaves is not lost.
	rules := bound(deployments+`, {apiGroups: [rbac.authorization.k8s.io], resources: [roles], verbs: [create]}`, "")
	kept := propose(t, operator, grants(t, rules), webLog, func(o *Options) { o.Keep = []Resource{{"apps", "deployments"}} })
	held := propose(t, operator, grants(t, rules+`---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: all}, rules: [`+deployments+`]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: all}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: all}, subjects: [{kind: Group, name: "system:serviceaccounts"}]}
`), webLog)
	if len(kept.Losses)+len(held.Losses) > 0 {
		t.Errorf("losses: %q, %q", kept.Losses, held.Losses)
	}
}

// TestSimulation_DoesNotJudgeWhatKubeAPIServerCompares: a write of a Role may be refused although its verbs are granted.
func TestSimulation_DoesNotJudgeWhatKubeAPIServerCompares(t *testing.T) {
	rule := func(verbs string) string {
		return `, {apiGroups: [rbac.authorization.k8s.io], resources: [roles], verbs: [` + verbs + `]}`
	}
	set := line(rbacGroup+"/roles", "", "team", "r", "granular:rules")
	for name, c := range map[string]struct {
		verbs, log string
		granting   int64
	}{
		"rules":        {"update", set, 1},
		"all verbs":    {`"*"`, set, 0},
		"the owner":    {"update", line(rbacGroup+"/roles", "", "team", "r", "granular:ownerReferences"), 0},
		"no change":    {"update", line(rbacGroup+"/roles", "", "team", "r", ""), 0},
		"it created":   {"create, update", line(rbacGroup+"/roles", "", "team", "r", "", `"code":200`, `"code":201`), 1},
		"no Role":      {"update", webLog, 0},
		"both, by two": {"update", set + set, 2},
	} {
		p := propose(t, operator, grants(t, bound(deployments+rule(c.verbs), "")), webLog+set+line(rbacGroup+"/roles", "", "team", "r", "granular:ownerReferences"))
		s := NewSimulation(p)
		l := Log{Subject: p.Subject, Visit: func(ev *Event) {
			if r := s.Judge(ev); r != nil {
				t.Errorf("%s: refused: %+v", name, r)
			}
		}}
		must(t, l.Read(t.Context(), strings.NewReader(c.log)))
		if want := int64(strings.Count(c.log, "\n")) - c.granting; s.Granting != c.granting || s.Writes != want || s.Unjudged != 0 {
			t.Errorf("%s: %d of the writes grant, %d are judged, want %d and %d", name, s.Granting, s.Writes, c.granting, want)
		}
	}
	// Writes in a namespace in which nothing is lost are judged.
	s := &Simulation{guarded: []guard{{Resource{rbacGroup, "roles"}, "other"}}}
	if ev := (&Event{Resource: Resource{rbacGroup, "roles"}, Object: Object{Namespace: "team"}}); s.grants(ev) || !s.grants(&Event{Resource: ev.Resource, Object: Object{Namespace: "other"}}) {
		t.Error("the namespace does not count")
	}
}

func TestListed_IsBounded(t *testing.T) {
	rules := grants(t, bound(`{apiGroups: [apps], resources: [a, b, c, d, e, f, g, a], verbs: [update]}`, "")).ClusterRoles[0].Rules
	got := listed(lostUpdates(rules, nil), "")
	if !strings.HasSuffix(got, "update on e.apps, and 2 more") || !slices.Equal(strings.Split(got, ", ")[:1], []string{"update on a.apps"}) {
		t.Error(got)
	}
}
