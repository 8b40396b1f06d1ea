package rbac

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/pager"
)

// List reads the objects of a cluster page by page, without their managedFields. The client needs list on the four kinds.
func List(ctx context.Context, client kubernetes.Interface) (*Grants, error) {
	api, out := client.RbacV1(), &Grants{}
	for kind, list := range map[string]pager.ListPageFunc{
		"ClusterRoles": func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return api.ClusterRoles().List(ctx, options)
		},
		"Roles": func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return api.Roles("").List(ctx, options)
		},
		"ClusterRoleBindings": func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return api.ClusterRoleBindings().List(ctx, options)
		},
		"RoleBindings": func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return api.RoleBindings("").List(ctx, options)
		},
	} {
		if err := out.list(ctx, kind, list); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// list adds the objects of one kind. The error names the kind.
func (g *Grants) list(ctx context.Context, kind string, list pager.ListPageFunc) error {
	err := pager.New(list).EachListItem(ctx, metav1.ListOptions{}, func(item runtime.Object) error {
		if m, ok := item.(metav1.Object); ok {
			m.SetManagedFields(nil)
		}
		g.add(item)
		return nil
	})
	if err != nil {
		return fmt.Errorf("%s: %w", kind, err)
	}
	return nil
}
