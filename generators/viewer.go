package generators

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
)

const rbacViewerComment = `# Of every authenticated user: read the rules, so that kubectl fieldperm can say what they may change and why not.
# They name kinds, fields, verbs, and the users and conditions of sets and policies. To keep them to administrators,
# delete the ClusterRoleBinding: users then get answers that lack something.
`

// viewer is the name of the role with which every user reads the rules, and of its binding.
const viewer = "fieldperm-rules-viewer"

// viewerRole returns the role and the binding that let every authenticated user read what decides about its writes.
func viewerRole() (*rbacv1.ClusterRole, *rbacv1.ClusterRoleBinding) {
	apiVersion := rbacv1.SchemeGroupVersion.String()
	return &rbacv1.ClusterRole{
			TypeMeta: metav1.TypeMeta{APIVersion: apiVersion, Kind: "ClusterRole"}, ObjectMeta: metav1.ObjectMeta{Name: viewer},
			Rules: []rbacv1.PolicyRule{
				{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{v1alpha1.PermissionSchemaResource, v1alpha1.UncoveredPermissionSetResource, v1alpha1.ConditionalPolicyResource}, Verbs: []string{"get", "list"}},
				{APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"}, Verbs: []string{"get", "list"}},
				{APIGroups: []string{"apiregistration.k8s.io"}, Resources: []string{"apiservices"}, Verbs: []string{"get", "list"}},
			},
		}, &rbacv1.ClusterRoleBinding{
			TypeMeta: metav1.TypeMeta{APIVersion: apiVersion, Kind: "ClusterRoleBinding"}, ObjectMeta: metav1.ObjectMeta{Name: viewer},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: viewer},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: user.AllAuthenticated}},
		}
}
