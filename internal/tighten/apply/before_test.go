package apply

import (
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fieldperm/fieldperm/internal/tighten"
)

// held returns what the subject holds of the objects as they would be without Apply.
func held(s *scene) string {
	s.t.Helper()
	all := s.read()
	_, before, err := Before(s.t.Context(), s.client.Records, s.subject(), &all)
	must(s.t, err)
	return fmt.Sprintf("%+v", tighten.Held(before, s.subject(), nil))
}

// TestC2_BeforeIsWithoutWhatApplyDid: after each step, the subject holds without it what it held before. What others changed since counts
// as it is now.
func TestC2_BeforeIsWithoutWhatApplyDid(t *testing.T) {
	s := newScene(t)
	want := held(s)
	_, err := s.apply(Options{})
	must(t, err)
	if got := held(s); got != want {
		t.Errorf("after the first step: %s\nwant %s", got, want)
	}
	s.observe(good())
	_, err = s.apply(Options{Unproven: true})
	must(t, err)
	if got := held(s); got != want {
		t.Errorf("after the second step: %s\nwant %s", got, want)
	}

	other := func(verb string) func(o *object) {
		return func(o *object) {
			o.role.Rules = []rbacv1.PolicyRule{{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{verb}}}
		}
	}
	s.change(ownRole, other("list"))
	s.change(ref(roleKind, "team", "shared"), other("watch"))
	got := held(s)
	for _, verb := range []string{"update", "*", "granular", "watch"} {
		if strings.Contains(got, verb) {
			t.Errorf("%q counts as held, which the subject lost or never had: %s", verb, got)
		}
	}
	if !strings.Contains(got, "list") {
		t.Errorf("a role as it is now does not count: %s", got)
	}
}

// TestC2_BeforeIsWithoutWhatWasAddedForOthers: a subject is in a group for which granular verbs were added. A barrier may have been made since.
func TestC2_BeforeIsWithoutWhatWasAddedForOthers(t *testing.T) {
	s := newScene(t)
	s.change(sharedBinding, func(o *object) {
		o.binding.Subjects = append(o.binding.Subjects, rbacv1.Subject{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "team"})
	})
	held := func() string {
		all := s.read()
		_, before, err := Before(t.Context(), s.client.Records, s.subject(), &all)
		must(t, err)
		return fmt.Sprintf("%+v", tighten.Held(before, s.subject(), []string{"team"}))
	}
	s.user = "jane"
	want := held()
	s.user = "group:team"
	_, err := s.apply(Options{})
	must(t, err)
	if s.user = "jane"; held() != want {
		t.Errorf("held %s\nwant %s", held(), want)
	}
}

// aggregated is a ClusterRole that selects all ClusterRoles without the label restricted.
func aggregated() *object {
	o := role(ref(clusterRoleKind, "", "platform"), map[string]string{"restricted": "true"})
	o.role.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{
		{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "restricted", Operator: metav1.LabelSelectorOpDoesNotExist}}},
	}}
	return o
}

// TestC1_ApplyRefusesAnAggregatedClusterRole: before the first step, before the second one, and if it is made while the roles are written.
func TestC1_ApplyRefusesAnAggregatedClusterRole(t *testing.T) {
	const want = `ClusterRole platform is aggregated and selects ClusterRole granular-`
	bind := binding(ref(clusterRoleBindingKind, "", "platform"), aggregated().ref, user("pat"))
	s := newScene(t)
	s.change(ownRole, func(o *object) { o.role.Labels = map[string]string{"restricted": "true"} })
	s.add(aggregated())
	s.add(bind)
	before := s.text()
	_, err := s.apply(Options{New: true})
	if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `now User "pat": add {key: fieldperm.dev/tighten`) || s.text() != before {
		t.Errorf("%v", err)
	}

	s.drop(aggregated().ref)
	s.saying = func(text string) {
		if strings.HasPrefix(text, "ClusterRole ") {
			s.saying = nil
			s.add(aggregated())
		}
	}
	if _, err := s.apply(Options{}); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("while the roles are written: %v", err)
	}
	if all := s.read(); len(all.ClusterRoles) != 2 || len(all.Roles) != 1 {
		t.Errorf("the rules were not taken back: %q", s.said)
	}

	s.drop(aggregated().ref)
	_, err = s.apply(Options{})
	must(t, err)
	s.observe(good())
	s.add(aggregated())
	before = s.text()
	if _, err := s.apply(Options{}); err == nil || !strings.Contains(err.Error(), want) || s.text() != before {
		t.Errorf("before the second step: %v", err)
	}
}
