package apply

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/internal/tighten"
)

// TestApply_InTwoStepsAndBack: after --undo every object is as it was.
func TestApply_InTwoStepsAndBack(t *testing.T) {
	s := newScene(t)
	before := s.text()
	step, err := s.apply(Options{})
	if step != Added || err != nil {
		t.Fatalf("step %d: %v", step, err)
	}
	o, err := s.observations().Get(t.Context(), s.subject().ObservationName(), metav1.GetOptions{})
	must(t, err)
	if actions, _, _ := unstructured.NestedStringSlice(o.Object, "spec", "actions"); fmt.Sprint(actions) != "[Audit Warn]" {
		t.Errorf("actions are %q", actions)
	}
	// The observation has no status yet.
	var blocked *BlockedError
	if _, err := s.apply(Options{}); !errors.As(err, &blocked) {
		t.Fatalf("the second step is not blocked: %v", err)
	}
	s.observe(good())
	if step, err := s.apply(Options{}); step != Removed || err != nil {
		t.Fatalf("step %d: %v", step, err)
	}
	all := s.read()
	for _, g := range tighten.Held(&all, s.subject(), nil) {
		for _, r := range g.Rules {
			if text := fmt.Sprint(r.Verbs); strings.Contains(text, "update") || strings.Contains(text, "*") || strings.Contains(text, "patch") {
				t.Errorf("%s has %s", g.Role, text)
			}
		}
	}
	role, err := s.rbac.RbacV1().ClusterRoles().Get(t.Context(), "operator", metav1.GetOptions{})
	must(t, err)
	if role.Annotations[tighten.AutoupdateAnnotation] != "false" {
		t.Error("kube-apiserver will write the role again")
	}
	if step, err := s.apply(Options{}); step != Nothing || err != nil {
		t.Errorf("again: step %d: %v", step, err)
	}
	for i := range 2 {
		done, err := s.undo(false)
		must(t, err)
		if (done > 0) != (i == 0) {
			t.Errorf("call %d of Undo did %d", i, done)
		}
		if after := s.text(); after != before {
			t.Fatalf("before:\n%s\nafter:\n%s", before, after)
		}
	}
	if list, err := s.observations().List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) > 0 {
		t.Error("the observation is still there")
	}
}

// TestUndo_GivesUpdateBackFirst: while what was added is deleted, the subject holds update.
func TestUndo_GivesUpdateBackFirst(t *testing.T) {
	s := newScene(t)
	_, err := s.apply(Options{})
	must(t, err)
	s.observe(good())
	_, err = s.apply(Options{})
	must(t, err)
	s.rbac.ClearActions()
	_, err = s.undo(false)
	must(t, err)
	deleted := false
	for _, action := range s.rbac.Actions() {
		deleted = deleted || action.GetVerb() == "delete"
		if deleted && action.GetVerb() == "update" {
			t.Errorf("%s is updated after a deletion", action.GetResource())
		}
	}
	if !deleted {
		t.Error("nothing is deleted")
	}
}

