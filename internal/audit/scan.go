package audit

import (
	"context"
)

// DefaultMany is how many subjects may hold a verb with powers before it is reported.
const DefaultMany = 10

// Scan is one audit of RBAC objects. It keeps only what is about fieldperm, and what the subjects of that hold besides, so that its memory
// does not grow with the number of other objects.
type Scan struct {
	Known *Known
	// Incomplete means that there may be kinds that Known does not have. Files means that files are audited, which may lack kinds, roles and
	// bindings.
	Incomplete, Files bool
	// Namespace limits the audit to findings in one namespace, and in ClusterRoles that a RoleBinding of it binds. "" is all.
	Namespace string
	// Many is how many subjects may hold a verb with powers.
	Many int
	// All means that roles of Kubernetes itself are reported like others.
	All bool
	// Report is called for each finding as soon as it is known. Findings about what subjects hold come last, in order.
	Report func(Finding)
	// Progress is called after each object, with the number of the pass and the kind. It may be nil.
	Progress func(pass int, kind string)

	// Read counts the objects, by kind.
	Read map[string]int

	roles    map[Ref]*keptRole
	bindings []keptBinding
	// selectors are those of aggregated ClusterRoles.
	selectors []selector
	// defaults are roles of Kubernetes with wildcards that pass barriers.
	defaults []*keptRole
	// later are findings in ClusterRoles, if the audit is about one namespace.
	later  map[Ref][]Finding
	unread map[string]bool
}

// Missing is what could not be read.
type Missing struct {
	// What is what the answer lacks.
	What string
	Err  error
}

// Run reads the objects and reports the findings. The error is that of the context: then only findings about single roles were reported.
// Lists that cannot be read are returned, and rules that would be wrong without them are left out.
func (s *Scan) Run(ctx context.Context, source Source) ([]Missing, error) {
	s.Read, s.roles, s.later, s.unread = map[string]int{}, map[Ref]*keptRole{}, map[Ref][]Finding{}, map[string]bool{}
	r := &run{Scan: s, source: source}
	for _, step := range []func(context.Context) error{r.first, r.second} {
		if err := step(ctx); err != nil {
			return r.missing, err
		}
	}
	s.finish()
	return r.missing, nil
}

// run is one run of a Scan.
type run struct {
	*Scan
	source  Source
	missing []Missing
}

// first reads all roles, then all bindings of those that were kept.
func (r *run) first(ctx context.Context) error {
	if err := r.eachRole(ctx, 1, r.role); err != nil {
		return err
	}
	return r.eachBinding(ctx, 1, func(b *Binding) {
		if r.roles[b.Role] != nil || len(r.later[b.Role]) > 0 {
			r.bindings = append(r.bindings, keep(b))
		}
	})
}

// second reads what the subjects with granular verbs hold besides: the bindings again, then the roles of those that are about these
// subjects. It reads nothing if no subject holds a granular verb.
func (r *run) second(ctx context.Context) error {
	wanted := r.subjectsOfGranular()
	if len(wanted) == 0 {
		return nil
	}
	refs := map[Ref]bool{}
	if err := r.eachBinding(ctx, 2, func(b *Binding) {
		if r.roles[b.Role] != nil || len(r.later[b.Role]) > 0 {
			return // The first pass has kept it.
		}
		if one := keep(b, wanted); len(one.subjects) > 0 {
			refs[one.role] = true
			r.bindings = append(r.bindings, one)
		}
	}); err != nil || len(refs) == 0 {
		return err
	}
	return r.eachRole(ctx, 2, func(role *Role) {
		if refs[role.Ref] && r.roles[role.Ref] == nil {
			r.roles[internedRef(role.Ref)] = keepRole(role)
		}
	})
}

func (r *run) eachRole(ctx context.Context, pass int, visit func(*Role)) error {
	for _, one := range []struct {
		kind string
		list func(context.Context, func(*Role) error) error
	}{{clusterRoleKind, r.source.ClusterRoles}, {roleKind, r.source.Roles}} {
		if err := list(ctx, r, pass, one.kind, one.list, visit); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) eachBinding(ctx context.Context, pass int, visit func(*Binding)) error {
	for _, one := range []struct {
		kind string
		list func(context.Context, func(*Binding) error) error
	}{{clusterRoleBindingKind, r.source.ClusterRoleBindings}, {roleBindingKind, r.source.RoleBindings}} {
		if err := list(ctx, r, pass, one.kind, one.list, visit); err != nil {
			return err
		}
	}
	return nil
}

// list reads one kind. The error is that of the context.
func list[T any](ctx context.Context, r *run, pass int, kind string, of func(context.Context, func(*T) error) error, visit func(*T)) error {
	if r.unread[kind] {
		return nil
	}
	err := of(ctx, func(object *T) error {
		if pass == 1 {
			r.Read[kind]++
		}
		visit(object)
		if r.Progress != nil {
			r.Progress(pass, kind)
		}
		return ctx.Err()
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		r.unread[kind] = true
		r.missing = append(r.missing, Missing{"findings about " + kind + "s, and about what subjects hold in total", err})
	}
	return nil
}

// complete reports whether all objects were read, so that what no object grants is not granted.
func (s *Scan) complete() bool { return len(s.unread) == 0 }
