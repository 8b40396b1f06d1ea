package access

import (
	"fmt"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/internal/rbac"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/test/schematest"
)

// many returns Roles with a binding to a user each, in namespaces of ten Roles. A third of the users have update, and a third the verb of one image.
func many(n int) rbac.Grants {
	var out rbac.Grants
	for i := range n {
		at := metav1.ObjectMeta{Namespace: fmt.Sprint("team-", i/10), Name: fmt.Sprint("r", i)}
		verb := []string{"update", "granular:scale", fmt.Sprintf("granular:image(web%d)", i)}[i%3]
		out.Roles = append(out.Roles, rbacv1.Role{ObjectMeta: at, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"granular", "granular:image", verb}},
		}})
		out.RoleBindings = append(out.RoleBindings, rbacv1.RoleBinding{
			ObjectMeta: at, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: at.Name},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: fmt.Sprint("user-", i)}},
		})
	}
	return out
}

// BenchmarkOf asks about all fields of Deployments in all namespaces, as who-can does without --field.
func BenchmarkOf(b *testing.B) {
	root := place(b, schematest.Traced(b), runtimeschema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, schema.ResourceRef{Group: "apps", Version: "v1", Resource: "deployments"}, "")
	for _, n := range []int{100, 1000, 10_000} {
		grants := many(n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				w := &Write{Verb: "update", Group: "apps", Version: "v1", Resource: "deployments", AllNamespaces: true, TakesMarker: true}
				c, err := New(grants, nil)
				if err != nil {
					b.Fatal(err)
				}
				if of, _ := c.Of(w, root.Kind, "all"); len(of.Subjects) != n {
					b.Fatalf("%d subjects", len(of.Subjects))
				}
			}
		})
	}
}