func TestApply_IsBlockedByWhatTheObservationSays(t *testing.T) {
	for want, change := range map[string]func(*v1alpha1.PermissionObservationStatus){
		"has seen no write":                  func(o *v1alpha1.PermissionObservationStatus) { o.Writes = 0 },
		"has seen 2 writes that need more":   func(o *v1alpha1.PermissionObservationStatus) { o.Refused = 2 },
		"could not determine the verbs of 3": func(o *v1alpha1.PermissionObservationStatus) { o.Failed = 3 },
		"omits 4 uses":                       func(o *v1alpha1.PermissionObservationStatus) { o.Omitted = 4 },
		"is not observing":                   func(o *v1alpha1.PermissionObservationStatus) { o.Conditions = nil },
		"has no status of its specification": func(o *v1alpha1.PermissionObservationStatus) { o.ObservedGeneration = 7 },
		"may have missed writes in 1 periods": func(o *v1alpha1.PermissionObservationStatus) {
			o.Gaps = []v1alpha1.ObservationGap{{Reason: "down"}}
		},
	} {
		s := newScene(t)
		_, err := s.apply(Options{})
		must(t, err)
		status := good()
		change(&status)
		s.observe(status)
		var blocked *BlockedError
		if _, err := s.apply(Options{}); !errors.As(err, &blocked) || len(blocked.Reasons) != 1 || !strings.Contains(blocked.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
		if step, err := s.apply(Options{Unproven: true}); step != Removed || err != nil {
			t.Errorf("%s, forced: step %d, %v", want, step, err)
		}
	}
}

// TestApply_AddsLaterVerbsAndObservesAgain: evidence that came later starts the observation anew.
func TestApply_AddsLaterVerbsAndObservesAgain(t *testing.T) {
	s := newScene(t)
	_, err := s.apply(Options{})
	must(t, err)
	s.observe(good())
	s.fields = "granular:label(a)"
	if step, err := s.apply(Options{}); step != Added || err != nil {
		t.Fatalf("step %d: %v", step, err)
	}
	role, err := s.rbac.RbacV1().ClusterRoles().Get(t.Context(), s.propose().Add.ClusterRoles[0].Name, metav1.GetOptions{})
	must(t, err)
	if got := fmt.Sprint(role.Rules[0].Verbs); got != "[get granular granular:label(a) granular:scale]" {
		t.Errorf("verbs are %s", got)
	}
	var blocked *BlockedError
	if _, err := s.apply(Options{}); !errors.As(err, &blocked) {
		t.Errorf("the new observation has no status, and does not block: %v", err)
	}
}

func TestApply_RefusesWhatChangedMeanwhile(t *testing.T) {
	for name, change := range map[string]func(ctx context.Context, s *scene) error{
		"a role of the subject": func(ctx context.Context, s *scene) error {
			r, err := s.rbac.RbacV1().ClusterRoles().Get(ctx, "operator", metav1.GetOptions{})
			must(s.t, err)
			r.Rules[0].Resources = append(r.Rules[0].Resources, "daemonsets")
			_, err = s.rbac.RbacV1().ClusterRoles().Update(ctx, r, metav1.UpdateOptions{})
			return err
		},
		"a shared role": func(ctx context.Context, s *scene) error {
			r, err := s.rbac.RbacV1().Roles("team").Get(ctx, "shared", metav1.GetOptions{})
			must(s.t, err)
			r.Rules[0].Resources = append(r.Rules[0].Resources, "secrets")
			_, err = s.rbac.RbacV1().Roles("team").Update(ctx, r, metav1.UpdateOptions{})
			return err
		},
		"a new binding": func(ctx context.Context, s *scene) error {
			b := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "new"}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "operator"}, Subjects: []rbacv1.Subject{{Kind: "User", Name: "jane"}}}
			_, err := s.rbac.RbacV1().ClusterRoleBindings().Create(ctx, b, metav1.CreateOptions{})
			return err
		},
	} {
		s := newScene(t)
		_, err := s.apply(Options{})
		must(t, err)
		s.observe(good())
		must(t, change(t.Context(), s))
		if step, err := s.apply(Options{Unproven: true}); step != Nothing || err == nil || !strings.Contains(err.Error(), "run with --undo and with --apply again") {
			t.Errorf("%s: step %d, %v", name, step, err)
		}
	}
}

// TestApply_GivesUpdateBackIfTheSubjectIsNotLetIn: without fieldperm as an authorizer the subject could write nothing.
func TestApply_GivesUpdateBackIfTheSubjectIsNotLetIn(t *testing.T) {
	for _, allowed := range []bool{false, true} {
		s := newScene(t)
		_, err := s.apply(Options{})
		must(t, err)
		s.observe(good())
		before := s.text()
		s.access = authorizationv1.SubjectAccessReviewStatus{Allowed: allowed, Reason: "RBAC: allowed by a group"}
		step, err := s.apply(Options{})
		if allowed {
			if step != Removed || err != nil {
				t.Errorf("allowed otherwise: step %d, %v", step, err)
			}
			continue
		}
		if err == nil || !strings.HasPrefix(err.Error(), "update and patch were given back: kube-apiserver does not let") || s.text() != before {
			t.Errorf("%v", err)
		}
	}
}

func TestApply_FailsOnAConflict(t *testing.T) {
	s := newScene(t)
	_, err := s.apply(Options{})
	must(t, err)
	s.observe(good())
	s.rbac.PrependReactor("update", "clusterroles", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewConflict(rbacv1.Resource("clusterroles"), "operator", errors.New("changed"))
	})
	if _, err := s.apply(Options{}); err == nil || !strings.Contains(err.Error(), "run the command again") {
		t.Errorf("%v", err)
	}
}

func TestApply_RefusesNewAccess(t *testing.T) {
	s := newScene(t)
	if _, err := s.client.Apply(t.Context(), s.propose(), []string{"granular:data(a) on secrets"}, Options{}); err == nil || !strings.Contains(err.Error(), "--allow-new") {
		t.Errorf("%v", err)
	}
}

// TestApply_RefusesWhatCannotBeRecorded: before anything is added.
func TestApply_RefusesWhatCannotBeRecorded(t *testing.T) {
	s := newScene(t)
	r, err := s.rbac.RbacV1().ClusterRoles().Get(t.Context(), "operator", metav1.GetOptions{})
	must(t, err)
	for i := range 12000 {
		r.Rules = append(r.Rules, rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{"example.com"}, Resources: []string{fmt.Sprintf("things-with-a-long-long-long-name-%d", i)}})
	}
	_, err = s.rbac.RbacV1().ClusterRoles().Update(t.Context(), r, metav1.UpdateOptions{})
	must(t, err)
	if _, err := s.apply(Options{}); err == nil || !strings.Contains(err.Error(), "by hand with -o yaml") || len(s.said) > 0 {
		t.Errorf("%v %q", err, s.said)
	}
}
