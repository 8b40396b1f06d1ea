package plugin

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/fieldperm/fieldperm/internal/audit"
	"github.com/fieldperm/fieldperm/internal/rbac"
	"github.com/fieldperm/fieldperm/schema/load"
)

// source returns the RBAC objects of the files, or of the cluster.
func (o *auditing) source() (audit.Source, error) {
	if o.offline() {
		return o.fileSource()
	}
	config, err := o.config()
	if err != nil {
		return audit.Source{}, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return audit.Source{}, fmt.Errorf("cluster: %w: correct --kubeconfig and --context", err)
	}
	v := &rbac.Visitor{Client: client, Namespace: *o.cluster.Namespace, Total: func(kind string, n int64) {
		o.progress.total(kind+"s", n)
		o.progress.total(kind+"s"+again, n)
	}}
	return audit.Source{
		ClusterRoles: func(ctx context.Context, visit func(*audit.Role) error) error {
			return withListCure("clusterroles", v.ClusterRoles(ctx, func(r *rbacv1.ClusterRole) error { return visit(clusterRoleOf(r)) }))
		},
		Roles: func(ctx context.Context, visit func(*audit.Role) error) error {
			return withListCure("roles", v.Roles(ctx, func(r *rbacv1.Role) error { return visit(roleOf(r)) }))
		},
		ClusterRoleBindings: func(ctx context.Context, visit func(*audit.Binding) error) error {
			return withListCure("clusterrolebindings", v.ClusterRoleBindings(ctx, func(b *rbacv1.ClusterRoleBinding) error { return visit(clusterRoleBindingOf(b)) }))
		},
		RoleBindings: func(ctx context.Context, visit func(*audit.Binding) error) error {
			return withListCure("rolebindings", v.RoleBindings(ctx, func(b *rbacv1.RoleBinding) error { return visit(roleBindingOf(b)) }))
		},
	}, nil
}

// withListCure ends the error of a list with its cure.
func withListCure(resource string, err error) error {
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("%w: allow list on %s.%s", err, resource, rbacv1.GroupName)
	}
	return err
}

func refOf(kind string, o *metav1.ObjectMeta) audit.Ref {
	return audit.Ref{Kind: kind, Namespace: o.Namespace, Name: o.Name}
}

func clusterRoleOf(r *rbacv1.ClusterRole) *audit.Role {
	return &audit.Role{Ref: refOf("ClusterRole", &r.ObjectMeta), Labels: r.Labels, Aggregation: r.AggregationRule, Rules: r.Rules}
}

func roleOf(r *rbacv1.Role) *audit.Role {
	return &audit.Role{Ref: refOf("Role", &r.ObjectMeta), Labels: r.Labels, Rules: r.Rules}
}

func clusterRoleBindingOf(b *rbacv1.ClusterRoleBinding) *audit.Binding {
	return &audit.Binding{
		Ref: refOf("ClusterRoleBinding", &b.ObjectMeta), Labels: b.Labels, Role: audit.Ref{Kind: b.RoleRef.Kind, Name: b.RoleRef.Name}, Subjects: b.Subjects,
	}
}

func roleBindingOf(b *rbacv1.RoleBinding) *audit.Binding {
	out := &audit.Binding{
		Ref: refOf("RoleBinding", &b.ObjectMeta), Labels: b.Labels, Role: audit.Ref{Kind: b.RoleRef.Kind, Name: b.RoleRef.Name}, Subjects: b.Subjects,
	}
	if b.RoleRef.Kind == "Role" {
		out.Role.Namespace = b.Namespace
	}
	return out
}

// fileSource reads the files of --grants.
func (o *auditing) fileSource() (audit.Source, error) {
	var roles, clusterRoles []*audit.Role
	var bindings, clusterBindings []*audit.Binding
	var all rbac.Grants
	for _, path := range o.grants {
		files, err := o.grantFiles(path)
		if err != nil {
			return audit.Source{}, err
		}
		for _, file := range files {
			raw, err := o.read("--grants", file)
			if err != nil {
				return audit.Source{}, err
			}
			g, err := rbac.Decode(file, raw)
			if err != nil {
				return audit.Source{}, err
			}
			lines := audit.NewLines(raw)
			at := func(r audit.Ref) audit.Location { return audit.Location{File: file, Line: lines.Of(r)} }
			for i := range g.Roles {
				roles = append(roles, roleOf(&g.Roles[i]))
				roles[len(roles)-1].Location = at(roles[len(roles)-1].Ref)
			}
			for i := range g.ClusterRoles {
				clusterRoles = append(clusterRoles, clusterRoleOf(&g.ClusterRoles[i]))
				clusterRoles[len(clusterRoles)-1].Location = at(clusterRoles[len(clusterRoles)-1].Ref)
			}
			for i := range g.RoleBindings {
				bindings = append(bindings, roleBindingOf(&g.RoleBindings[i]))
				bindings[len(bindings)-1].Location = at(bindings[len(bindings)-1].Ref)
			}
			for i := range g.ClusterRoleBindings {
				clusterBindings = append(clusterBindings, clusterRoleBindingOf(&g.ClusterRoleBindings[i]))
				clusterBindings[len(clusterBindings)-1].Location = at(clusterBindings[len(clusterBindings)-1].Ref)
			}
			all.Append(g)
		}
	}
	if len(roles)+len(clusterRoles)+len(bindings)+len(clusterBindings) == 0 {
		// A pipeline with a wrong path would pass.
		return audit.Source{}, fmt.Errorf("--grants %q have no Role, ClusterRole or binding: name files that have some, or each directory that has such files", o.grants)
	}
	if err := all.Validate(); err != nil {
		return audit.Source{}, fmt.Errorf("--grants: %w", err)
	}
	rules, err := rbac.Aggregated(all.ClusterRoles)
	if err != nil {
		return audit.Source{}, fmt.Errorf("--grants: %w", err)
	}
	for _, r := range clusterRoles {
		r.Rules = rules[r.Name]
	}
	within := func(namespace string) bool { return *o.cluster.Namespace == "" || namespace == *o.cluster.Namespace }
	return audit.Source{
		ClusterRoles: visitAll(clusterRoles, func(*audit.Role) bool { return true }), Roles: visitAll(roles, func(r *audit.Role) bool { return within(r.Namespace) }),
		ClusterRoleBindings: visitAll(clusterBindings, func(*audit.Binding) bool { return true }), RoleBindings: visitAll(bindings, func(b *audit.Binding) bool { return within(b.Namespace) }),
	}, nil
}

// grantFiles returns the files of a path. "-" is standard input.
func (o *auditing) grantFiles(path string) ([]string, error) {
	if path == "-" {
		return []string{path}, nil
	}
	files, err := load.Paths(path)
	if err != nil {
		return nil, fmt.Errorf("--grants: %w: name a file or a directory that can be read", err)
	}
	return files, nil
}

func visitAll[T any](objects []*T, is func(*T) bool) func(context.Context, func(*T) error) error {
	return func(_ context.Context, visit func(*T) error) error {
		for _, o := range objects {
			if is(o) {
				if err := visit(o); err != nil {
					return err
				}
			}
		}
		return nil
	}
}
