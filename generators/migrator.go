package generators

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fieldperm/fieldperm/verbs"
)

const rbacMigratorComment = `# Of kube-controller-manager's storage version migrator: it drops the versions that it has migrated from
# .status.storedVersions of definitions, a barrier that its own role from Kubernetes does not pass. Without the
# marker the verb gives nothing else. A kube-controller-manager without --use-service-account-credentials is
# the user system:kube-controller-manager: bind that one then.
`

// migratorVerb is the verb of .status.storedVersions in the built-in catalogue.
const migratorVerb = "storedVersions"

// storageVersionMigrator is the service account of the controller of that name in kube-controller-manager (Kubernetes'
// plugin/pkg/auth/authorizer/rbac/bootstrappolicy/controller_policy.go).
var storageVersionMigrator = rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceSystem, Name: "storage-version-migrator-controller"}

// migratorRole returns the role and the binding that give the storage version migrator the verb of the barrier on its field.
func migratorRole() (*rbacv1.ClusterRole, *rbacv1.ClusterRoleBinding, error) {
	verb, err := verbs.New(migratorVerb)
	if err != nil {
		return nil, nil, err
	}
	meta := metav1.ObjectMeta{Name: "fieldperm-storage-version-migrator"}
	apiVersion := rbacv1.SchemeGroupVersion.String()
	return &rbacv1.ClusterRole{
			TypeMeta: metav1.TypeMeta{APIVersion: apiVersion, Kind: "ClusterRole"}, ObjectMeta: meta,
			Rules: []rbacv1.PolicyRule{{APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions/status"}, Verbs: []string{verb.String()}}},
		}, &rbacv1.ClusterRoleBinding{
			TypeMeta: metav1.TypeMeta{APIVersion: apiVersion, Kind: "ClusterRoleBinding"}, ObjectMeta: meta,
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
			Subjects: []rbacv1.Subject{storageVersionMigrator},
		}, nil
}
