package tighten

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fieldperm/fieldperm/internal/rbac"
)

// TestFiles_HaveWhatUsersWrite: only the objects that are written over others have the resource version that was read.
func TestFiles_HaveWhatUsersWrite(t *testing.T) {
	objects := grants(t, bound(deployments, ", {kind: User, name: jane}"))
	for _, o := range []*metav1.ObjectMeta{&objects.ClusterRoles[0].ObjectMeta, &objects.ClusterRoleBindings[0].ObjectMeta} {
		o.UID, o.ResourceVersion, o.Generation, o.CreationTimestamp = "u", "42", 7, metav1.Now()
		o.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}
		o.Labels, o.Annotations = map[string]string{"team": "a"}, map[string]string{"note": "b", corev1.LastAppliedConfigAnnotation: "{}"}
	}
	files := propose(t, operator, objects, webLog).Files()
	text := func(objects []any) string {
		out, err := Documents(objects)
		must(t, err)
		return string(out)
	}
	add, remove, undo := text(files.Add), text(files.Remove), text(files.Undo)
	for _, server := range []string{"uid", "generation", "creationTimestamp", "managedFields", "last-applied"} {
		if strings.Contains(add+remove+undo, server) {
			t.Errorf("%s is in a file", server)
		}
	}
	if strings.Contains(add+undo, "resourceVersion") || strings.Count(remove, `resourceVersion: "42"`) != len(files.Remove) {
		t.Errorf("resource versions: %s", remove)
	}
	has(t, remove, "team: a", "note: b", "name: jane")
	has(t, undo, "team: a", "note: b", "name: jane", "name: operator")
	if strings.Contains(remove, "kind: ServiceAccount") {
		t.Error("the subject is still bound")
	}
	if o, err := rbac.Decode("undo.yaml", []byte(undo)); err != nil || len(o.ClusterRoleBindings[0].Subjects) != 2 {
		t.Errorf("undo.yaml cannot be read: %v", err)
	}
}

// TestRestores: an undo.yaml is overwritten only by one that gives back as much.
func TestRestores(t *testing.T) {
	own, shared := bound(deployments, ""), bound(deployments, ", {kind: User, name: jane}")
	for name, c := range map[string]struct {
		earlier string
		now     string
		want    string
	}{
		"the same role":            {own, own, ""},
		"a role with more by now":  {own, bound(deployments+", {apiGroups: [''], resources: [secrets], verbs: [get]}", ""), ""},
		"a role with less by now":  {bound(deployments+", {apiGroups: [''], resources: [secrets], verbs: [update]}", ""), own, "ClusterRole operator"},
		"another role":             {strings.ReplaceAll(own, "name: operator}, rules", "name: other}, rules"), own, "ClusterRole other"},
		"the same binding":         {shared, shared, ""},
		"a binding of others more": {bound(deployments, ", {kind: User, name: jane}, {kind: User, name: kim}"), shared, "ClusterRoleBinding operator"},
	} {
		earlier := grants(t, c.earlier)
		if strings.Contains(c.earlier, "jane") {
			earlier.ClusterRoles = nil
		} else {
			earlier.ClusterRoleBindings = nil
		}
		var got []string
		for _, ref := range propose(t, operator, grants(t, c.now), webLog).Restores(earlier) {
			got = append(got, ref.String())
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestPropose_TwoObjectsWithOneName: the copy of a binding would have the name of the binding to the granular role.
func TestPropose_TwoObjectsWithOneName(t *testing.T) {
	objects := grants(t, bound(deployments, ", {kind: User, name: jane}"))
	objects.ClusterRoleBindings[0].Name = strings.TrimSuffix(mustSubject(t, operator).objectName("granular-"), "-"+mustSubject(t, operator).shortID())
	e, _ := collect(t, operator, webLog)
	_, err := Propose(mustSubject(t, operator), objects, e, Options{Namespaces: HeldReach, Names: HeldReach, Decides: decides, Barriers: &Barriers{Unknown: true}})
	if err == nil || !strings.Contains(err.Error(), "is twice in the proposal: rename") {
		t.Errorf("%v", err)
	}
}
