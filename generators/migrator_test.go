package generators

import (
	"bytes"
	"reflect"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// TestC2_TheStorageVersionMigratorPassesItsBarrier: every way of installation gives the migrator the one verb that it needs besides its
// own role, on the endpoint that it writes.
func TestC2_TheStorageVersionMigratorPassesItsBarrier(t *testing.T) {
	o := options(t)
	for _, rest := range []bool{false, true} {
		o.REST, o.Uncovered = rest, nil
		roles, bindings := map[string][]rbacv1.PolicyRule{}, map[string][]rbacv1.Subject{}
		for _, raw := range bytes.Split(file(t, manifests(t, o), fileRBAC), []byte("---\n")) {
			var role rbacv1.ClusterRole
			var binding rbacv1.ClusterRoleBinding
			if err := yaml.Unmarshal(raw, &binding); err != nil {
				t.Fatal(err)
			}
			if err := yaml.Unmarshal(raw, &role); err != nil {
				t.Fatal(err)
			}
			switch role.Kind {
			case "ClusterRole":
				roles[role.Name] = role.Rules
			case "ClusterRoleBinding":
				bindings[binding.RoleRef.Name] = binding.Subjects
			}
		}
		const name = "fieldperm-storage-version-migrator"
		want := []rbacv1.PolicyRule{{APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions/status"}, Verbs: []string{"granular:storedVersions"}}}
		if !reflect.DeepEqual(roles[name], want) {
			t.Errorf("REST %t: the migrator may %v, want %v", rest, roles[name], want)
		}
		subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "kube-system", Name: "storage-version-migrator-controller"}}
		if !reflect.DeepEqual(bindings[name], subjects) {
			t.Errorf("REST %t: bound to %v, want %v", rest, bindings[name], subjects)
		}
	}
}
