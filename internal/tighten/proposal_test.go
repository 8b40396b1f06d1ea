package tighten

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
)

// bound is the operator's ClusterRole with rules, bound by a ClusterRoleBinding with these subjects more.
func bound(rules, more string) string {
	return `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: operator}, rules: [` + rules + `]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: operator}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: operator},
  subjects: [{kind: ServiceAccount, namespace: ops, name: operator}` + more + `]}
`
}

const deployments = `{apiGroups: [apps], resources: [deployments], verbs: [get, update, patch]}`

var webLog = line("apps/deployments", "", "team", "web", "granular:image(web),granular:scale")

// after returns the rules of a role after the changes of a proposal.
func after(t *testing.T, p *Proposal, ref Ref) []rbacv1.PolicyRule {
	t.Helper()
	for i := range p.Change {
		if p.Change[i].Ref == ref {
			return p.Change[i].RoleAfter.Rules
		}
	}
	t.Fatalf("%s is not changed", ref)
	return nil
}

func rulesText(rules []rbacv1.PolicyRule) string {
	var out []string
	for i := range rules {
		r := &rules[i]
		out = append(out, fmt.Sprintf("%s %s %s%s", strings.Join(r.Verbs, ","), strings.Join(r.APIGroups, ","), strings.Join(r.Resources, ","), strings.Join(r.ResourceNames, ",")))
	}
	return strings.Join(out, "; ")
}

// own is the role of the subject alone.
func TestPropose_ChangesARoleOfTheSubjectAlone(t *testing.T) {
	objects := grants(t, bound(deployments, ""))
	p := propose(t, operator, objects, webLog)
	has(t, diffs(t, p), "+  - granular:image(web)", "-  - update", "-  - patch", "   - get", "--- /dev/null")
	if !p.Complete() || len(p.Losses) > 0 || len(p.Remaining) > 0 {
		t.Errorf("%+v", p)
	}
	if got := rulesText(after(t, p, Ref{clusterRoleKind, "", "operator"})); got != "get apps deployments" {
		t.Errorf("rules are %s", got)
	}
	// The proposal itself holds no update.
	s := NewSimulation(p)
	l := Log{Subject: p.Subject, Visit: func(ev *Event) {
		if r := s.Judge(ev); r != nil {
			t.Errorf("refused: %+v", r)
		}
	}}
	must(t, l.Read(t.Context(), strings.NewReader(webLog)))
	if s.Writes != 1 {
		t.Error("nothing was judged")
	}
	if s.holds(question{Resource{"apps", "deployments"}, "team", "web", "update"}) {
		t.Error("update is still held")
	}
}

func TestPropose_CopiesASharedRole(t *testing.T) {
	for name, yaml := range map[string]string{
		"another subject": bound(deployments, `, {kind: User, name: jane, apiGroup: rbac.authorization.k8s.io}`),
		"another binding": bound(deployments, "") + `---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: other, namespace: team}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: operator}, subjects: [{kind: User, name: jane}]}`,
		"aggregated": strings.Replace(bound(deployments, ""), "rules:", "aggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b}}]}, rules:", 1),
		"a part of an aggregated role": strings.Replace(bound(deployments, ""), "{name: operator}, rules:", "{name: operator, labels: {a: b}}, rules:", 1) + `---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: all}, aggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b}}]}, rules: []}`,
	} {
		t.Run(name, func(t *testing.T) {
			p := propose(t, operator, grants(t, yaml), webLog)
			if len(p.Change) != 1 || p.Change[0].Ref != (Ref{clusterRoleBindingKind, "", "operator"}) {
				t.Fatalf("changes are %+v", p.Change)
			}
			if slices.ContainsFunc(p.Change[0].BindingAfter.Subjects, func(s rbacv1.Subject) bool { return s.Name == "operator" }) {
				t.Error("the subject is still bound")
			}
			if len(p.Add.ClusterRoles) != 2 || len(p.Add.ClusterRoleBindings) != 2 {
				t.Fatalf("added: %+v", p.Add)
			}
			if got := rulesText(p.Add.ClusterRoles[1].Rules); got != "get apps deployments" {
				t.Errorf("the copy has %s", got)
			}
			if slices.ContainsFunc(p.after, func(g Grant) bool { return len(g.writes()) > 0 }) {
				t.Errorf("update is still held: %+v", p.after)
			}
		})
	}
}

