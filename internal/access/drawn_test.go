package access

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/internal/fieldtree"
	"github.com/fieldperm/fieldperm/internal/rbac"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/test/schematest"
	"github.com/fieldperm/fieldperm/verbs"

	"sigs.k8s.io/yaml"
)

// sample is a write of one field.
type sample struct {
	verb, group, version, kind, resource, subresource string
	body                                              runtimeschema.GroupVersionKind
	namespace, name, path                             string
	// old is "" for a new object.
	old, new string
}

var scale = runtimeschema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"}

func samples() []sample {
	deployment := func(replicas int, image, label, applied string) string {
		return fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop","labels":{"example.com/x":%q},"annotations":{"kubectl.kubernetes.io/last-applied-configuration":%q}},`+
			`"spec":{"replicas":%d,"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"web","image":%q}]}}}}`, label, applied, replicas, image)
	}
	apps := sample{verb: "update", group: "apps", version: "v1", kind: "Deployment", resource: "deployments", namespace: "shop", name: "web", old: deployment(1, "a", "p", "1")}
	with := func(s sample, path, now string) sample { s.path, s.new = path, now; return s }
	patched := with(apps, ".spec.replicas", deployment(2, "a", "p", "1"))
	patched.verb = "patch"
	scaled := func(n int) string {
		return fmt.Sprintf(`{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"web","namespace":"shop"},"spec":{"replicas":%d}}`, n)
	}
	namespace := func(label string) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop","labels":{"example.com/x":%q}}}`, label)
	}
	account := `{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"web","namespace":"shop","labels":{"example.com/x":"y"}}}`
	node := func(taint string) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"Node","metadata":{"name":"web","labels":{"z":"z"}},"spec":{"taints":[{"key":%q,"effect":"NoSchedule"}]}}`, taint)
	}
	return []sample{
		with(apps, ".spec.replicas", deployment(2, "a", "p", "1")),
		patched,
		with(apps, `.spec.template.spec.containers[name="web"].image`, deployment(1, "b", "p", "1")),
		with(apps, `.metadata.labels["example.com/x"]`, deployment(1, "a", "q", "1")),
		with(apps, `.metadata.annotations["kubectl.kubernetes.io/last-applied-configuration"]`, deployment(1, "a", "p", "2")),
		{verb: "update", group: "apps", version: "v1", kind: "Deployment", resource: "deployments", subresource: "scale", body: scale, namespace: "shop", name: "web", path: ".spec.replicas", old: scaled(1), new: scaled(2)},
		{verb: "update", version: "v1", kind: "Namespace", resource: "namespaces", namespace: "shop", name: "shop", path: `.metadata.labels["example.com/x"]`, old: namespace("p"), new: namespace("q")},
		{verb: "create", version: "v1", kind: "ServiceAccount", resource: "serviceaccounts", namespace: "shop", name: "web", path: `.metadata.labels["example.com/x"]`, new: account},
		{verb: "update", version: "v1", kind: "Node", resource: "nodes", name: "web", path: ".spec.taints", old: node("p"), new: node("q")},
	}
}

// request returns the request of a user. The condition of drawn sets is about dry runs.
func (s *sample) request(u user.Info, dry bool) *admissionv1.AdmissionRequest {
	raw := func(text string) runtime.RawExtension {
		if text == "" {
			return runtime.RawExtension{}
		}
		return runtime.RawExtension{Raw: []byte(text)}
	}
	body := s.body
	if body.Kind == "" {
		body = runtimeschema.GroupVersionKind{Group: s.group, Version: s.version, Kind: s.kind}
	}
	out := &admissionv1.AdmissionRequest{
		UID: "1", Kind: metav1.GroupVersionKind(body), Resource: metav1.GroupVersionResource{Group: s.group, Version: s.version, Resource: s.resource}, SubResource: s.subresource,
		Namespace: s.namespace, Name: s.name, Operation: admissionv1.Update, UserInfo: authenticationv1.UserInfo{Username: u.GetName(), Groups: u.GetGroups()},
		OldObject: raw(s.old), Object: raw(s.new), DryRun: &dry,
	}
	if s.old == "" {
		out.Operation = admissionv1.Create
	}
	return out
}

// attributes is the question of the API server about the sample.
func (s *sample) attributes(u user.Info, verb string, admitted bool) authorizer.AttributesRecord {
	a := authorizer.AttributesRecord{User: u, Verb: verb, APIGroup: s.group, APIVersion: s.version, Resource: s.resource, Subresource: s.subresource, Namespace: s.namespace, Name: s.name, ResourceRequest: true}
	if s.verb == "create" && !admitted {
		a.Name = ""
	}
	return a
}

// asked asks RBAC in admission, verb by verb.
type asked struct {
	of     *rbac.Authorizer
	sample *sample
	user   user.Info
}

func (a asked) Authorize(ctx context.Context, verb string, _ bool) (fieldperm.AuthorizerDecision, error) {
	decision, _, err := a.of.Authorize(ctx, a.sample.attributes(a.user, verb, true))
	return fieldperm.AuthorizerDecision{Outcome: fieldperm.OutcomeOf(decision == authorizer.DecisionAllow)}, err
}

// allowed is the dumb answer: the API server lets the request of one user in by its verb or by the marker, and admission decides on the objects.
func allowed(t *testing.T, s *sample, compiled *schema.Schema, of *rbac.Authorizer, u user.Info, dry bool) bool {
	t.Helper()
	holds := func(verb string) bool {
		decision, _, err := of.Authorize(t.Context(), s.attributes(u, verb, false))
		must(t, err)
		return decision == authorizer.DecisionAllow
	}
	// Without get the marker lets nobody in to update or patch (A7).
	if !holds(s.verb) && !(holds(verbs.Marker) && (s.verb == "create" || holds("get"))) {
		return false
	}
	reviewer := &admission.Reviewer{
		Schema:     func() *schema.Schema { return compiled },
		Authorizer: func(*admissionv1.AdmissionRequest) fieldperm.Authorizer { return asked{of, s, u} },
	}
	result, err := reviewer.Review(t.Context(), admission.Granular, s.request(u, dry))
	must(t, err)
	return result.Allowed
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// place returns the place of a path in a kind that is written through a resource.
func place(t testing.TB, compiled *schema.Schema, body runtimeschema.GroupVersionKind, ref schema.ResourceRef, path string) *fieldtree.Place {
	t.Helper()
	kind, err := fieldtree.Of(compiled, body, ref)
	must(t, err)
	p, err := kind.Find(path)
	must(t, err)
	return p
}

func (s *sample) place(t *testing.T, compiled *schema.Schema) *fieldtree.Place {
	t.Helper()
	body := s.body
	if body.Kind == "" {
		body = runtimeschema.GroupVersionKind{Group: s.group, Version: s.version, Kind: s.kind}
	}
	return place(t, compiled, body, schema.ResourceRef{Group: s.group, Version: s.version, Resource: s.resource, Subresource: s.subresource}, s.path)
}

// pool are subjects of which some are the same user, or in a group of another.
var pool = []rbacv1.Subject{
	{Kind: "User", Name: "ann"},
	{Kind: "User", Name: "bob"},
	{Kind: "User", Name: user.Anonymous},
	{Kind: "User", Name: "system:serviceaccount:shop:bot"},
	{Kind: "ServiceAccount", Namespace: "shop", Name: "bot"},
	{Kind: "ServiceAccount", Name: "bot"},
	{Kind: "ServiceAccount", Namespace: "other", Name: "bot"},
	{Kind: "Group", Name: "ops"},
	{Kind: "Group", Name: user.AllAuthenticated},
	{Kind: "Group", Name: user.AllUnauthenticated},
	{Kind: "Group", Name: "system:serviceaccounts"},
	{Kind: "Group", Name: "system:serviceaccounts:shop"},
}

// drawn draws RBAC objects.
type drawn struct {
	*rand.Rand
	sample *sample
	verbs  []string
	out    rbac.Grants
}

func one[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

func (d *drawn) rules() []rbacv1.PolicyRule {
	name := d.sample.resource
	if d.sample.subresource != "" {
		name += "/" + d.sample.subresource
	}
	var out []rbacv1.PolicyRule
	for range 1 + d.IntN(2) {
		r := rbacv1.PolicyRule{
			APIGroups: []string{one(d.Rand, d.sample.group, d.sample.group, d.sample.group, "*", "batch")},
			Resources: []string{one(d.Rand, name, name, name, name, "*", "*/scale", "*/status", d.sample.resource, "deployments/*", "jobs")},
		}
		for range 1 + d.IntN(3) {
			r.Verbs = append(r.Verbs, one(d.Rand, d.verbs...))
		}
		if d.IntN(5) == 0 {
			r.ResourceNames = []string{one(d.Rand, d.sample.name, "another")}
		}
		out = append(out, r)
	}
	return out
}

func (d *drawn) bind(kind, namespace, name string) {
	var subjects []rbacv1.Subject
	for range 1 + d.IntN(2) {
		s := one(d.Rand, pool...)
		if s.Kind == "ServiceAccount" && s.Namespace == "" && namespace == "" {
			continue
		}
		subjects = append(subjects, s)
	}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}
	meta := metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("b%d", len(d.out.RoleBindings)+len(d.out.ClusterRoleBindings))}
	if namespace == "" {
		d.out.ClusterRoleBindings = append(d.out.ClusterRoleBindings, rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects})
		return
	}
	d.out.RoleBindings = append(d.out.RoleBindings, rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects})
}

func (d *drawn) grants() rbac.Grants {
	for i := range 3 {
		name := fmt.Sprintf("r%d", i)
		d.out.ClusterRoles = append(d.out.ClusterRoles, rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: d.rules()})
		for _, namespace := range []string{"shop", "other"} {
			d.out.Roles = append(d.out.Roles, rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Rules: d.rules()})
		}
	}
	for range 2 + d.IntN(4) {
		d.bind("ClusterRole", one(d.Rand, "", "", "shop", "other"), one(d.Rand, "r0", "r1", "r2", "missing"))
		d.bind("Role", one(d.Rand, "shop", "shop", "other"), one(d.Rand, "r0", "r1", "r2", "missing"))
	}
	return d.out
}

// sets draws UncoveredPermissionSets on verbs of the chain: always in force, or for dry runs.
func (d *drawn) sets(chain []string) string {
	var out strings.Builder
	for i := range d.IntN(3) {
		spec := map[string]any{
			"uncoveredPermissions": []string{one(d.Rand, chain...)},
			"resources":            []any{map[string]any{"apiGroups": []string{d.sample.group}, "resources": []string{d.sample.resource}}},
		}
		if d.sample.body.Kind == "" && d.sample.old != "" && d.IntN(2) == 0 {
			spec["matchConditions"] = []any{map[string]any{"name": "dry", "expression": "has(request.dryRun) && request.dryRun"}}
		}
		text, err := yaml.Marshal(map[string]any{"apiVersion": "fieldperm.dev/v1alpha1", "kind": "UncoveredPermissionSet", "metadata": map[string]any{"name": fmt.Sprintf("s%d", i)}, "spec": spec})
		if err == nil {
			out.WriteString(string(text) + "\n---\n")
		}
	}
	return out.String()
}

// chainOf returns the granular verbs of a place.
func chainOf(p *fieldtree.Place) []string {
	var out []string
	for _, chain := range p.Chains() {
		for _, l := range chain[1:] {
			if !slices.Contains(out, l.Verb) {
				out = append(out, l.Verb)
			}
		}
	}
	return out
}

// isBound reports whether a binding names a subject of the pool. The subjects that are the same user have one row.
func isBound(g *rbac.Grants, member *rbacv1.Subject) bool {
	is := func(s rbacv1.Subject) bool { return s == *member }
	return slices.ContainsFunc(g.RoleBindings, func(b rbacv1.RoleBinding) bool {
		return slices.ContainsFunc(b.Subjects, is) && (member.Kind != "ServiceAccount" || member.Namespace != "" || b.Namespace == "shop")
	}) || slices.ContainsFunc(g.ClusterRoleBindings, func(b rbacv1.ClusterRoleBinding) bool { return slices.ContainsFunc(b.Subjects, is) })
}

// TestC1C2_RowsAreTheDecisionsOnRequests compares the rows for drawn RBAC objects and barriers with the decisions of RBAC and of admission on a
// request of each subject that changes the field, verb by verb. A way without a condition is an Allow whatever the conditions of barriers are, a
// way with one is an Allow at times, and a subject without a row is never allowed.
func TestC1C2_RowsAreTheDecisionsOnRequests(t *testing.T) {
	plain := schematest.Traced(t)
	compiledOf, placeOf := map[string]*schema.Schema{"": plain}, map[string]*fieldtree.Place{}
	at := func(s *sample, sets string) *fieldtree.Place {
		key := s.resource + s.subresource + s.path + sets
		if placeOf[key] == nil {
			placeOf[key] = s.place(t, compiledOf[sets])
		}
		return placeOf[key]
	}
	counts := map[string]int{}
	for seed := range uint64(900) {
		d := &drawn{Rand: rand.New(rand.NewPCG(seed, 17))}
		all := samples()
		s := &all[seed%uint64(len(all))]
		d.sample = s
		chain := chainOf(at(s, ""))
		// A schema takes longer to compile than all decisions, so that there are few of each sample.
		sets := (&drawn{Rand: rand.New(rand.NewPCG(seed/uint64(len(all))%7, 5)), sample: s}).sets(chain)
		if compiledOf[sets] == nil {
			compiledOf[sets] = schematest.Traced(t, sets)
		}
		compiled := compiledOf[sets]
		d.verbs = append(slices.Clone(chain), s.verb, s.verb, "update", "patch", "granular", "granular", "granular", "get", "get", "get", "*", "Update", "granular:image(other)", "granular:label(other)", "get", "granular:creation", "granular:creation")
		grants := d.grants()
		of, err := rbac.NewStored(grants)
		must(t, err)
		cluster, err := New(grants, nil)
		must(t, err)
		w := &Write{Verb: s.verb, Group: s.group, Version: s.version, Resource: s.resource, Subresource: s.subresource, Namespace: s.namespace, Name: s.name, TakesMarker: true}
		if s.resource == "namespaces" {
			w.Namespace = ""
		}
		rows := cluster.WhoCan(w, at(s, sets))
		for _, member := range pool {
			subject, ok := subjectOf(&member, "shop")
			if !ok {
				t.Fatalf("%v is no subject", member)
			}
			if !isBound(&grants, &member) {
				continue
			}
			at := slices.IndexFunc(rows, func(r Row) bool { return r.Subject == subject })
			u := &user.DefaultInfo{Name: subject.User().GetName(), Groups: subject.User().GetGroups()}
			if u.Name == "" {
				u.Name = "a member of the group"
			}
			off, on := allowed(t, s, compiled, of, u, false), allowed(t, s, compiled, of, u, true)
			got, want := "no row", "no row"
			switch {
			case at >= 0 && rows[at].How() != Conditional:
				got = "always"
			case at >= 0:
				got = "at times"
			}
			switch {
			case off && on:
				want = "always"
			case off || on:
				want = "at times"
			}
			counts[want]++
			if got != want {
				t.Fatalf("seed %d: %s of %s %s by %v: %s, but requests are allowed %s\nrows %+v\ngrants %+v", seed, s.verb, s.resource, s.path, subject, got, want, rows, grants)
			}
			if at >= 0 {
				counts[string(rows[at].Ways[0].By)]++
			}
		}
	}
	t.Log(counts)
	for _, kind := range []string{"always", "at times", "no row", "generic", "granular", "wildcard"} {
		if counts[kind] < 30 {
			t.Errorf("%d decisions %q are too few to show anything", counts[kind], kind)
		}
	}
}
