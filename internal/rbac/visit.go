package rbac

import (
	"context"
	"errors"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/pager"
)

// VisitPageSize bounds the objects in one response of the API server, and so the memory of a Visitor.
const VisitPageSize = 500

// Visitor lists RBAC objects page by page and keeps none.
type Visitor struct {
	Client kubernetes.Interface
	// Namespace of the Roles and RoleBindings, "" for all.
	Namespace string
	// Total is called with the number of objects of a kind, as far as the API server says it, while a page is read. It may be nil. It is
	// called from other goroutines.
	Total func(kind string, n int64)
}

// ClusterRoles visits the ClusterRoles of the cluster.
func (v *Visitor) ClusterRoles(ctx context.Context, visit func(*rbacv1.ClusterRole) error) error {
	return each(ctx, v, "ClusterRole", visit, func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return v.Client.RbacV1().ClusterRoles().List(ctx, options)
	})
}

// Roles visits the Roles of the namespace.
func (v *Visitor) Roles(ctx context.Context, visit func(*rbacv1.Role) error) error {
	return each(ctx, v, "Role", visit, func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return v.Client.RbacV1().Roles(v.Namespace).List(ctx, options)
	})
}

// ClusterRoleBindings visits the ClusterRoleBindings of the cluster.
func (v *Visitor) ClusterRoleBindings(ctx context.Context, visit func(*rbacv1.ClusterRoleBinding) error) error {
	return each(ctx, v, "ClusterRoleBinding", visit, func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return v.Client.RbacV1().ClusterRoleBindings().List(ctx, options)
	})
}

// RoleBindings visits the RoleBindings of the namespace.
func (v *Visitor) RoleBindings(ctx context.Context, visit func(*rbacv1.RoleBinding) error) error {
	return each(ctx, v, "RoleBinding", visit, func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return v.Client.RbacV1().RoleBindings(v.Namespace).List(ctx, options)
	})
}

// each visits the items of a list. If a list expires, it ends with the error, because to begin anew would visit objects twice.
func each[T any](ctx context.Context, v *Visitor, kind string, visit func(*T) error, list pager.ListPageFunc) error {
	fetched := int64(0)
	p := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		out, err := list(ctx, options)
		if l, ok := out.(metav1.ListInterface); err == nil && ok && v.Total != nil {
			fetched += int64(meta.LenList(out))
			if n := l.GetRemainingItemCount(); n != nil {
				v.Total(kind, fetched+*n)
			} else if l.GetContinue() == "" {
				v.Total(kind, fetched)
			}
		}
		return out, err
	})
	p.PageSize, p.PageBufferSize, p.FullListIfExpired = VisitPageSize, 1, false
	err := p.EachListItem(ctx, metav1.ListOptions{}, func(item runtime.Object) error {
		object, ok := item.(any).(*T)
		if !ok {
			return errors.New(kind + " is of another type")
		}
		return visit(object)
	})
	if apierrors.IsResourceExpired(err) {
		return errors.New("the list expired while it was read: try again")
	}
	return err
}
