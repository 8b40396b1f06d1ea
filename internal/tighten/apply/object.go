package apply

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fieldperm/fieldperm/internal/tighten"
)

// These are the kinds of RBAC objects.
const (
	roleKind               = "Role"
	clusterRoleKind        = "ClusterRole"
	roleBindingKind        = "RoleBinding"
	clusterRoleBindingKind = "ClusterRoleBinding"
)

// object is a role or a binding, exactly one of the two. Those of a namespace have the form of those of all namespaces.
type object struct {
	ref     tighten.Ref
	role    *rbacv1.ClusterRole
	binding *rbacv1.ClusterRoleBinding
}

// objectOf returns an object that a proposal adds.
func objectOf(named tighten.Named) *object {
	switch o := named.Object.(type) {
	case *rbacv1.ClusterRole:
		return &object{ref: named.Ref, role: o}
	case *rbacv1.Role:
		return &object{ref: named.Ref, role: clusterRole(o)}
	case *rbacv1.ClusterRoleBinding:
		return &object{ref: named.Ref, binding: o}
	case *rbacv1.RoleBinding:
		return &object{ref: named.Ref, binding: clusterRoleBinding(o)}
	}
	return nil
}

func clusterRole(r *rbacv1.Role) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{ObjectMeta: r.ObjectMeta, Rules: r.Rules}
}

func namespacedRole(r *rbacv1.ClusterRole) *rbacv1.Role {
	return &rbacv1.Role{ObjectMeta: r.ObjectMeta, Rules: r.Rules}
}

func clusterRoleBinding(b *rbacv1.RoleBinding) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{ObjectMeta: b.ObjectMeta, Subjects: b.Subjects, RoleRef: b.RoleRef}
}

func namespacedBinding(b *rbacv1.ClusterRoleBinding) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{ObjectMeta: b.ObjectMeta, Subjects: b.Subjects, RoleRef: b.RoleRef}
}

func (o *object) meta() *metav1.ObjectMeta {
	if o.role != nil {
		return &o.role.ObjectMeta
	}
	return &o.binding.ObjectMeta
}

// hash returns a hash of what the object grants, and to which subjects.
func (o *object) hash() string {
	if o.role != nil {
		return hash(list(o.role.Rules), o.role.AggregationRule)
	}
	return hash(list(o.binding.Subjects), o.binding.RoleRef)
}

// list makes no difference between no list and an empty one: the API server makes none.
func list[T any](items []T) []T {
	if len(items) == 0 {
		return nil
	}
	return items
}

func hash(parts ...any) string {
	// Rules and subjects are texts and lists of texts, which always have a form in JSON.
	text, _ := json.Marshal(parts)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// get returns an object, nil if there is none.
func (c *Client) get(ctx context.Context, ref tighten.Ref) (*object, error) {
	api, options := c.RBAC.RbacV1(), metav1.GetOptions{}
	out := &object{ref: ref}
	var err error
	switch ref.Kind {
	case roleKind:
		var r *rbacv1.Role
		if r, err = api.Roles(ref.Namespace).Get(ctx, ref.Name, options); err == nil {
			out.role = clusterRole(r)
		}
	case clusterRoleKind:
		out.role, err = api.ClusterRoles().Get(ctx, ref.Name, options)
	case roleBindingKind:
		var b *rbacv1.RoleBinding
		if b, err = api.RoleBindings(ref.Namespace).Get(ctx, ref.Name, options); err == nil {
			out.binding = clusterRoleBinding(b)
		}
	case clusterRoleBindingKind:
		out.binding, err = api.ClusterRoleBindings().Get(ctx, ref.Name, options)
	default:
		err = fmt.Errorf("kind %q is no kind of RBAC", ref.Kind)
	}
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", ref, err)
	}
	return out, nil
}

// create makes an object and returns its UID.
func (c *Client) create(ctx context.Context, o *object) (types.UID, error) {
	api, options := c.RBAC.RbacV1(), metav1.CreateOptions{DryRun: c.dryRun()}
	var made metav1.Object
	var err error
	switch o.ref.Kind {
	case roleKind:
		made, err = api.Roles(o.ref.Namespace).Create(ctx, namespacedRole(o.role), options)
	case clusterRoleKind:
		made, err = api.ClusterRoles().Create(ctx, o.role, options)
	case roleBindingKind:
		made, err = api.RoleBindings(o.ref.Namespace).Create(ctx, namespacedBinding(o.binding), options)
	default:
		made, err = api.ClusterRoleBindings().Create(ctx, o.binding, options)
	}
	if err != nil {
		return "", err
	}
	return made.GetUID(), nil
}

// update writes an object. It fails if the object has no longer the resource version.
func (c *Client) update(ctx context.Context, o *object) error {
	api, options := c.RBAC.RbacV1(), metav1.UpdateOptions{DryRun: c.dryRun()}
	var err error
	switch o.ref.Kind {
	case roleKind:
		_, err = api.Roles(o.ref.Namespace).Update(ctx, namespacedRole(o.role), options)
	case clusterRoleKind:
		_, err = api.ClusterRoles().Update(ctx, o.role, options)
	case roleBindingKind:
		_, err = api.RoleBindings(o.ref.Namespace).Update(ctx, namespacedBinding(o.binding), options)
	default:
		_, err = api.ClusterRoleBindings().Update(ctx, o.binding, options)
	}
	return err
}

// remove deletes an object if it is still the one with the UID. It reports whether there was one.
func (c *Client) remove(ctx context.Context, ref tighten.Ref, uid types.UID) (bool, error) {
	api, options := c.RBAC.RbacV1(), metav1.DeleteOptions{DryRun: c.dryRun(), Preconditions: &metav1.Preconditions{UID: &uid}}
	var err error
	switch ref.Kind {
	case roleKind:
		err = api.Roles(ref.Namespace).Delete(ctx, ref.Name, options)
	case clusterRoleKind:
		err = api.ClusterRoles().Delete(ctx, ref.Name, options)
	case roleBindingKind:
		err = api.RoleBindings(ref.Namespace).Delete(ctx, ref.Name, options)
	default:
		err = api.ClusterRoleBindings().Delete(ctx, ref.Name, options)
	}
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("%s: %w", ref, err)
	}
	return true, nil
}

func (c *Client) dryRun() []string {
	if c.DryRun {
		return []string{metav1.DryRunAll}
	}
	return nil
}
