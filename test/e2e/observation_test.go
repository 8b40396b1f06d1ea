//go:build integration

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/test/stack"
)

// observed returns an observation once its status is as wanted. fieldperm writes it at most once in 30 seconds.
func observed(t *testing.T, s *stack.Stack, name string, wanted func(*v1alpha1.PermissionObservation) bool) *v1alpha1.PermissionObservation {
	t.Helper()
	var out *v1alpha1.PermissionObservation
	err := wait.PollUntilContextTimeout(t.Context(), time.Second, 90*time.Second, true, func(context.Context) (bool, error) {
		out = &v1alpha1.PermissionObservation{}
		if err := json.Unmarshal([]byte(mustKubectl(t, s, "", "get", "permissionobservation", name, "-o", "json")), out); err != nil {
			return false, err
		}
		return wanted(out), nil
	})
	if err != nil {
		t.Fatalf("observation %q: %v: %+v", name, err, out.Status)
	}
	return out
}

func isObserving(o *v1alpha1.PermissionObservation) bool {
	return slices.ContainsFunc(o.Status.Conditions, func(c metav1.Condition) bool { return c.Type == v1alpha1.ConditionObserving && c.Status == "True" })
}

// TestP9_AnObservationRecordsAndRefusesNothing: the updates of a user with the generic permission are counted, and the client is warned
// about those that granular verbs would not cover.
func TestP9_AnObservationRecordsAndRefusesNothing(t *testing.T) {
	t.Parallel()
	for name, topology := range map[string]stack.Topology{"static": stack.Static, "object": stack.REST} {
		t.Run(name, func(t *testing.T) {
			s := startOwn(t, stack.Config{Topology: topology})
			install(t, s)
			grant(t, s, "mover", rule("", []string{"configmaps"}, "get", "create", "update", "patch", "granular", "granular:label"))
			remove(t, s, "configmap", "seen")
			remove(t, s, "permissionobservation", "mover")
			mustKubectl(t, s, "", "create", "configmap", "seen", "--from-literal=a=b")
			apply(t, s, `{"apiVersion":"fieldperm.dev/v1alpha1","kind":"PermissionObservation","metadata":{"name":"mover"},"spec":{"subjects":[{"kind":"User","name":"mover"}],"resources":[{"apiGroups":[""],"resources":["*"]}],"actions":["Audit","Warn"]}}`)
			if got := observed(t, s, "mover", isObserving); got.Status.Since == nil || got.Status.Writes > 0 {
				t.Errorf("before the first write: %+v", got.Status)
			}
			mover, err := s.User("mover")
			must(t, err)
			write := func(args ...string) string {
				t.Helper()
				_, stderr, err := s.Kubectl(mover).Run(t.Context(), "", args...)
				if err != nil {
					t.Fatalf("%v: %s", err, stderr)
				}
				return stderr
			}
			if warning := write("label", "configmap", "seen", "team=a"); strings.Contains(warning, "Warning") {
				t.Errorf("a write that granular verbs cover: %s", warning)
			}
			if warning := write("patch", "configmap", "seen", "--type=merge", "-p", `{"data":{"a":"c"}}`); !strings.Contains(warning, `without update and patch this write is refused: configmaps "seen" is forbidden: User "mover" may not change .data["a"]`) {
				t.Errorf("a write that they do not cover: %q", warning)
			}
			mustKubectl(t, s, "", "label", "configmap", "seen", "team=b", "--overwrite") // Another user.
			got := observed(t, s, "mover", func(o *v1alpha1.PermissionObservation) bool { return o.Status.Writes >= 2 })
			if got.Status.Writes != 2 || got.Status.Refused != 1 || got.Status.Failed != 0 || len(got.Status.Gaps) > 0 || len(got.Status.Resources) != 1 {
				t.Fatalf("%+v", got.Status)
			}
			row := got.Status.Resources[0]
			var verbs []string
			for _, v := range row.Verbs {
				verbs = append(verbs, v.Verb)
				if v.Count != 1 || v.Example != (v1alpha1.ObservedObject{Namespace: "default", Name: "seen"}) || !slices.Equal(v.Namespaces, []string{"default"}) || v.FirstTime.IsZero() {
					t.Errorf("%+v", v)
				}
			}
			if want := "granular:datum(a) granular:label(team)"; row.User != "mover" || row.Resource != "configmaps" || row.Writes != 2 || strings.Join(verbs, " ") != want {
				t.Errorf("%+v", row)
			}
			mustKubectl(t, s, "", "delete", "permissionobservation", "mover")
			// Without an observation, API servers no longer ask.
			must(t, wait.PollUntilContextTimeout(t.Context(), pause, 30*time.Second, true, func(context.Context) (bool, error) {
				return !strings.Contains(mustKubectl(t, s, "", "get", "validatingwebhookconfiguration", "fieldperm-observed", "-o", "json"), "observations.fieldperm.dev"), nil
			}))
		})
	}
}

