package apply

import (
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/internal/tighten"
)

func role(at tighten.Ref, labels map[string]string, rules ...rbacv1.PolicyRule) *object {
	return &object{ref: at, role: &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Namespace: at.Namespace, Name: at.Name, Labels: labels}, Rules: rules}}
}

// TestUndo_ReadsNoRecordOfARole: a label and an annotation that everybody can write restore nothing and delete nothing.
func TestUndo_ReadsNoRecordOfARole(t *testing.T) {
	for _, tightened := range []bool{false, true} {
		s := newScene(t)
		id := s.subject().ID()
		planted := role(ref(roleKind, "team", "harmless"), map[string]string{tighten.SubjectLabel: id, "fieldperm.dev/tightened-" + id: "true"})
		planted.role.Annotations = map[string]string{
			"fieldperm.dev/tighten-record":         `{"subject":"` + operator + `","changed":[]}`,
			"fieldperm.dev/tighten-original-" + id: `{"rules":[{"verbs":["*"],"apiGroups":["*"],"resources":["*"]}],"after":"` + hash(nil) + `"}`,
		}
		s.add(planted)
		s.add(binding(ref(roleBindingKind, "team", "harmless"), planted.ref, user("mallory")))
		if tightened {
			s.tightened()
		}
		_, err := s.undo(false)
		must(t, err)
		o, err := s.client.get(t.Context(), planted.ref)
		must(t, err)
		if o == nil || len(o.role.Rules) > 0 {
			t.Errorf("the planted role is now %+v", o)
		}
	}
}

// TestApply_NeverFillsAPlantedRole: the names of added objects are not those that are known without the record.
func TestApply_NeverFillsAPlantedRole(t *testing.T) {
	s := newScene(t)
	short := s.subject().ID()[:8]
	for _, name := range []string{"granular-ops-operator-" + short, "shared-" + short} {
		planted := role(ref(roleKind, "team", name), map[string]string{tighten.SubjectLabel: s.subject().ID()})
		s.add(planted)
		s.add(binding(ref(roleBindingKind, "team", "m-"+name), planted.ref, user("mallory")))
	}
	s.tightened()
	all := s.read()
	for i := range all.Roles {
		if r := &all.Roles[i]; strings.HasSuffix(r.Name, short) && len(r.Rules) > 0 {
			t.Errorf("%s has %v", r.Name, r.Rules)
		}
	}
	other := newScene(t)
	other.tightened()
	if a, b := s.record().Suffix, other.record().Suffix; a == b || len(a) != suffixLength {
		t.Errorf("suffixes %q and %q", a, b)
	}
}

// TestApply_AdoptsNothing: an object with the name of one to add is an error, also after a crash if it is not exactly what would be written.
func TestApply_AdoptsNothing(t *testing.T) {
	s := newScene(t)
	p := s.propose()
	planted := role(ref(roleKind, "team", p.Add.Roles[0].Name), map[string]string{tighten.SubjectLabel: s.subject().ID()})
	s.add(planted)
	if _, err := s.client.Apply(t.Context(), p, nil, Options{}); err == nil || !strings.Contains(err.Error(), "exists and was not made by --apply: delete it") {
		t.Errorf("%v", err)
	}
	s.drop(planted.ref)

	// The record is written, and no role. Another has read the record.
	s.writes, s.crash, s.after = 0, 1, true
	if _, err := s.client.Apply(t.Context(), p, nil, Options{}); err == nil {
		t.Fatal("no crash")
	}
	s.dead, s.crash = false, 0
	s.add(planted)
	before := s.text()
	if _, err := s.apply(Options{}); err == nil || !strings.Contains(err.Error(), "is not as --apply made it") || s.text() != before {
		t.Errorf("%v", err)
	}
	_, err := s.undo(false)
	must(t, err)
	if o, err := s.client.get(t.Context(), planted.ref); err != nil || o == nil {
		t.Errorf("--undo has deleted the object of another: %v", err)
	}
}

// TestApply_RefusesABindingOfAnother: its subjects would get the rules of the added role.
func TestApply_RefusesABindingOfAnother(t *testing.T) {
	s := newScene(t)
	p := s.propose()
	planted := binding(ref(roleBindingKind, "team", "planted"), ref(roleKind, "team", p.Add.Roles[0].Name), user("mallory"))
	s.add(planted)
	before := s.text()
	_, err := s.client.Apply(t.Context(), p, nil, Options{New: true})
	if want := `RoleBinding team/planted is not of the proposal and binds User "mallory" to Role team/`; err == nil || !strings.Contains(err.Error(), want) || s.text() != before {
		t.Errorf("%v", err)
	}
	// After the first step, too.
	s.drop(planted.ref)
	_, err = s.client.Apply(t.Context(), p, nil, Options{})
	must(t, err)
	s.observe(good())
	s.add(planted)
	if _, err := s.apply(Options{}); err == nil || !strings.Contains(err.Error(), "RoleBinding team/planted is not of the proposal") {
		t.Errorf("%v", err)
	}
}