// TestPropose_CopiesAClusterRoleThatIsBoundInANamespace: its administrator can bind any ClusterRole there whose rules it holds, and does not make
// the proposal change an object of the whole cluster.
func TestPropose_CopiesAClusterRoleThatIsBoundInANamespace(t *testing.T) {
	inTeam := `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: operator, namespace: team}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: operator}, subjects: [{kind: ServiceAccount, namespace: ops, name: operator}]}`
	role, whole, _ := strings.Cut(bound(deployments, ""), "---\n")
	for name, test := range map[string]struct {
		yaml    string
		changes []Ref
	}{
		"in a namespace only":         {role + "---\n" + inTeam, []Ref{{roleBindingKind, "team", "operator"}}},
		"in a namespace, and in all":  {role + "---\n" + inTeam + "\n---\n" + whole, []Ref{{clusterRoleBindingKind, "", "operator"}, {roleBindingKind, "team", "operator"}}},
		"by ClusterRoleBindings only": {role + "---\n" + whole + "---\n" + strings.Replace(whole, "{name: operator}", "{name: again}", 1), []Ref{{clusterRoleKind, "", "operator"}}},
		"a Role, which it can not be": {strings.NewReplacer("kind: ClusterRole, metadata: {name: operator}", "kind: Role, metadata: {name: operator, namespace: team}").Replace(role) + "---\n" + strings.Replace(inTeam, "kind: ClusterRole", "kind: Role", 1), []Ref{{roleKind, "team", "operator"}}},
	} {
		t.Run(name, func(t *testing.T) {
			p := propose(t, operator, grants(t, test.yaml), webLog)
			var changes []Ref
			for i := range p.Change {
				changes = append(changes, p.Change[i].Ref)
			}
			if !slices.Equal(changes, test.changes) {
				t.Errorf("changes are %v, want %v", changes, test.changes)
			}
			copied := slices.ContainsFunc(p.Add.ClusterRoles, func(r rbacv1.ClusterRole) bool { return r.Annotations[sourceAnnotation] == "ClusterRole operator" })
			if want := test.changes[0].Kind != clusterRoleKind && test.changes[0].Kind != roleKind; copied != want {
				t.Errorf("copied: %t, want %t", copied, want)
			}
			if slices.ContainsFunc(p.after, func(g Grant) bool { return len(g.writes()) > 0 }) {
				t.Errorf("update is still held: %+v", p.after)
			}
		})
	}
}

func TestPropose_PinsDefaultsOfKubernetes(t *testing.T) {
	yaml := strings.Replace(bound(deployments, ""), "{name: operator}, rules:", `{name: operator, annotations: {rbac.authorization.kubernetes.io/autoupdate: "true"}}, rules:`, 1)
	p := propose(t, operator, grants(t, yaml), webLog)
	if p.Change[0].RoleAfter.Annotations[autoupdateAnnotation] != "false" {
		t.Error("kube-apiserver will write the role again")
	}
	has(t, strings.Join(p.Notes, "\n"), "one of Kubernetes' defaults")
}

// usual are the verbs that "*" on any resource of kube-apiserver becomes.
const usual = "get,list,watch,create,delete,deletecollection,unsafe-delete-ignore-read-errors"

