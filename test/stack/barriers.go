package stack

import (
	"context"
	"errors"
	"fmt"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
)

// AwaitBarriers returns when the API server asks fieldperm about barriers: fieldperm creates the webhook for them after its start. The test
// uses a built-in barrier.
func (s *Stack) AwaitBarriers(ctx context.Context) error {
	definitions := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	return s.AwaitBarrier(ctx, definitions, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "probes.stack.example.com", "annotations": map[string]any{"fieldperm.dev/permission-verbs": "{}"}},
		"spec": map[string]any{
			"group": "stack.example.com", "scope": "Cluster", "names": map[string]any{"plural": "probes", "singular": "probe", "kind": "Probe", "listKind": "ProbeList"},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}}}},
		},
	}})
}

// barrierProbe may create objects with barriers, and holds no granular verb.
const barrierProbe = "barrier-probe"

// AwaitBarrier returns when the webhook for barriers refuses the creation of an object with a guarded field by a user with the permission
// to create it, in the namespace of the object.
func (s *Stack) AwaitBarrier(ctx context.Context, resource schema.GroupVersionResource, object *unstructured.Unstructured) error {
	client, err := kubernetes.NewForConfig(s.Admin())
	if err != nil {
		return fmt.Errorf("barrier: %w", err)
	}
	rbac, meta := client.RbacV1(), metav1.ObjectMeta{Name: barrierProbe + ":" + resource.GroupResource().String()}
	_, err1 := rbac.ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
		{Verbs: []string{"create"}, APIGroups: []string{resource.Group}, Resources: []string{resource.Resource}},
	}}, metav1.CreateOptions{})
	_, err2 := rbac.ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta, Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: barrierProbe}},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
	}, metav1.CreateOptions{})
	for _, err := range []error{err1, err2} {
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("barrier: %w", err)
		}
	}
	user, err := s.User(barrierProbe)
	if err != nil {
		return err
	}
	objects, err := dynamic.NewForConfig(user.Config)
	if err != nil {
		return fmt.Errorf("barrier: %w", err)
	}
	err = await(ctx, func(ctx context.Context) error {
		_, err := objects.Resource(resource).Namespace(object.GetNamespace()).Create(ctx, object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil {
			return errors.New("it does not hold")
		}
		// Both a refusal and an error of fieldperm's own authorizers show that fieldperm was asked.
		if strings.Contains(err.Error(), `admission webhook "uncovered.fieldperm.dev" denied the request`) {
			return nil
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("barrier on %s: %w; the log of fieldperm-webhook ends in:\n%s", resource.GroupResource(), err, s.WebhookLogTail())
	}
	return nil
}
