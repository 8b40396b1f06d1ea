package tighten

import (
	"slices"
	"strings"
	"testing"
)

func mustAlso(t *testing.T, texts ...string) func(*Options) {
	t.Helper()
	return func(o *Options) {
		for _, text := range texts {
			a, err := ParseAlso(text)
			if err != nil {
				t.Fatal(err)
			}
			o.Also = append(o.Also, a)
		}
	}
}

func TestPropose_AlsoGrantsWhatNoEvidenceHas(t *testing.T) {
	objects := grants(t, bound(`{apiGroups: [apps], resources: [deployments, deployments/status], verbs: [get, update]}`, ""))
	p := propose(t, operator, objects, webLog, mustAlso(t, "deployments.apps=granular:scale", "deployments.apps=granular:image(db)", "deployments/status.apps=granular:condition(Ready)"))
	if got := rulesText(p.Add.ClusterRoles[0].Rules); got != "get,granular,granular:image(db),granular:image(web),granular:scale apps deployments; get,granular,granular:condition(Ready) apps deployments/status" {
		t.Error(got)
	}
	if len(p.Pointless) > 0 || !p.Complete() {
		t.Errorf("%+v", p)
	}
}

// TestPropose_AlsoGrantsNothingThatTheSubjectDoesNotHold: what is asked for is said to be left out.
func TestPropose_AlsoGrantsNothingThatTheSubjectDoesNotHold(t *testing.T) {
	objects := grants(t, bound(deployments, ""))
	p := propose(t, operator, objects, webLog, mustAlso(t, "events=granular:occurrences", "nodes.metrics.example.com=granular:taint"), func(o *Options) { o.AllowNew = true })
	if got := rulesText(p.Add.ClusterRoles[0].Rules); got != "get,granular,granular:image(web),granular:scale apps deployments" {
		t.Error(got)
	}
	has(t, strings.Join(p.Pointless, "\n"), "events=granular:occurrences: the subject itself holds no update", "nodes.metrics.example.com=granular:taint: fieldperm does not decide")
}

// TestPropose_AlsoKeepsTheNamespacesOfTheEvidence: what --namespaces seen leaves out is not added.
func TestPropose_AlsoKeepsTheNamespacesOfTheEvidence(t *testing.T) {
	objects := grants(t, bound(`{apiGroups: [apps], resources: [deployments, deployments/status], verbs: [update]}`, ""))
	seen := func(o *Options) { o.Namespaces, o.Names = Seen, Seen }
	p := propose(t, operator, objects, webLog, seen, mustAlso(t, "deployments.apps=granular:paused"))
	if got := rulesText(p.Add.Roles[0].Rules); len(p.Add.ClusterRoles) > 0 || got != "get,granular,granular:image(web),granular:paused,granular:scale apps deploymentsweb" {
		t.Error(got)
	}
	e, _ := collect(t, operator, webLog)
	options := Options{Namespaces: Seen, Names: HeldReach, Decides: decides}
	mustAlso(t, "deployments/status.apps=granular:status")(&options)
	if _, err := Propose(mustSubject(t, operator), objects, e, options); err == nil || !strings.Contains(err.Error(), "the evidence has not all namespaces") {
		t.Errorf("the namespaces of the status are not known: %v", err)
	}
}

func TestPropose_AlsoIsNoEvidence(t *testing.T) {
	options := Options{Decides: decides}
	mustAlso(t, "deployments.apps=granular:scale")(&options)
	if _, err := Propose(mustSubject(t, operator), grants(t, bound(deployments, "")), &Evidence{}, options); err == nil || !strings.Contains(err.Error(), "no write") {
		t.Error(err)
	}
}

func TestParseAlso_RefusesWhatIsNoVerbOfAResource(t *testing.T) {
	for _, text := range []string{"", "granular:scale", "=granular:scale", ".apps=granular:scale", "deployments.apps=", "deployments.apps=scale", "deployments.apps=granular", "deployments.apps=granular:BAD"} {
		if a, err := ParseAlso(text); err == nil || !strings.Contains(err.Error(), "write RESOURCE=VERB") {
			t.Errorf("%q: %v %v", text, a, err)
		}
	}
	for _, text := range []string{"events=granular:occurrences", "events.events.k8s.io=granular:*", "deployments/status.apps=granular:condition(Ready)"} {
		if a, err := ParseAlso(text); err != nil || a.String() != text {
			t.Errorf("%q: %q %v", text, a, err)
		}
	}
}

func TestGeneralize_OneResourceOnly(t *testing.T) {
	e, _ := collect(t, operator, line("apps/deployments", "", "team", "web", "granular:annotation(a),granular:label(b)")+line("apps/replicasets", "", "team", "web", "granular:annotation(a)"))
	if unused := e.Generalize([]string{"replicasets.apps=annotation", "label", "replicasets.apps=label", "deployments.apps=image"}); !slices.Equal(unused, []string{"replicasets.apps=label", "deployments.apps=image"}) {
		t.Errorf("unused: %q", unused)
	}
	for r, want := range map[Resource]string{
		{"apps", "deployments"}: "granular granular:annotation(a) granular:label",
		{"apps", "replicasets"}: "granular granular:annotation",
	} {
		var got []string
		for verb := range e.Resources[r].Verbs {
			got = append(got, verb)
		}
		slices.Sort(got)
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q", r, got)
		}
	}
}