func TestPropose_StripsRules(t *testing.T) {
	for _, c := range []struct{ name, rule, want, loss string }{
		{"only writes", `{apiGroups: [apps], resources: [deployments], verbs: [update, patch]}`, "", ""},
		{"create stays", `{apiGroups: [apps], resources: [deployments], verbs: [create, delete, update]}`, "create,delete apps deployments", ""},
		{"names stay", `{apiGroups: [apps], resources: [deployments], verbs: [get, patch], resourceNames: [web]}`, "get apps deploymentsweb", ""},
		{"finalizers stay", `{apiGroups: [apps], resources: [deployments, deployments/finalizers], verbs: [get, update]}`,
			"get apps deployments,deployments/finalizers; update apps deployments/finalizers", ""},
		{"aggregated groups stay", `{apiGroups: [apps, metrics.example.com], resources: [deployments, nodes], verbs: [patch]}`,
			"patch metrics.example.com deployments,nodes", ""},
		{"all verbs", `{apiGroups: [apps], resources: [deployments], verbs: ["*"]}`, usual + " apps deployments", ""},
		{"all verbs of another program", `{apiGroups: [apps, example.com], resources: [deployments], verbs: ["*"]}`, usual + ",use apps,example.com deployments", "other programs"},
		{"all of everything", `{apiGroups: ["*"], resources: ["*"], verbs: ["*"]}`, usual + ",bind,escalate,impersonate,impersonate:user-info,impersonate:serviceaccount,impersonate:arbitrary-node,impersonate:associated-node,approve,sign,attest," +
			"associated-node:update,associated-node:patch,arbitrary-node:update,arbitrary-node:patch,request-serviceaccounts-token-audience,request-serviceaccounts-podcertificate-signer,use * *; update,patch * */finalizers", "impersonate-on:MODE:VERB"},
		{"not served", `{apiGroups: [apps], resources: [deployments], verbs: [update]}, {apiGroups: [gone.example.com], resources: [things], verbs: [get, update]}`, "get gone.example.com things", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := propose(t, operator, grants(t, bound(c.rule, "")), webLog)
			if got := rulesText(after(t, p, Ref{clusterRoleKind, "", "operator"})); got != c.want {
				t.Errorf("rules are %q, want %q", got, c.want)
			}
			has(t, strings.Join(p.Losses, "\n"), c.loss)
			if unused := c.name == "not served" || c.name == "all verbs of another program" || c.name == "aggregated groups stay"; unused != (len(p.Unused) > 0) {
				t.Errorf("unused: %q", p.Unused)
			}
			if c.loss == "" && len(p.Losses) > 0 {
				t.Errorf("losses: %q", p.Losses)
			}
		})
	}
}

// TestPropose_KeepsUpdateWhereFieldpermDoesNotDecide: a wildcard covers a resource of an aggregated server that the subject writes.
func TestPropose_KeepsUpdateWhereFieldpermDoesNotDecide(t *testing.T) {
	p := propose(t, operator, grants(t, bound(`{apiGroups: ["*"], resources: ["*"], verbs: [update]}`, "")), webLog+line("metrics.example.com/nodes", "", "", "n", "-"))
	if got := rulesText(after(t, p, Ref{clusterRoleKind, "", "operator"})); got != "update * */finalizers; update metrics.example.com nodes" {
		t.Errorf("rules are %q", got)
	}
	if !p.Complete() {
		t.Errorf("gaps: %q", p.Gaps)
	}
}

