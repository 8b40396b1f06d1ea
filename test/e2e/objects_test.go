//go:build integration

package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/test/cluster"
	"github.com/fieldperm/fieldperm/test/stack"
)

// The functions here write objects as an administrator, without a process of kubectl for each.

func objects(t *testing.T, s *stack.Stack) *cluster.Objects {
	t.Helper()
	admin, err := s.User("admin", "system:masters")
	must(t, err)
	o, err := s.Objects(admin)
	must(t, err)
	return o
}

// put creates the objects of a manifest, and returns the warnings.
func put(t *testing.T, s *stack.Stack, manifest string) []string {
	t.Helper()
	warnings, err := objects(t, s).Create(t.Context(), manifest)
	must(t, err)
	return warnings
}

// apply applies the objects of a manifest by server-side apply.
func apply(t *testing.T, s *stack.Stack, manifest string) {
	t.Helper()
	must(t, objects(t, s).Apply(t.Context(), manifest))
}

// remove deletes an object when the test ends. A document of fieldperm is out of force then, so that the next test is without it.
func remove(t *testing.T, s *stack.Stack, resource, name string) {
	t.Helper()
	t.Cleanup(func() {
		kind, err := objects(t, s).Remove(context.WithoutCancel(t.Context()), resource, name)
		must(t, err)
		if last := lastOf[kind.Kind]; last != "" && s == shared.stack {
			awaitLast(t, s, last)
		}
	})
}

// lastOf are documents about nothing that exists. fieldperm follows the objects of a kind in their order: when it has compiled one of these,
// it also knows what was deleted before.
var lastOf = map[string]string{
	v1alpha1.PermissionSchemaKind:       "{apiVersion: fieldperm.dev/v1alpha1, kind: PermissionSchema, metadata: {name: last}, spec: {group: nowhere.example.com, kind: Nothing, permissions: [{path: .spec, verb: example.com/nothing}]}}",
	v1alpha1.UncoveredPermissionSetKind: "{apiVersion: fieldperm.dev/v1alpha1, kind: UncoveredPermissionSet, metadata: {name: last}, spec: {uncoveredPermissions: ['granular:labels'], resources: [{apiGroups: [nowhere.example.com], resources: [nothings]}]}}",
	v1alpha1.ConditionalPolicyKind: "{apiVersion: fieldperm.dev/v1alpha1, kind: ConditionalPolicy, metadata: {name: last}, spec: {subjects: [{kind: User, name: nobody}], verbs: [create], " +
		"resources: [{apiGroups: [nowhere.example.com], resources: [nothings]}], effect: Allow, condition: 'true'}}",
}

func awaitLast(t *testing.T, s *stack.Stack, last string) {
	t.Helper()
	ctx, o := context.WithoutCancel(t.Context()), objects(t, s)
	_, err := o.Create(ctx, last)
	must(t, err)
	must(t, o.Await(ctx, last, v1alpha1.ConditionCompiled, 20*time.Second, func(status, _, _ string) bool { return status != "" }))
	must(t, o.Delete(ctx, last))
}

// established waits until the API server serves a definition.
func established(t *testing.T, s *stack.Stack, name string) {
	t.Helper()
	manifest := "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: " + name + "}\n"
	awaitCondition(t, s, manifest, "Established", 20*time.Second, func(status, _, _ string) bool { return status == "True" })
}

// awaitCondition waits until is answers true to a condition of the objects of a manifest.
func awaitCondition(t *testing.T, s *stack.Stack, manifest, condition string, limit time.Duration, is func(status, reason, message string) bool) {
	t.Helper()
	must(t, objects(t, s).Await(t.Context(), manifest, condition, limit, is))
}
