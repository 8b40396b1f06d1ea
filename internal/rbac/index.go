package rbac

import (
	"fmt"
	"strconv"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/client-go/tools/cache"
)

// index holds the RBAC objects to decide by: roles by name, and bindings by subject. A check therefore costs only as much as the
// user's own bindings. The zero index cannot be used; a nil index has no objects.
type index struct {
	roles, clusterRoles, roleBindings, clusterRoleBindings cache.Indexer
}

// The names of the indexes of bindings. A ServiceAccount is indexed as a user, by its user name.
const (
	byUser  = "user"
	byGroup = "group"
)

func newIndex() *index {
	return &index{
		roles:               cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{}),
		clusterRoles:        cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{}),
		roleBindings:        cache.NewIndexer(cache.MetaNamespaceKeyFunc, subjectIndexers()),
		clusterRoleBindings: cache.NewIndexer(cache.MetaNamespaceKeyFunc, subjectIndexers()),
	}
}

func subjectIndexers() cache.Indexers {
	return cache.Indexers{
		byUser: func(object any) ([]string, error) {
			b := bindingOf(object)
			var keys []string
			for i := range b.subjects {
				s := &b.subjects[i]
				switch s.Kind {
				case rbacv1.UserKind:
					keys = append(keys, subjectKey(b.namespace, s.Name))
				case rbacv1.ServiceAccountKind:
					if home := accountNamespace(s, b.namespace); home != "" {
						keys = append(keys, subjectKey(b.namespace, serviceaccount.MakeUsername(home, s.Name)))
					}
				}
			}
			return keys, nil
		},
		byGroup: func(object any) ([]string, error) {
			b := bindingOf(object)
			var keys []string
			for i := range b.subjects {
				if s := &b.subjects[i]; s.Kind == rbacv1.GroupKind {
					keys = append(keys, subjectKey(b.namespace, s.Name))
				}
			}
			return keys, nil
		},
	}
}

// subjectKey is the index key of bindings in a namespace, "" for ClusterRoleBindings. Two subjects may have the same key, because a
// request may have any text as its namespace. search therefore compares with the binding again.
func subjectKey(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "\x00" + name
}

// binding is the common part of a RoleBinding and a ClusterRoleBinding. It shares the memory of the object.
type binding struct {
	kind      string
	name      string
	namespace string // empty for a ClusterRoleBinding
	role      *rbacv1.RoleRef
	subjects  []rbacv1.Subject
}

// bindingOf returns the binding in an object. For any other type it returns a binding without subjects, which grants nothing.
func bindingOf(object any) binding {
	switch b := object.(type) {
	case *rbacv1.ClusterRoleBinding:
		return binding{kind: "ClusterRoleBinding", name: b.Name, role: &b.RoleRef, subjects: b.Subjects}
	case *rbacv1.RoleBinding:
		return binding{kind: "RoleBinding", name: b.Name, namespace: b.Namespace, role: &b.RoleRef, subjects: b.Subjects}
	}
	return binding{}
}

// title returns the name of the binding as in the reasons of an API server: name/namespace, not namespace/name.
func (b *binding) title() string { return string(b.appendTitle(nil)) }

func (b *binding) appendTitle(out []byte) []byte {
	name := b.name
	if b.namespace != "" {
		name += "/" + b.namespace
	}
	return strconv.AppendQuote(append(append(out, b.kind...), ' '), name)
}

// rules returns the stored rules of the binding's role. If the role does not exist, the error has the words of the API server.
func (x *index) rules(b *binding) ([]rbacv1.PolicyRule, error) {
	switch b.role.Kind {
	case "ClusterRole":
		object, _, err := x.clusterRoles.GetByKey(b.role.Name)
		if role, ok := object.(*rbacv1.ClusterRole); ok {
			return role.Rules, err
		}
		return nil, apierrors.NewNotFound(rbacv1.Resource("clusterrole"), b.role.Name)
	case "Role":
		object, _, err := x.roles.GetByKey(b.namespace + "/" + b.role.Name)
		if role, ok := object.(*rbacv1.Role); ok {
			return role.Rules, err
		}
		return nil, apierrors.NewNotFound(rbacv1.Resource("role"), b.role.Name)
	}
	return nil, fmt.Errorf("unsupported role reference kind: %q", b.role.Kind)
}