func TestPropose_ScopeAndNames(t *testing.T) {
	log := line("apps/deployments", "", "team", "web", "granular:scale") + line("apps/deployments", "", "other", "db", "granular:scale") + line("apps/deployments", "status", "team", "web", "granular:condition(Ready)")
	cluster := bound(`{apiGroups: [apps], resources: [deployments, deployments/status], verbs: [update]}`, "")
	inTeam := `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: operator, namespace: team}, rules: [{apiGroups: [apps], resources: [deployments], resourceNames: [web, api], verbs: [patch]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: operator, namespace: team}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: operator}, subjects: [{kind: ServiceAccount, namespace: ops, name: operator}]}`
	seen := func(o *Options) { o.Namespaces = Seen }
	names := func(o *Options) { o.Names = Seen }
	for _, c := range []struct {
		name, yaml string
		change     []func(*Options)
		want       string
		missing    int
	}{
		{"held", cluster, nil, "/: get,granular,granular:scale apps deployments; get,granular,granular:condition(Ready) apps deployments/status", 0},
		{"namespaces seen", cluster, []func(*Options){seen}, "other: get,granular,granular:scale apps deployments | team: get,granular,granular:scale apps deployments; get,granular,granular:condition(Ready) apps deployments/status", 0},
		{"names seen", cluster, []func(*Options){names}, "/: get,granular,granular:scale apps deploymentsdb,web; get,granular,granular:condition(Ready) apps deployments/statusweb", 0},
		{"both", cluster, []func(*Options){seen, names}, "other: get,granular,granular:scale apps deploymentsdb | team: get,granular,granular:scale apps deploymentsweb; get,granular,granular:condition(Ready) apps deployments/statusweb", 0},
		// In namespace other, and on the status, nothing covers the writes.
		{"a role of a namespace", inTeam, nil, "team: get,granular,granular:scale apps deploymentsapi,web", 4},
		{"a role of a namespace, names seen", inTeam, []func(*Options){names}, "team: get,granular,granular:scale apps deploymentsweb", 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := propose(t, operator, grants(t, c.yaml), log, c.change...)
			var got []string
			for _, r := range p.Add.Roles {
				got = append(got, r.Namespace+": "+rulesText(r.Rules))
			}
			for _, r := range p.Add.ClusterRoles {
				got = append(got, "/: "+rulesText(r.Rules))
			}
			if text := strings.Join(got, " | "); text != c.want {
				t.Errorf("rules are %q,\nwant %q", text, c.want)
			}
			if len(p.New) != c.missing {
				t.Errorf("missing: %q, want %d", p.New, c.missing)
			}
		})
	}
}

func TestPropose_NewAccessIsListedAndOnlyAllowedWhenAsked(t *testing.T) {
	objects := grants(t, bound(deployments, ""))
	log := webLog + line("/configmaps", "", "team", "a", "granular:data(a)")
	p := propose(t, operator, objects, log)
	if len(p.New) != 2 || p.Complete() || strings.Contains(diffs(t, p), "configmaps") {
		t.Errorf("new: %q\n%s", p.New, diffs(t, p))
	}
	p = propose(t, operator, objects, log, func(o *Options) { o.AllowNew = true })
	if more := Prove(p, objects, nil, &Barriers{Unknown: true}).New; len(more) != 2 || !strings.Contains(more[1], "granular:data(a) on configmaps in namespace team") {
		t.Errorf("the proof finds %q", more)
	}
}

// TestPropose_NamesThatNoRuleCovers: the subject may update web only, now.
func TestPropose_NamesThatNoRuleCovers(t *testing.T) {
	objects := grants(t, bound(`{apiGroups: [apps], resources: [deployments], resourceNames: [web], verbs: [update]}`, ""))
	log := line("apps/deployments", "", "team", "web", "granular:scale") + line("apps/deployments", "", "team", "db", "granular:scale")
	p := propose(t, operator, objects, log)
	if len(p.New) != 2 || !strings.Contains(p.New[1], "granular:scale on deployments.apps in namespace team, such as db") {
		t.Errorf("%q", p.New)
	}
}

func TestPropose_RightsOfGroupsRemain(t *testing.T) {
	yaml := bound(deployments, "") + `---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: group}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: operators}, subjects: [{kind: Group, name: 'system:serviceaccounts:ops'}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: operators}, rules: [{apiGroups: [''], resources: [configmaps], verbs: [update]}]}`
	p := propose(t, operator, grants(t, yaml), webLog+line("/configmaps", "", "team", "a", "granular:data(a)"))
	if len(p.Unused) > 0 {
		t.Errorf("unused: %q", p.Unused)
	}
	has(t, strings.Join(p.Remaining, "\n"), `update or patch on configmaps through group "system:serviceaccounts:ops"`)
	if len(p.New) > 0 || strings.Contains(diffs(t, p), "configmaps") {
		t.Error("the right of the group is not seen")
	}
}

