package apply

import (
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fieldperm/fieldperm/internal/tighten"
)

func ref(kind, namespace, name string) tighten.Ref {
	return tighten.Ref{Kind: kind, Namespace: namespace, Name: name}
}

func user(name string) rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: name}
}

func binding(at tighten.Ref, to tighten.Ref, subjects ...rbacv1.Subject) *object {
	return &object{ref: at, binding: &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: at.Namespace, Name: at.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: to.Kind, Name: to.Name}, Subjects: subjects,
	}}
}

var (
	ownRole, ownBinding       = ref(clusterRoleKind, "", "operator"), ref(clusterRoleBindingKind, "", "operator")
	sharedRole, sharedBinding = ref(roleKind, "team", "shared"), ref(roleBindingKind, "team", "shared")
	secrets                   = rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}}
)

// outcome of --force-overwrite for an object that --undo does not restore.
type outcome int

const (
	restores outcome = iota
	leaves
	refuses
)

func copyOf(s *scene, kind string) tighten.Ref {
	return ref(kind, "team", "shared-"+s.record().Suffix)
}

// TestUndo_AnAddedClusterRoleCountsEverywhere: a ClusterRole gives rights in each namespace in which a binding names it. If the added one was
// deleted or has lost rules, nothing is restored without --force-overwrite.
func TestUndo_AnAddedClusterRoleCountsEverywhere(t *testing.T) {
	for name, revoke := range map[string]func(*scene, tighten.Ref){
		"deleted": func(s *scene, at tighten.Ref) { s.drop(at) },
		"emptied": func(s *scene, at tighten.Ref) { s.change(at, func(o *object) { o.role.Rules = nil }) },
	} {
		s := newScene(t)
		s.tightened()
		revoke(s, ref(clusterRoleKind, "", "granular-ops-operator-"+s.record().Suffix))
		_, err := s.undo(false)
		if err == nil || strings.Contains(strings.Join(s.said, "\n"), " restored: ") {
			t.Fatalf("%s: %v: said %s", name, err, s.said)
		}
		for _, o := range []tighten.Ref{ownRole, sharedBinding} {
			if !strings.Contains(err.Error(), "so that "+o.String()+" is not restored") {
				t.Errorf("%s: %s: %v", name, o, err)
			}
		}
		_, err = s.undo(true)
		must(t, err)
	}
}

