//go:build integration

package faults

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// inForce is the maximum time until a change of schemas takes effect.
const inForce = 2 * time.Second

// changing are objects that change the rules of fieldperm. No write of this package needs them.
const changing = `apiVersion: fieldperm.dev/v1alpha1
kind: UncoveredPermissionSet
metadata: {name: changing}
spec:
  uncoveredPermissions: [granular:label(changing.example.com)]
  resources: [{apiGroups: [apps], resources: [deployments]}]
---
apiVersion: fieldperm.dev/v1alpha1
kind: PermissionSchema
metadata: {name: changing}
spec:
  group: apps
  kind: Deployment
  permissions:
  - {path: .spec.paused, verb: example.com/paused}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: changings.example.com
  annotations:
    fieldperm.dev/permission-verbs: '{"v1":[{"path":".spec.size","verb":"example.com/size"}]}'
spec:
  group: example.com
  names: {kind: Changing, plural: changings}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}
`

// changes are changes of fieldperm's rules. Only users whose writes concern them notice the change.
func changes() []fault {
	return []fault{{
		name: "schemas, barriers and CRDs come and go", spared: true, begin: func(t *testing.T, c *scene) {
			t.Helper()
			c.object(t, deployments, "labelled")
			for range 3 {
				c.kubectl(t, changing, "apply", "--server-side", "-f", "-")
				began := time.Now()
				await(t, recoverWithin, func() error { return c.changingLabel(t, apierrors.IsForbidden) })
				if took := time.Since(began); took > inForce+slack {
					t.Errorf("the barrier holds after %s, want %s", took, inForce)
				}
				c.kubectl(t, changing, "delete", "--wait=false", "-f", "-")
				await(t, recoverWithin, func() error { return c.changingLabel(t, func(err error) bool { return err == nil }) })
			}
		},
	}}
}

// installKinds installs fieldperm's own kinds.
func (c *scene) installKinds(t *testing.T) {
	t.Helper()
	must(t, c.Apply(t.Context(), filepath.Join("..", "..", "config", "crd")))
	c.kubectl(t, "", "wait", "--for=condition=Established", "crd/uncoveredpermissionsets.fieldperm.dev", "crd/permissionschemas.fieldperm.dev")
}

func (c *scene) kubectl(t *testing.T, stdin string, args ...string) {
	t.Helper()
	admin, err := c.User("admin", "system:masters")
	must(t, err)
	if _, stderr, err := c.Kubectl(admin).Run(context.WithoutCancel(t.Context()), stdin, args...); err != nil {
		t.Fatalf("%v: %s", err, stderr)
	}
}

// changingLabel tries to write the label with the changing barrier, as a user with generic verbs.
func (c *scene) changingLabel(t *testing.T, as func(error) bool) error {
	t.Helper()
	user, err := c.User("editor")
	must(t, err)
	client, err := rawClient(user.Config)
	must(t, err)
	_, err = patch(path(deployments.group, deployments.resource, "labelled"), `{"metadata":{"labels":{"changing.example.com/n":"n$N"}}}`)(t.Context(), client, int(sequence.Add(1)))
	if !as(err) {
		return fmt.Errorf("the label is answered by: %w", orNone(err))
	}
	return nil
}
