package audit

import (
	"context"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/fieldperm/fieldperm/test/schematest"
)

// documents are the barriers of the tests: a set on the images of Deployments and one on one container, a schema on a custom resource.
var documents = strings.Join([]string{
	schematest.UncoveredSet("images", `{uncoveredPermissions: ["granular:image"], resources: [{apiGroups: [apps], resources: [deployments]}]}`),
	schematest.UncoveredSet("proxy", `{uncoveredPermissions: ["granular:image(proxy)"], resources: [{apiGroups: [apps], resources: [statefulsets]}]}`),
	schematest.UncoveredSet("tried", `{uncoveredPermissions: ["granular:image"], resources: [{apiGroups: [apps], resources: [daemonsets]}], validationActions: [Warn]}`),
	schematest.PermissionSchema("colours", "example.com", "Gadget", "{path: .spec.colour, verb: example.com/colour, excluded: true}"),
}, "---\n")

var definition = schematest.Definition{
	Kind: "Gadget", Subresources: "{status: {}}",
	Properties: "spec: {type: object, properties: {colour: {type: string}, replicas: {type: integer}}}, status: {type: object, properties: {n: {type: integer}}}",
}.String()

var known *Known

// shared returns what a schema with the built-in kinds, the definition and the documents says, made once.
func shared(t testing.TB) *Known {
	t.Helper()
	if known == nil {
		all := schematest.Documents(t, definition, documents)
		known = NewKnown(schematest.Traced(t, definition, documents), &all)
	}
	return known
}

// objectsOf reads RBAC objects: "kind/namespace/name" of short forms in YAML.
func objectsOf(t testing.TB, text string) Source {
	t.Helper()
	var in struct {
		Roles []struct {
			Name, Namespace string
			Labels          map[string]string
			Aggregates      map[string]string
			Rules           []rbacv1.PolicyRule
		}
		Bindings []struct {
			Name, Namespace, Role, ClusterRole string
			Labels                             map[string]string
			Subjects                           []string
		}
	}
	if err := yaml.UnmarshalStrict([]byte(text), &in); err != nil {
		t.Fatal(err)
	}
	var roles []*Role
	for _, r := range in.Roles {
		one := &Role{Ref: Ref{Kind: clusterRoleKind, Namespace: "", Name: r.Name}, Labels: r.Labels, Rules: r.Rules}
		if r.Namespace != "" {
			one.Ref = Ref{Kind: roleKind, Namespace: r.Namespace, Name: r.Name}
		}
		if r.Aggregates != nil {
			one.Aggregation = &rbacv1.AggregationRule{}
			one.Aggregation.ClusterRoleSelectors = append(one.Aggregation.ClusterRoleSelectors, labelSelector(r.Aggregates))
		}
		roles = append(roles, one)
	}
	var bindings []*Binding
	for _, b := range in.Bindings {
		one := &Binding{Ref: Ref{Kind: clusterRoleBindingKind, Namespace: "", Name: b.Name}, Labels: b.Labels, Role: Ref{Kind: clusterRoleKind, Namespace: "", Name: b.ClusterRole}}
		if b.Namespace != "" {
			one.Ref = Ref{Kind: roleBindingKind, Namespace: b.Namespace, Name: b.Name}
		}
		if b.Role != "" {
			one.Role = Ref{Kind: roleKind, Namespace: b.Namespace, Name: b.Role}
		}
		for _, s := range b.Subjects {
			kind, name, _ := strings.Cut(s, " ")
			namespace := ""
			if kind == rbacv1.ServiceAccountKind {
				namespace, name, _ = strings.Cut(name, "/")
			}
			one.Subjects = append(one.Subjects, rbacv1.Subject{Kind: kind, Namespace: namespace, Name: name})
		}
		bindings = append(bindings, one)
	}
	return sourceOf(roles, bindings)
}

func sourceOf(roles []*Role, bindings []*Binding) Source {
	ofRoles := func(kind string) func(context.Context, func(*Role) error) error {
		return func(_ context.Context, visit func(*Role) error) error {
			for _, r := range roles {
				if r.Kind == kind {
					if err := visit(r); err != nil {
						return err
					}
				}
			}
			return nil
		}
	}
	ofBindings := func(kind string) func(context.Context, func(*Binding) error) error {
		return func(_ context.Context, visit func(*Binding) error) error {
			for _, b := range bindings {
				if b.Kind == kind {
					if err := visit(b); err != nil {
						return err
					}
				}
			}
			return nil
		}
	}
	return Source{ofRoles(clusterRoleKind), ofRoles(roleKind), ofBindings(clusterRoleBindingKind), ofBindings(roleBindingKind)}
}

// run audits objects, and returns the findings as "level rule object path".
func auditText(t testing.TB, s *Scan, source Source) []string {
	t.Helper()
	var out []string
	if s.Known == nil {
		s.Known = shared(t)
	}
	if s.Many == 0 {
		s.Many = DefaultMany
	}
	s.Report = func(f Finding) {
		out = append(out, strings.TrimSpace(string(f.Level)+" "+f.Rule+" "+f.Object.String()+" "+f.Path))
		if f.Message == "" || f.Cure == "" {
			t.Errorf("%+v has no message or no cure", f)
		}
	}
	if missing, err := s.Run(t.Context(), source); err != nil || len(missing) > 0 {
		t.Fatal(err, missing)
	}
	return out
}