// TestUndo_RestoresOnlyWhatWasTaken: if an object changed after the second step so that --undo could give back more than --apply took, it
// stays as it is, and the other one is restored.
func TestUndo_RestoresOnlyWhatWasTaken(t *testing.T) {
	for name, test := range map[string]struct {
		change func(s *scene)
		want   string
		stays  tighten.Ref
		// forced is what --force-overwrite does.
		forced outcome
	}{
		"the role was changed": {func(s *scene) {
			s.change(ownRole, func(o *object) { o.role.Rules = []rbacv1.PolicyRule{secrets} })
		}, "ClusterRole operator changed since --apply", ownRole, restores},
		"the role was made again": {func(s *scene) {
			all := s.read()
			s.drop(ownRole)
			s.add(&object{ref: ownRole, role: &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "operator"}, Rules: all.ClusterRoles[0].Rules}})
		}, "ClusterRole operator is another object than the one that was changed", ownRole, leaves},
		"another user was bound to the role": {func(s *scene) {
			s.change(ownBinding, func(o *object) { o.binding.Subjects = append(o.binding.Subjects, user("mallory")) })
		}, `ClusterRole operator is bound to User "mallory" as well`, ownRole, refuses},
		"another binding of the subject names the role": {func(s *scene) {
			s.add(binding(ref(roleBindingKind, "prod", "operator"), ownRole, s.subject().RBAC()))
		}, "RoleBinding prod/operator names ClusterRole operator since --apply", ownRole, restores},
		"the role became a part of an aggregated one": {func(s *scene) {
			s.change(ownRole, func(o *object) { o.role.Labels = map[string]string{"a": "b"} })
			s.add(&object{ref: ref(clusterRoleKind, "", "all"), role: &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "all"}, AggregationRule: &rbacv1.AggregationRule{
				ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{"a": "b"}}},
			}}})
		}, `is a part of the aggregated ClusterRole "all"`, ownRole, refuses},
		"the shared role was widened": {func(s *scene) {
			s.change(sharedRole, func(o *object) { o.role.Rules = append(o.role.Rules, secrets) })
		}, "Role team/shared, which RoleBinding team/shared names, has other rules than before", sharedBinding, restores},
		"the shared role was made again": {func(s *scene) {
			all := s.read()
			var rules []rbacv1.PolicyRule
			for _, r := range all.Roles {
				if r.Name == "shared" {
					rules = r.Rules
				}
			}
			s.drop(sharedRole)
			s.add(&object{ref: sharedRole, role: &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "shared"}, Rules: rules}})
		}, "is another object than before: the binding is not restored", sharedBinding, leaves},
		"the shared role is gone": {func(s *scene) { s.drop(sharedRole) }, "is gone: the binding is not restored", sharedBinding, leaves},
		"the copy was revoked":    {func(s *scene) { s.drop(copyOf(s, roleBindingKind)) }, "the rights of the subject may have been revoked", sharedBinding, restores},
		"the granular verbs were revoked": {func(s *scene) {
			s.drop(ref(clusterRoleBindingKind, "", "granular-ops-operator-"+s.record().Suffix))
		}, "was added by --apply and is gone", ownRole, restores},
		"the copy was emptied": {func(s *scene) {
			s.change(copyOf(s, roleKind), func(o *object) { o.role.Rules = nil })
		}, "is not as --apply made it", sharedBinding, restores},
		"the copy's binding was made again for another": {func(s *scene) {
			at := copyOf(s, roleBindingKind)
			s.drop(at)
			s.add(binding(at, copyOf(s, roleKind), user("mallory")))
		}, "is not as --apply made it", sharedBinding, restores},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.tightened()
			test.change(s)
			other := sharedBinding
			if test.stays == other {
				other = ownRole
			}
			version := func() string {
				o, err := s.client.get(t.Context(), test.stays)
				must(t, err)
				return o.meta().ResourceVersion
			}
			before := version()
			_, err := s.undo(false)
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "--force-overwrite") || version() != before {
				t.Fatalf("%v", err)
			}
			if said := strings.Join(s.said, "\n"); !strings.Contains(said, other.String()+" restored: ") || strings.Contains(said, " deleted") {
				t.Errorf("said %s", said)
			}
			_, err = s.undo(true)
			if test.forced == refuses {
				if err == nil || !strings.Contains(err.Error(), test.want) || version() != before {
					t.Errorf("%v", err)
				}
				return
			}
			must(t, err)
			if said := strings.Join(s.said, "\n"); !strings.Contains(said, "Not as --apply left it: ") || !strings.Contains(said, test.want) || !strings.Contains(said, " deleted") {
				t.Errorf("said %s", said)
			}
			if (version() == before) != (test.forced == leaves) {
				t.Errorf("%s: written is %t", test.stays, version() != before)
			}
		})
	}
}

// TestUndo_TakesBackWhatOthersWouldGet: another was bound to the role while it was restored.
func TestUndo_TakesBackWhatOthersWouldGet(t *testing.T) {
	s := newScene(t)
	s.tightened()
	s.saying = func(text string) {
		if strings.HasPrefix(text, "ClusterRole operator restored") {
			s.saying = nil
			s.change(ownBinding, func(o *object) { o.binding.Subjects = append(o.binding.Subjects, user("mallory")) })
		}
	}
	_, err := s.undo(false)
	if err == nil || !strings.Contains(err.Error(), `taken away again: ClusterRole operator is bound to User "mallory" as well`) {
		t.Errorf("%v", err)
	}
	if o, err := s.client.get(t.Context(), ownRole); err != nil || len(o.role.Rules) != 1 || len(o.role.Rules[0].Verbs) != 1 {
		t.Errorf("rules %+v %v", o.role.Rules, err)
	}
	s.change(ownBinding, func(o *object) { o.binding.Subjects = o.binding.Subjects[:1] })
	_, err = s.undo(false)
	must(t, err)
}

// TestUndo_OfADeletedRole: there is nothing to restore, and what was added goes.
func TestUndo_OfADeletedRole(t *testing.T) {
	s := newScene(t)
	s.tightened()
	s.drop(ownRole)
	_, err := s.undo(false)
	must(t, err)
	if all := s.read(); len(all.ClusterRoles) != 0 || len(all.Roles) != 1 || len(all.RoleBindings[0].Subjects) != 3 {
		t.Errorf("%+v", all)
	}
}