// TestPropose_ResourcesHeld_GrantsWhereTheRuleNamesAll: a garbage collector writes the owners of kinds that no evidence has yet. What a rule
// names itself stays there.
func TestPropose_ResourcesHeld_GrantsWhereTheRuleNamesAll(t *testing.T) {
	held := func(o *Options) { o.Resources = HeldReach }
	log := line("apps/deployments", "", "team", "web", "granular:ownerReferences") + line("/events", "", "team", "e", "granular:occurrences") + line("apps/deployments", "status", "team", "web", "granular:status")
	for name, c := range map[string]struct{ rules, want string }{
		"all":           {`{apiGroups: ["*"], resources: ["*"], verbs: [patch]}`, "get,granular,granular:occurrences,granular:ownerReferences,granular:status * *"},
		"one by name":   {`{apiGroups: ["*"], resources: ["*"], verbs: [patch]}, {apiGroups: [""], resources: [events], verbs: [patch]}`, "get,granular,granular:occurrences  events; get,granular,granular:ownerReferences,granular:status * *"},
		"all of a name": {`{apiGroups: ["*"], resources: ["*"], verbs: [patch]}, {apiGroups: ["*"], resources: [events], verbs: [patch]}`, "get,granular,granular:ownerReferences,granular:status * *; get,granular,granular:occurrences * events"},
		"of a group":    {`{apiGroups: ["apps"], resources: ["*"], verbs: [patch]}, {apiGroups: ["*"], resources: [events], verbs: [patch]}`, "get,granular,granular:occurrences * events; get,granular,granular:ownerReferences,granular:status apps *"},
		"subresources":  {`{apiGroups: ["apps"], resources: ["*/status", deployments], verbs: [patch]}, {apiGroups: [""], resources: [events], verbs: [patch]}`, "get,granular,granular:occurrences  events; get,granular,granular:status apps */status; get,granular,granular:ownerReferences apps deployments"},
	} {
		t.Run(name, func(t *testing.T) {
			p := propose(t, operator, grants(t, bound(c.rules, "")), log, held)
			if got := rulesText(p.Add.ClusterRoles[0].Rules); got != c.want {
				t.Errorf("rules are %q, want %q", got, c.want)
			}
		})
	}
	p := propose(t, operator, grants(t, bound(`{apiGroups: ["*"], resources: ["*"], verbs: [patch]}`, "")), log)
	if got := rulesText(p.Add.ClusterRoles[0].Rules); strings.Contains(got, "*") {
		t.Errorf("without the option: %q", got)
	}
}

// TestPropose_WhatAnEarlierProposalGrantedIsNotUnused: the evidence of a later window has no write of the resource.
func TestPropose_WhatAnEarlierProposalGrantedIsNotUnused(t *testing.T) {
	objects := grants(t, bound(`{apiGroups: [apps], resources: [deployments, replicasets, daemonsets], verbs: [update]}`, ""))
	first := propose(t, operator, objects, webLog+line("apps/replicasets", "", "team", "web", "granular:scale"))
	objects.ClusterRoles = append(objects.ClusterRoles, first.Add.ClusterRoles...)
	objects.ClusterRoleBindings = append(objects.ClusterRoleBindings, first.Add.ClusterRoleBindings...)
	second := propose(t, operator, objects, webLog)
	if !slices.Equal(second.Unused, []string{"daemonsets.apps"}) {
		t.Errorf("unused: %q", second.Unused)
	}
}

// TestPropose_KeepUpdate_LeavesAResourceAsItIs: the leader stays one while fieldperm is down.
func TestPropose_KeepUpdate_LeavesAResourceAsItIs(t *testing.T) {
	objects := grants(t, bound(`{apiGroups: [apps], resources: [deployments], verbs: [get, update]}, {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get, update]}`, ""))
	log := webLog + line("coordination.k8s.io/leases", "", "ops", "operator", "granular:holder")
	p := propose(t, operator, objects, log, func(o *Options) { o.Keep = []Resource{{"coordination.k8s.io", "leases"}} })
	if got := rulesText(after(t, p, Ref{clusterRoleKind, "", "operator"})); got != "get apps deployments; get,update coordination.k8s.io leases" {
		t.Error(got)
	}
	if got := rulesText(p.Add.ClusterRoles[0].Rules); strings.Contains(got, "leases") || !p.Complete() || len(p.Unused) > 0 {
		t.Errorf("%q, gaps %q, unused %q", got, p.Gaps, p.Unused)
	}
	has(t, strings.Join(p.Notes, "\n"), "keeps update on leases.coordination.k8s.io: --keep-update names it")
	for _, text := range []string{"", ".apps", "*", "deployments/", "a,b"} {
		if _, err := ParseResource(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

// TestPropose_WhatKeepsUpdateIsNotUnused: no write was seen of a resource on which fieldperm does not decide.
func TestPropose_WhatKeepsUpdateIsNotUnused(t *testing.T) {
	p := propose(t, operator, grants(t, bound(`{apiGroups: [apps], resources: [deployments], verbs: [update]}, {apiGroups: [metrics.example.com], resources: [nodes], verbs: [update]}`, "")), webLog)
	if len(p.Unused) > 0 {
		t.Errorf("unused: %q", p.Unused)
	}
}