func TestPropose_GroupsAndUsersAreSubjects(t *testing.T) {
	yaml := `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: operator}, rules: [` + deployments + `]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: operator}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: operator}, subjects: [{kind: Group, name: 'system:serviceaccounts:ops'}]}`
	p := propose(t, "group:system:serviceaccounts:ops", grants(t, yaml), webLog)
	if len(p.Change) != 1 || p.Add.ClusterRoleBindings[0].Subjects[0] != (rbacv1.Subject{Kind: "Group", APIGroup: "rbac.authorization.k8s.io", Name: "system:serviceaccounts:ops"}) {
		t.Errorf("%+v", p)
	}
	asUser := strings.Replace(yaml, "{kind: Group, name: 'system:serviceaccounts:ops'}", "{kind: User, name: 'system:serviceaccount:ops:operator'}", 1)
	if p := propose(t, operator, grants(t, asUser), webLog); len(p.Change) != 1 {
		t.Error("a binding that names the ServiceAccount as a user is not seen")
	}
}

func TestPropose_GapsMakeItIncomplete(t *testing.T) {
	objects := grants(t, bound(deployments, ""))
	for text, log := range map[string]string{
		"1 writes were not observed":     line("apps/deployments", "", "team", "web", "-"),
		"annotations left out 9 verbs":   line("apps/deployments", "", "team", "web", "granular:scale,…+9"),
		"a change that no granular verb": line("apps/deployments", "", "team", "web", "none"),
		"1 uses of verbs are omitted":    line("apps/deployments", "", "team", "web", "granular:BAD"),
	} {
		p := propose(t, operator, objects, log)
		has(t, strings.Join(p.Gaps, "\n"), text)
		if p.Complete() {
			t.Error("the proposal says that it is complete")
		}
	}
	if _, err := Propose(mustSubject(t, operator), objects, &Evidence{}, Options{}); err == nil || !strings.Contains(err.Error(), "observe it for longer") {
		t.Errorf("empty evidence: %v", err)
	}
}

func TestPropose_ManyVerbsAreBounded(t *testing.T) {
	e := &Evidence{}
	var ev Event
	ev.Observed, ev.Resource = true, Resource{"", "configmaps"}
	for i := range maxVerbs + 100 {
		ev.fields = fields{verbs: []string{fmt.Sprintf("granular:data(k%d)", i)}}
		e.Collect(&ev)
	}
	if w := e.Resources[ev.Resource]; len(w.Verbs) != maxVerbs || e.Omitted != 101 {
		t.Errorf("%d verbs, %d omitted", len(w.Verbs), e.Omitted)
	}
	if unused := e.Generalize([]string{"data", "image"}); !slices.Equal(unused, []string{"image"}) {
		t.Errorf("unused: %q", unused)
	}
	w := e.Resources[ev.Resource]
	if len(w.Verbs) != 2 || w.Verbs["granular:data"].Count != maxVerbs-1 {
		t.Errorf("%d verbs after generalization", len(w.Verbs))
	}
}

// TestPropose_AgainAfterTheFirstStepIsTheSame: the objects that were added are there, and the evidence of a later window has less.
func TestPropose_AgainAfterTheFirstStepIsTheSame(t *testing.T) {
	for _, more := range []string{"", `, {kind: User, name: jane, apiGroup: rbac.authorization.k8s.io}`} {
		objects := grants(t, bound(deployments, more))
		first := propose(t, operator, objects, webLog)
		objects.ClusterRoles = append(objects.ClusterRoles, first.Add.ClusterRoles...)
		objects.ClusterRoleBindings = append(objects.ClusterRoleBindings, first.Add.ClusterRoleBindings...)
		second := propose(t, operator, objects, line("apps/deployments", "", "team", "web", "granular:scale"))
		if a, b := diffs(t, first), diffs(t, second); a != b {
			t.Errorf("first:\n%s\nsecond:\n%s", a, b)
		}
	}
}

