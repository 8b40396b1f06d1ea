package tighten

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
)

func observationOf(name string, rows ...v1alpha1.ObservedResource) v1alpha1.PermissionObservation {
	return v1alpha1.PermissionObservation{
		ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1},
		Spec:       v1alpha1.PermissionObservationSpec{Subjects: []v1alpha1.Subject{{Kind: "ServiceAccount", Namespace: "ops", Name: "operator"}}},
		Status:     v1alpha1.PermissionObservationStatus{ObservedGeneration: 1, Writes: 3, Resources: rows},
	}
}

func rowOf(user string, count int64, verb string, minute int) v1alpha1.ObservedResource {
	at := metav1.NewTime(time.Date(2026, 11, 23, 10, minute, 0, 0, time.UTC))
	return v1alpha1.ObservedResource{User: user, Group: "apps", Resource: "deployments", Writes: count, Verbs: []v1alpha1.ObservedVerb{{
		Verb: verb, Count: count, FirstTime: at, LastTime: at, Example: v1alpha1.ObservedObject{Namespace: "team", Name: "web"}, Namespaces: []string{"team"},
	}}}
}

// TestObservations_AreMergedWithoutCountingTwice: two observations of one subject see the same writes.
func TestObservations_AreMergedWithoutCountingTwice(t *testing.T) {
	items := []v1alpha1.PermissionObservation{
		observationOf("a", rowOf(operator, 3, "granular:scale", 5)),
		observationOf("b", rowOf(operator, 2, "granular:scale", 1), rowOf("other", 9, "granular:label(a)", 0)),
		observationOf("others", rowOf("other", 9, "granular:label(a)", 0)),
	}
	items[2].Spec.Subjects = []v1alpha1.Subject{{Kind: "User", Name: "other"}}
	e, names := Observations(mustSubject(t, operator), items)
	w := e.Resources[Resource{"apps", "deployments"}]
	u := w.Verbs["granular:scale"]
	if len(names) != 2 || len(w.Verbs) != 2 || u.Count != 3 || u.First.Minute() != 1 || u.Last.Minute() != 5 || !u.Namespaces["team"] || len(e.Gaps) > 0 {
		t.Errorf("%q %+v %+v %q", names, w.Verbs, u, e.Gaps)
	}
	if w.Verbs["granular"].Count != 3 {
		t.Errorf("the marker is used %d times", w.Verbs["granular"].Count)
	}
}

func TestObservations_SayWhatTheyMissed(t *testing.T) {
	none := observationOf("none")
	none.Status = v1alpha1.PermissionObservationStatus{}
	old := observationOf("old", rowOf(operator, 1, "granular:scale", 0))
	old.Generation = 2
	full := observationOf("full", rowOf(operator, 1, "none", 0))
	full.Status.Omitted, full.Status.Failed = 7, 2
	full.Status.Gaps = []v1alpha1.ObservationGap{{Reason: "fieldperm was down"}}
	e, _ := Observations(mustSubject(t, operator), []v1alpha1.PermissionObservation{none, old, full})
	text := strings.Join(e.Gaps, "\n")
	has(t, text, `"none" has no status`, `"old" has the status of an earlier specification`, "omits 7 uses", "verbs of 2 writes", "fieldperm was down")
	if e.Resources[Resource{"apps", "deployments"}].None != 1 {
		t.Error("a change without a verb is not counted")
	}
}

func TestObservations_OfAGroup(t *testing.T) {
	alone := observationOf("alone", rowOf("jane", 1, "granular:scale", 0))
	alone.Spec.Subjects = []v1alpha1.Subject{{Kind: "Group", Name: "team"}}
	among := *alone.DeepCopy()
	among.Name = "among"
	among.Spec.Subjects = append(among.Spec.Subjects, v1alpha1.Subject{Kind: "User", Name: "x"})
	e, names := Observations(mustSubject(t, "group:team"), []v1alpha1.PermissionObservation{alone, among})
	if len(names) != 1 || e.Resources[Resource{"apps", "deployments"}].Verbs["granular:scale"].Count != 1 {
		t.Errorf("%q %+v", names, e)
	}
	has(t, strings.Join(e.Gaps, "\n"), `"among" observes group:team and others`)
	if e, names := Observations(mustSubject(t, "jane"), []v1alpha1.PermissionObservation{alone}); len(names) != 1 || e.Empty() {
		t.Error("an observation of a group of the user is not used")
	}
}

// TestObservations_AnExampleWithoutAName: the name was too long for the status, so that not all names are known.
func TestObservations_AnExampleWithoutAName(t *testing.T) {
	row := rowOf(operator, 1, "granular:scale", 5)
	row.Verbs[0].Example.Name = ""
	e, _ := Observations(mustSubject(t, operator), []v1alpha1.PermissionObservation{observationOf("a", row)})
	if u := e.Resources[Resource{"apps", "deployments"}].Verbs["granular:scale"]; len(u.Names) > 0 || !u.MoreNames || !u.Namespaces["team"] {
		t.Errorf("%+v", u)
	}
}
