package rbac

import (
	"fmt"
	"reflect"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestStrip_KeepsWhatDecides: names, rules, references and subjects.
func TestStrip_KeepsWhatDecides(t *testing.T) {
	s := &stripper{}
	noise := metav1.ObjectMeta{
		Name: "a", Namespace: "b", ResourceVersion: "1", Labels: map[string]string{"x": "y"}, Annotations: map[string]string{"x": "y"}, Finalizers: []string{"f"},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}}, OwnerReferences: []metav1.OwnerReference{{Name: "o"}},
	}
	kept := metav1.ObjectMeta{Name: "a", Namespace: "b", ResourceVersion: "1"}
	rules := func() []rbacv1.PolicyRule {
		return []rbacv1.PolicyRule{{Verbs: []string{"get", "granular"}, APIGroups: []string{"", "apps"}, Resources: []string{"pods"}, ResourceNames: []string{"n"}}, {Verbs: []string{"get"}, NonResourceURLs: []string{"/x"}}}
	}
	ref, subjects := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "r"}, []rbacv1.Subject{{Kind: "User", Name: "u"}}
	for _, c := range []struct{ object, want any }{
		{&rbacv1.Role{ObjectMeta: noise, Rules: rules()}, &rbacv1.Role{ObjectMeta: kept, Rules: rules()}},
		{&rbacv1.ClusterRole{ObjectMeta: noise, Rules: rules()}, &rbacv1.ClusterRole{ObjectMeta: kept, Rules: rules()}},
		{&rbacv1.RoleBinding{ObjectMeta: noise, RoleRef: ref, Subjects: subjects}, &rbacv1.RoleBinding{ObjectMeta: kept, RoleRef: ref, Subjects: subjects}},
		{&rbacv1.ClusterRoleBinding{ObjectMeta: noise, RoleRef: ref, Subjects: subjects}, &rbacv1.ClusterRoleBinding{ObjectMeta: kept, RoleRef: ref, Subjects: subjects}},
	} {
		if got, err := s.strip(c.object); err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("got  %+v, %v\nwant %+v", got, err, c.want)
		}
	}
}

// TestStrip_ListsWithTheSameKeyStayApart: a verb may be any text, also one that joins two verbs.
func TestStrip_ListsWithTheSameKeyStayApart(t *testing.T) {
	for _, lists := range [][2][]string{{{"get", "update"}, {"get\x00update"}}, {{"get\x00update"}, {"get", "update"}}, {{"", ""}, {"\x00"}}} {
		s := &stripper{}
		for _, list := range lists {
			if got := s.shared(list); !reflect.DeepEqual(got, list) {
				t.Errorf("%q became %q", list, got)
			}
		}
	}
}

// TestStrip_SharesEqualListsUpToABound: of what is shared, not even deleted objects free the memory.
func TestStrip_SharesEqualListsUpToABound(t *testing.T) {
	s := &stripper{}
	list := func() []string { return []string{"get", "list"} }
	if first, second := s.shared(list()), s.shared(list()); &first[0] != &second[0] || cap(first) != len(first) {
		t.Error("equal lists are apart, or can be appended to")
	}
	for i := range 2 * maxLists {
		s.shared([]string{fmt.Sprint(i)})
	}
	s.shared([]string{fmt.Sprintf("%0*d", maxListBytes+1, 0)})
	if len(s.lists) != maxLists {
		t.Errorf("keeps %d lists", len(s.lists))
	}
}