// TestUndo_GivesBackNothingTwice: an administrator has given update back by hand, and more.
func TestUndo_GivesBackNothingTwice(t *testing.T) {
	s := newScene(t)
	rules := s.read().ClusterRoles[0].Rules
	s.tightened()
	s.change(ownRole, func(o *object) { o.role.Rules = append(slices.Clone(rules), secrets) })
	_, err := s.undo(false)
	must(t, err)
	if all := s.read(); len(all.ClusterRoles[0].Rules) != 2 {
		t.Errorf("rules %+v", all.ClusterRoles[0].Rules)
	}
}

// TestUndo_SaysWhatItGivesBack: with the verbs and the resources.
func TestUndo_SaysWhatItGivesBack(t *testing.T) {
	s := newScene(t)
	s.tightened()
	_, err := s.undo(false)
	must(t, err)
	for _, want := range []string{
		"ClusterRole operator restored: update, patch on deployments.apps",
		"RoleBinding team/shared restored: system:serviceaccount:ops:operator is bound to Role team/shared again",
	} {
		if said := strings.Join(s.said, "\n"); !strings.Contains(said, want) {
			t.Errorf("said %s", said)
		}
	}
}

// TestUndo_OfTwoSubjectsOfOneBinding: each gets back its own place, in either order. kube-apiserver does not write the binding again until
// both have theirs.
func TestUndo_OfTwoSubjectsOfOneBinding(t *testing.T) {
	for _, first := range []string{operator, "jane"} {
		s := newScene(t)
		s.change(sharedBinding, func(o *object) {
			o.binding.Annotations = map[string]string{tighten.AutoupdateAnnotation: "true"}
		})
		before := s.text()
		s.access.Allowed = true
		for _, s.user = range []string{operator, "jane"} {
			_, err := s.apply(Options{})
			must(t, err)
			s.observe(good())
		}
		for _, s.user = range []string{operator, "jane"} {
			if step, err := s.apply(Options{Unproven: true}); step != Removed || err != nil {
				t.Fatalf("%s: step %d: %v", s.user, step, err)
			}
		}
		s.user = first
		_, err := s.undo(false)
		must(t, err)
		if o, err := s.client.get(t.Context(), sharedBinding); err != nil || o.meta().Annotations[tighten.AutoupdateAnnotation] != "false" || len(o.binding.Subjects) != 2 {
			t.Errorf("after the first: %+v %v", o.binding, err)
		}
		if s.user = "jane"; first == "jane" {
			s.user = operator
		}
		_, err = s.undo(false)
		must(t, err)
		o, err := s.client.get(t.Context(), sharedBinding)
		must(t, err)
		if len(o.binding.Subjects) != 3 || o.meta().Annotations[tighten.AutoupdateAnnotation] != "true" {
			t.Errorf("%s first: %+v", first, o.binding)
		}
		if first == "jane" && s.text() != before {
			t.Errorf("not as before:\n%s", s.text())
		}
	}
}

// TestUndo_OfARoleThatWasChangedForAnother: the role that the binding names has no update to give back until it has its rules again.
func TestUndo_OfARoleThatWasChangedForAnother(t *testing.T) {
	s := newScene(t)
	s.change(sharedBinding, func(o *object) { o.binding.Subjects = o.binding.Subjects[:2] })
	before := s.text()
	for _, s.user = range []string{operator, "jane"} {
		_, err := s.apply(Options{})
		must(t, err)
		_, err = s.apply(Options{Unproven: true})
		must(t, err)
	}
	s.user = operator
	for _, overwrite := range []bool{false, true} {
		_, err := s.undo(overwrite)
		if err == nil || !strings.Contains(err.Error(), `Role team/shared, which RoleBinding team/shared names, was changed for "jane": run the command with --undo for that subject first`) {
			t.Fatalf("overwrite %t: %v", overwrite, err)
		}
		s.record()
	}
	for _, s.user = range []string{"jane", operator} {
		_, err := s.undo(false)
		must(t, err)
	}
	if after := s.text(); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}
