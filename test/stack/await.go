package stack

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
)

const (
	// awaitTimeout limits the waiting for changes that a server learns by a watch.
	awaitTimeout = 30 * time.Second
	pollInterval = 20 * time.Millisecond
	// probeUser holds only the marker, get, and the verbs that the probes grant.
	probeUser = "probe"
)

// AwaitGrants returns when every existing role and binding is in force. The API server's authorizer watches the four kinds separately, each
// in order: when a probe that was created after them is in force, so are they.
func (s *Stack) AwaitGrants(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(s.Admin())
	if err != nil {
		return fmt.Errorf("grants: %w", err)
	}
	s.probes++
	name, everywhere := fmt.Sprintf("probe-%d", s.probes), fmt.Sprintf("probe-everywhere-%d", s.probes)
	verb, meta := []string{name}, metav1.ObjectMeta{Name: name}
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: probeUser}}
	rbac, options := client.RbacV1(), metav1.CreateOptions{}
	_, err1 := rbac.Roles("default").Create(ctx, &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
		{Verbs: verb, APIGroups: []string{""}, Resources: []string{"configmaps"}},
	}}, options)
	_, err2 := rbac.RoleBindings("default").Create(ctx, &rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}}, options)
	_, err3 := rbac.ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
		{Verbs: []string{everywhere}, APIGroups: []string{""}, Resources: []string{"configmaps"}},
		{Verbs: []string{"get", "granular"}, APIGroups: []string{"*"}, Resources: []string{"*"}},
	}}, options)
	_, err4 := rbac.ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}}, options)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return fmt.Errorf("grants: probe: %w", err)
	}
	for _, attributes := range []authorizationv1.ResourceAttributes{
		{Verb: name, Resource: "configmaps", Namespace: "default"},
		{Verb: everywhere, Resource: "configmaps"},
	} {
		err := await(ctx, func(ctx context.Context) error {
			status, err := ask(ctx, client, attributes)
			if err == nil && !status.Allowed {
				err = errors.New("is not in force yet")
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("grants: probe %q: %w", attributes.Verb, err)
		}
	}
	return nil
}

// AwaitKind returns when fieldperm lets users with the marker through to a resource and refuses their changes there without a verb. Then it
// knows both the resource and the schema of the kind. AwaitGrants must have been called before.
func (s *Stack) AwaitKind(ctx context.Context, resource schema.GroupVersionResource, kind string) error {
	return s.AwaitKindIn(ctx, resource, kind, metav1.NamespaceDefault)
}

// AwaitKindIn is AwaitKind of a kind in a namespace; the namespace is empty for cluster-scoped objects.
func (s *Stack) AwaitKindIn(ctx context.Context, resource schema.GroupVersionResource, kind, namespace string) error {
	clients, err := kubernetes.NewForConfig(s.Admin())
	if err != nil {
		return fmt.Errorf("kind %q: %w", kind, err)
	}
	err = await(ctx, func(ctx context.Context) error {
		// Each probe has a name of its own, because the API server caches NoOpinion of fieldperm.
		s.probes++
		status, err := ask(ctx, clients, authorizationv1.ResourceAttributes{
			Verb: "update", Group: resource.Group, Version: resource.Version, Resource: resource.Resource, Namespace: namespace, Name: fmt.Sprintf("probe-%d", s.probes),
		})
		if err == nil && !strings.HasPrefix(status.Reason, "granular:") {
			err = fmt.Errorf("the marker does not pass authorization: allowed %t, reason %q", status.Allowed, status.Reason)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("kind %q: %w; the log of fieldperm-webhook ends in:\n%s", kind, err, s.WebhookLogTail())
	}
	user, err := s.User(probeUser)
	if err != nil {
		return err
	}
	objects, err := dynamic.NewForConfig(user.Config)
	if err != nil {
		return fmt.Errorf("kind %q: %w", kind, err)
	}
	probe := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "probe", "labels": map[string]any{"probe": "true"}}}}
	probe.SetGroupVersionKind(resource.GroupVersion().WithKind(kind))
	err = await(ctx, func(ctx context.Context) error {
		_, err := objects.Resource(resource).Namespace(namespace).Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if apierrors.IsForbidden(err) && strings.Contains(err.Error(), "may not c") {
			return nil
		}
		if err == nil {
			return errors.New("a holder of the marker alone may create one")
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("kind %q: %w; the log of fieldperm-webhook ends in:\n%s", kind, err, s.WebhookLogTail())
	}
	return nil
}

// await calls f until it returns no error.
func await(ctx context.Context, f func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, pollInterval, awaitTimeout, true, func(ctx context.Context) (bool, error) {
		last = f(ctx)
		return last == nil, nil
	})
	if err != nil {
		return errors.Join(err, last)
	}
	return nil
}

// ask asks the API server whether the probe's user has a permission.
func ask(ctx context.Context, client kubernetes.Interface, attributes authorizationv1.ResourceAttributes) (authorizationv1.SubjectAccessReviewStatus, error) {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: probeUser, ResourceAttributes: &attributes}}
	answer, err := client.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return authorizationv1.SubjectAccessReviewStatus{}, err
	}
	return answer.Status, nil
}