// TestApply_TakesTheRulesBackFromABindingOfAnother: one that was made while the roles were written.
func TestApply_TakesTheRulesBackFromABindingOfAnother(t *testing.T) {
	s := newScene(t)
	p := s.propose()
	planted := binding(ref(roleBindingKind, "team", "planted"), ref(roleKind, "team", p.Add.Roles[0].Name), user("mallory"))
	plant := func() {
		s.saying = func(text string) {
			if strings.HasPrefix(text, "ClusterRole ") {
				s.saying = nil
				s.add(planted)
			}
		}
	}
	plant()
	if _, err := s.client.Apply(t.Context(), p, nil, Options{}); err == nil || !strings.Contains(err.Error(), "RoleBinding team/planted is not of the proposal") {
		t.Errorf("%v", err)
	}
	if all := s.read(); len(all.Roles) != 1 || len(all.ClusterRoles) != 1 || len(all.RoleBindings) != 2 || len(all.ClusterRoleBindings) != 1 {
		t.Errorf("%d roles are left: %q", len(all.Roles)+len(all.ClusterRoles), s.said)
	}
	s.drop(planted.ref)
	if step, err := s.apply(Options{}); step != Added || err != nil {
		t.Fatalf("again: step %d: %v", step, err)
	}
	// Later verbs.
	s.fields = "granular:label(a)"
	before := fmt.Sprint(s.read().Roles)
	plant()
	if _, err := s.apply(Options{}); err == nil || !strings.Contains(err.Error(), "RoleBinding team/planted is not of the proposal") {
		t.Errorf("%v", err)
	}
	if strings.Contains(fmt.Sprint(s.read().Roles), "granular:label(a)") || !strings.Contains(before, "granular:scale") {
		t.Errorf("the later verb is still there")
	}
	s.drop(planted.ref)
	if step, err := s.apply(Options{}); step != Added || err != nil || !strings.Contains(fmt.Sprint(s.read().Roles), "granular:label(a)") {
		t.Errorf("again: step %d: %v", step, err)
	}
}

// TestApply_RefusesWhatWasAddedAndChanged: before the second step takes anything away.
func TestApply_RefusesWhatWasAddedAndChanged(t *testing.T) {
	for name, change := range map[string]func(s *scene){
		"gone":     func(s *scene) { s.drop(copyOf(s, roleBindingKind)) },
		"narrower": func(s *scene) { s.change(copyOf(s, roleKind), func(o *object) { o.role.Rules = nil }) },
		"of another": func(s *scene) {
			s.change(copyOf(s, roleBindingKind), func(o *object) { o.binding.Subjects[0] = user("mallory") })
		},
		"another": func(s *scene) {
			at := copyOf(s, roleKind)
			o, err := s.client.get(t.Context(), at)
			must(t, err)
			s.drop(at)
			s.add(role(at, nil, o.role.Rules...))
		},
	} {
		s := newScene(t)
		_, err := s.apply(Options{})
		must(t, err)
		s.observe(good())
		change(s)
		before := s.text()
		if _, err := s.apply(Options{Unproven: true}); err == nil || !strings.Contains(err.Error(), "--undo") || s.text() != before {
			t.Errorf("%s: %v", name, err)
		}
		_, err = s.undo(false)
		must(t, err)
	}
}

// TestApply_TwoAtOnce: the second one that writes the record fails and changes nothing.
func TestApply_TwoAtOnce(t *testing.T) {
	s := newScene(t)
	_, err := s.apply(Options{})
	must(t, err)
	s.observe(good())
	s.saving = func() {
		st, err := s.client.load(t.Context(), s.subject())
		must(t, err)
		st.Changed = []taken{{identity: identityOf(ownRole, "")}}
		must(t, s.client.save(t.Context(), st))
	}
	if step, err := s.apply(Options{}); err == nil || !strings.Contains(err.Error(), "by another --apply or --undo at the same time") || step == Removed {
		t.Errorf("step %d: %v", step, err)
	}
	// Two begin: the record of the other is there.
	s = newScene(t)
	p := s.propose()
	_, err = s.apply(Options{})
	must(t, err)
	before := s.text()
	if _, err := s.client.Apply(t.Context(), p, nil, Options{}); err == nil || !strings.Contains(err.Error(), "at the same time") || s.text() != before {
		t.Errorf("%v", err)
	}
}