// TestW2_ASetWithoutDenyLetsWritesPass: Warn tells the client, and nothing is refused, also while fieldperm is down.
func TestW2_ASetWithoutDenyLetsWritesPass(t *testing.T) {
	// A control plane of its own: the rule of a barrier stays for 75 s, and other tests stop fieldperm.
	s := startOwn(t, stack.Config{})
	install(t, s)
	remove(t, s, "configmap", "tried")
	remove(t, s, "uncoveredpermissionset", "tried")
	grant(t, s, "editor", rule("", []string{"configmaps"}, "get", "patch"))
	editor, err := s.User("editor")
	must(t, err)
	mustKubectl(t, s, "", "create", "configmap", "tried", "--from-literal=a=b")
	set := func(actions string) string {
		return uncoveredSet("tried", "granular:datum(a)", "", "configmaps") + "  validationActions: " + actions + "\n"
	}
	_, stderr, err := kubectl(t, s, set("[Deny, Warn]"), "apply", "-f", "-")
	if err == nil || !strings.Contains(stderr, "Deny and Warn exclude each other") {
		t.Errorf("Deny and Warn: %v, %s", err, stderr)
	}
	apply(t, s, set("[Warn, Audit]"))
	patch := func(value string) (string, error) {
		_, stderr, err := s.Kubectl(editor).Run(t.Context(), "", "patch", "configmap", "tried", "--type=merge", "-p", `{"data":{"a":"`+value+`"}}`)
		return stderr, err
	}
	const warning = `will be refused once the barrier is enforced: configmaps "tried" is forbidden: User "editor" may not change .data["a"]: needs granular:datum(a)`
	i := 0
	must(t, wait.PollUntilContextTimeout(t.Context(), pause, 30*time.Second, true, func(context.Context) (bool, error) {
		i++
		stderr, err := patch(strings.Repeat("x", i))
		return strings.Contains(stderr, warning), err
	}))
	enforced(t, s, "uncoveredpermissionset", "tried", "False NotDenying", "set them to [Deny]")
	apply(t, s, set("[Deny]"))
	must(t, wait.PollUntilContextTimeout(t.Context(), pause, 30*time.Second, true, func(context.Context) (bool, error) {
		i++
		_, err := patch(strings.Repeat("x", i))
		return err != nil, nil
	}))
}