// TestPropose_LeavesOutWhatAnotherVerbCovers: an earlier run was generalized, this one is not.
func TestPropose_LeavesOutWhatAnotherVerbCovers(t *testing.T) {
	objects := grants(t, bound(deployments, ""))
	p := propose(t, operator, objects, line("apps/deployments", "", "team", "web", "granular:image,granular:image(web),granular:scale"))
	if got := rulesText(p.Add.ClusterRoles[0].Rules); got != "get,granular,granular:image,granular:scale apps deployments" {
		t.Error(got)
	}
	p = propose(t, operator, objects, line("apps/deployments", "", "team", "web", "granular:*,granular:image(web)"))
	if got := rulesText(p.Add.ClusterRoles[0].Rules); got != "get,granular,granular:* apps deployments" {
		t.Error(got)
	}
}

func TestPropose_ResourcesThatAreNotServedAreAGap(t *testing.T) {
	objects := grants(t, bound(deployments+`, {apiGroups: [gone.example.com], resources: [things], verbs: [update]}`, ""))
	p := propose(t, operator, objects, webLog+line("gone.example.com/things", "", "team", "web", "granular:scale"))
	has(t, strings.Join(p.Gaps, "\n"), "things.gone.example.com: the evidence has writes, and the API server does not serve it")
	if strings.Contains(rulesText(p.Add.ClusterRoles[0].Rules), "things") {
		t.Error("verbs are proposed")
	}
}

func TestSimulation_ListsWhatWouldBeRefused(t *testing.T) {
	p := propose(t, operator, grants(t, bound(deployments, "")), line("apps/deployments", "", "team", "web", "granular:image(web),granular:label"))
	s := NewSimulation(p)
	var got []string
	l := Log{Subject: p.Subject, Visit: func(ev *Event) {
		if r := s.Judge(ev); r != nil {
			got = append(got, fmt.Sprintf("%d %s %s: %s", r.Line, r.Resource, r.Object, strings.Join(r.Missing, ",")))
		}
	}}
	must(t, l.Read(t.Context(), strings.NewReader(
		line("apps/deployments", "", "team", "web", "granular:image(web),granular:label(a)")+
			line("apps/deployments", "", "team", "web", "granular:image(db),granular:scale")+
			line("/configmaps", "", "team", "a", "granular:data(a)")+
			line("apps/deployments", "", "team", "web", "-")+
			line("apps/deployments", "", "team", "web", "granular:scale", `"code":200`, `"code":201`)+
			line("apps/deployments", "", "team", "web", "none"))))
	want := []string{"2 deployments.apps team/web: granular:image(db),granular:scale", "3 configmaps team/a: granular", "5 deployments.apps team/web: create", "6 deployments.apps team/web: update"}
	if !slices.Equal(got, want) {
		t.Errorf("refused: %q", got)
	}
	if s.Writes != 5 || s.Unjudged != 1 || s.Refused != 4 {
		t.Errorf("%+v", s)
	}
}

func TestUnknown_NamesSimilarSubjects(t *testing.T) {
	objects := grants(t, bound(deployments, `, {kind: User, name: jane}`))
	for subject, want := range map[string]string{operator: "", "jane": "", "jan": `"jane"`, "system:serviceaccount:ops:operatro": operator, "operator": operator, "x": "correct the name"} {
		err := Unknown(objects, mustSubject(t, subject))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", subject, err)
		}
	}
	for _, bad := range []string{"", "group:", "system:serviceaccount:ops", "user:system:serviceaccount:ops", "group:system:masters"} {
		if _, err := ParseSubject(bad); err == nil {
			t.Errorf("subject %q is accepted", bad)
		}
	}
	if got := mustSubject(t, "user:"+operator); got != mustSubject(t, operator) {
		t.Errorf("a ServiceAccount by its username is %+v", got)
	}
	for _, good := range []string{operator, "jane", "group:team", "user:group:x"} {
		if got := mustSubject(t, good).String(); got != good {
			t.Errorf("%q is written %q", good, got)
		}
	}
}