// TestApply_WhileAnotherUndoes: nothing could be restored later without the record, so that it is restored at once.
func TestApply_WhileAnotherUndoes(t *testing.T) {
	for _, after := range []string{"added", "changed"} {
		s := newScene(t)
		before := s.text()
		if after == "changed" {
			_, err := s.apply(Options{})
			must(t, err)
			s.observe(good())
		}
		s.saying = func(text string) {
			if strings.HasPrefix(text, "ClusterRole ") && strings.HasSuffix(text, after) {
				s.saying = nil
				_, err := s.undo(false)
				must(t, err)
			}
		}
		if _, err := s.apply(Options{}); err == nil || !strings.Contains(err.Error(), "at the same time") || s.text() != before {
			t.Errorf("%s: %v\n%s", after, err, s.text())
		}
	}
}

// TestApply_NeedsARecordOfItsOwn: a Secret that --apply has not made for the subject is not taken for a record.
func TestApply_NeedsARecordOfItsOwn(t *testing.T) {
	for text, want := range map[string]string{
		"{":                      "is no record",
		`{"subject":"user:eve"}`: `is that of "user:eve"`,
	} {
		s := newScene(t)
		p := s.propose()
		_, err := s.apply(Options{})
		must(t, err)
		secret, err := s.client.Records.Get(t.Context(), recordName(s.subject()), metav1.GetOptions{})
		must(t, err)
		secret.Data[recordKey] = []byte(text)
		_, err = s.client.Records.Update(t.Context(), secret, metav1.UpdateOptions{})
		must(t, err)
		if _, err := s.client.Apply(t.Context(), p, nil, Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
		if _, err := s.undo(false); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("--undo, %q: %v", text, err)
		}
	}
}

// TestUndo_ReadsNoRecordOfAnObservation: a user that may write PermissionObservations cannot have a binding restored that never was.
func TestUndo_ReadsNoRecordOfAnObservation(t *testing.T) {
	planted := func(s *scene) map[string]string {
		uid := s.add(binding(ref(clusterRoleBindingKind, "", "root"), ownRole, user("admin")))
		text, err := (&record{Subject: s.subject().String(), Changed: []taken{{
			identity: identityOf(ref(clusterRoleBindingKind, "", "root"), uid), Subjects: []placed{{0, user("mallory")}},
		}}}).text()
		must(t, err)
		return map[string]string{"fieldperm.dev/tighten-record": string(text)}
	}
	// The observation alone.
	s := newScene(t)
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": v1alpha1.GroupVersion.String(), "kind": v1alpha1.PermissionObservationKind}}
	o.SetName(s.subject().ObservationName())
	o.SetAnnotations(planted(s))
	_, err := s.observations().Create(t.Context(), o, metav1.CreateOptions{})
	must(t, err)
	before := s.text()
	for name, command := range map[string]func() error{
		"--apply": func() error { _, err := s.apply(Options{}); return err },
		"--undo":  func() error { _, err := s.undo(true); return err },
	} {
		if err := command(); err == nil || !strings.Contains(err.Error(), "was not made by --apply") || s.text() != before {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Beside a record.
	s = newScene(t)
	annotations, before := planted(s), s.text()
	_, err = s.apply(Options{})
	must(t, err)
	o, err = s.observations().Get(t.Context(), s.subject().ObservationName(), metav1.GetOptions{})
	must(t, err)
	o.SetAnnotations(annotations)
	_, err = s.observations().Update(t.Context(), o, metav1.UpdateOptions{})
	must(t, err)
	_, err = s.undo(true)
	must(t, err)
	if after := s.text(); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

// TestApply_DryRunWritesNothing: each write is sent as a dry run.
func TestApply_DryRunWritesNothing(t *testing.T) {
	s := newScene(t)
	s.client.DryRun = true
	dry := func(action clienttesting.Action) (bool, runtime.Object, error) {
		var options []string
		switch action := action.(type) {
		case clienttesting.CreateActionImpl:
			options = action.CreateOptions.DryRun
			if len(options) == 1 {
				return true, action.GetObject(), nil
			}
		case clienttesting.UpdateActionImpl:
			options = action.UpdateOptions.DryRun
			if len(options) == 1 {
				return true, action.GetObject(), nil
			}
		}
		t.Errorf("%s of %s is no dry run", action.GetVerb(), action.GetResource().Resource)
		return false, nil, nil
	}
	s.rbac.PrependReactor("create", "*", dry)
	s.dynamic.PrependReactor("create", "*", dry)
	if step, err := s.apply(Options{}); step != Added || err != nil {
		t.Errorf("step %d: %v", step, err)
	}
}