// TestP9_WhatHasNoRoomStopsNoObservation: names that are too long, and observations with too many of them, are said, and others count.
func TestP9_WhatHasNoRoomStopsNoObservation(t *testing.T) {
	s := startOwn(t, stack.Config{})
	install(t, s)
	long := strings.Repeat("r", 300)
	grant(t, s, "namer", rule("", []string{"configmaps"}, "get", "update", "patch"), rule("", []string{"pods"}, "get"), rule("rbac.authorization.k8s.io", []string{"roles"}, "get", "update", "patch"))
	mustKubectl(t, s, "", "create", "configmap", "seen", "--from-literal=a=b")
	mustKubectl(t, s, "", "create", "role", long, "--verb=get", "--resource=pods")
	observe := func(name, user string, groups, length int) {
		t.Helper()
		subjects := []string{fmt.Sprintf(`{"kind":"User","name":%q}`, user)}
		for i := range groups {
			subjects = append(subjects, fmt.Sprintf(`{"kind":"Group","name":"%s-%d-%s"}`, name, i, strings.Repeat("y", length)))
		}
		put(t, s, fmt.Sprintf(`{"apiVersion":"fieldperm.dev/v1alpha1","kind":"PermissionObservation","metadata":{"name":%q},"spec":{"subjects":[%s],"resources":[{"apiGroups":["*"],"resources":["*"]}]}}`, name, strings.Join(subjects, ",")))
	}
	conditions := func() bool {
		return strings.Contains(mustKubectl(t, s, "", "get", "validatingwebhookconfiguration", "fieldperm-observed", "-o", "yaml"), "is-observed")
	}
	// Nearly as much as a match condition may have.
	observe("namer", "namer", 63, 490)
	observed(t, s, "namer", isObserving)
	if !conditions() {
		t.Error("the subjects fit a match condition, and there is none")
	}
	namer, err := s.User("namer")
	must(t, err)
	label := func(args ...string) {
		t.Helper()
		if _, stderr, err := s.Kubectl(namer).Run(t.Context(), "", append([]string{"label"}, args...)...); err != nil {
			t.Fatalf("%v: %s", err, stderr)
		}
	}
	label("role", long, "team=a")
	label("configmap", "seen", "team=a")
	got := observed(t, s, "namer", func(o *v1alpha1.PermissionObservation) bool { return o.Status.Writes >= 2 })
	if !isObserving(got) || len(got.Status.Resources) != 2 || got.Status.Resources[1].Verbs[0].Example != (v1alpha1.ObservedObject{Namespace: "default"}) || got.Status.Resources[0].Verbs[0].Example.Name != "seen" {
		t.Errorf("%+v", got.Status)
	}

	// As many long subjects as the definition permits: they do not fit a match condition.
	for i := range 3 {
		observe(fmt.Sprintf("full-%d", i), "somebody", 63, 1000)
	}
	observed(t, s, "full-2", isObserving)
	if conditions() {
		t.Error("the subjects do not fit a match condition, and there is one")
	}
	label("configmap", "seen", "team=b", "--overwrite")
	mustKubectl(t, s, "", "label", "configmap", "seen", "team=c", "--overwrite") // Another user.
	got = observed(t, s, "namer", func(o *v1alpha1.PermissionObservation) bool { return o.Status.Writes >= 3 })
	if !isObserving(got) || got.Status.Writes != 3 {
		t.Errorf("%+v", got.Status)
	}
}

// TestP9_WithoutAuthenticatedCallersNothingIsCounted: the client is warned, and the status says why it counts nothing.
func TestP9_WithoutAuthenticatedCallersNothingIsCounted(t *testing.T) {
	s := startOwn(t, stack.Config{Topology: stack.REST, Arguments: []string{"--admission-callers=any"}})
	install(t, s)
	grant(t, s, "mover", rule("", []string{"configmaps"}, "get", "update", "patch"))
	mustKubectl(t, s, "", "create", "configmap", "seen", "--from-literal=a=b")
	apply(t, s, `{"apiVersion":"fieldperm.dev/v1alpha1","kind":"PermissionObservation","metadata":{"name":"mover"},"spec":{"subjects":[{"kind":"User","name":"mover"}],"resources":[{"apiGroups":["*"],"resources":["*"]}],"actions":["Warn"]}}`)
	is := func(o *v1alpha1.PermissionObservation) bool {
		return slices.ContainsFunc(o.Status.Conditions, func(c metav1.Condition) bool {
			return c.Type == v1alpha1.ConditionObserving && c.Status == metav1.ConditionFalse && c.Reason == v1alpha1.ReasonNotAuthenticated
		})
	}
	first := observed(t, s, "mover", is)
	mover, err := s.User("mover")
	must(t, err)
	_, stderr, err := s.Kubectl(mover).Run(t.Context(), "", "label", "configmap", "seen", "team=a")
	if err != nil || !strings.Contains(stderr, "without update and patch this write is refused") {
		t.Errorf("%v: %s", err, stderr)
	}
	got := observed(t, s, "mover", func(o *v1alpha1.PermissionObservation) bool { return o.Status.Updated.After(first.Status.Updated.Time) })
	if !is(got) || got.Status.Writes > 0 || len(got.Status.Resources) > 0 || got.Status.Since != nil {
		t.Errorf("%+v", got.Status)
	}
}
