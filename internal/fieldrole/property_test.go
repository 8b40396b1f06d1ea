package fieldrole

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/internal/fieldtree"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

// leaf is a scalar field of a kind, with two objects that differ in it.
type leaf struct {
	path          fieldpath.Pattern
	before, after map[string]any
}

// scalars are two values of each type.
var scalars = map[string][2]any{
	"string": {"a", "b"}, "integer": {int64(1), int64(2)}, "boolean": {false, true}, "number": {1.5, 2.5},
}

// leaves returns the scalar fields of a kind.
func leaves(k *fieldtree.Kind, root *schema.Node, limit int) []leaf {
	var out []leaf
	var visit func(p *fieldtree.Place, depth int)
	visit = func(p *fieldtree.Place, depth int) {
		if len(out) >= limit || depth > 9 || p.Repeats() != nil {
			return
		}
		if values, isScalar := scalars[p.Node().Type]; isScalar && p.Node().Role == schema.RoleNone {
			one := leaf{path: p.Path}
			var ok [2]bool
			one.before, ok[0] = build(k, root, p.Path, values[0])
			one.after, ok[1] = build(k, root, p.Path, values[1])
			if ok[0] && ok[1] {
				out = append(out, one)
			}
		}
		for _, c := range p.Node().Children {
			visit(p.Child(c), depth+1)
		}
	}
	visit(k.Place(), 0)
	return out
}

// build returns an object with one value. It returns false for the keys by which items are told apart.
func build(k *fieldtree.Kind, root *schema.Node, path fieldpath.Pattern, value any) (map[string]any, bool) {
	var at func(n *schema.Node, rest fieldpath.Pattern) (any, bool)
	at = func(n *schema.Node, rest fieldpath.Pattern) (any, bool) {
		if len(rest) == 0 {
			return value, true
		}
		e := rest[0]
		switch {
		case e.Any && n.List() != nil:
			below, ok := at(n.List().Item(), rest[1:])
			item, isObject := below.(map[string]any)
			for _, key := range n.List().Keys() {
				if !isObject || item[key.Name] != nil {
					return nil, false
				}
				item[key.Name] = "k"
				if strings.HasSuffix(key.Name, "ort") {
					item[key.Name] = int64(80)
				}
			}
			return []any{below}, ok && (len(n.List().Keys()) > 0 || n.List().Atomic())
		case n.Map() == nil:
			return nil, false
		case e.Any:
			below, ok := at(n.Map().Child("key"), rest[1:])
			return map[string]any{"key": below}, ok
		}
		below, ok := at(n.Map().Child(e.Name), rest[1:])
		return map[string]any{e.Name: below}, ok
	}
	out, ok := at(root, path)
	object, isObject := out.(map[string]any)
	if !ok || !isObject {
		return nil, false
	}
	object["apiVersion"], object["kind"] = k.GroupVersion().String(), k.Kind
	metadata, _ := object["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
		object["metadata"] = metadata
	}
	metadata["name"], metadata["namespace"] = "x", "shop"
	return object, true
}

// drawn are the kinds whose fields are drawn.
var drawn = []string{
	"apps/v1/Deployment", "v1/Pod", "v1/ConfigMap", "v1/Service", "batch/v1/CronJob", "networking.k8s.io/v1/Ingress", "v1/Namespace",
	"autoscaling/v2/HorizontalPodAutoscaler", "example.com/v1/Widget", "rbac.authorization.k8s.io/v1/RoleBinding",
}

// TestC1_DecisionsAgreeWithRoles: the decision on a change of a drawn field is Allow with its role, and Deny without any one verb. A change
// of another field is allowed only if the role says so, and only if a holder of update may make it or the role names a barrier.
func TestC1_DecisionsAgreeWithRoles(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	judged, allowedOthers := 0, 0
	for _, name := range drawn {
		k := target(t, name)
		tree, err := k.tree("")
		if err != nil {
			t.Fatal(err)
		}
		of, err := k.kinds.compiled.KindFor(k.GroupVersionKind, k.ref(k.GroupVersionKind, ""))
		if err != nil {
			t.Fatal(err)
		}
		all := leaves(tree, of.Root, 3000)
		random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		for i := range all[:min(len(all), 60)] {
			f := &all[i]
			rules, err := k.Fields(t.Context(), []string{f.path.String()}, Options{Wildcard: true})
			if err != nil {
				if !strings.Contains(err.Error(), "leave it out") && !strings.Contains(err.Error(), "name that field") {
					t.Errorf("%s %s: %v", name, f.path, err)
				}
				continue
			}
			if rules[0].Subresource != "" || len(rules[0].Fields[0].Without) > 0 {
				continue
			}
			judged++
			held := rules[0].Verbs
			if message := decide(t, k, f, held); message != "" {
				t.Errorf("%s %s: denied with %q: %s", name, f.path, held, message)
			}
			for j := range held {
				if less := slices.Delete(slices.Clone(held), j, j+1); allows(t, k, f, less) {
					t.Errorf("%s %s: %q is not needed of %q", name, f.path, held[j], held)
				}
			}
			for range 6 {
				other := &all[random.IntN(len(all))]
				if strings.HasPrefix(other.path.String(), ".status") || !allows(t, k, other, held) {
					continue
				}
				allowedOthers++
				if !tells(rules[0], other.path) {
					t.Errorf("%s: the role for %s allows %s and does not say so: %q, %+v", name, f.path, other.path, held, rules[0].Also)
				}
				if !rules[0].Fields[0].Barrier && !allows(t, k, other, []string{"update"}) {
					t.Errorf("%s: the role for %s allows %s, which update does not", name, f.path, other.path)
				}
			}
		}
	}
	if judged < 200 || allowedOthers < 20 {
		t.Errorf("only %d fields and %d others were judged", judged, allowedOthers)
	}
}

// tells reports whether a rule says that it covers a field.
func tells(r *Rule, path fieldpath.Pattern) bool {
	covers := func(p fieldpath.Pattern) bool { return len(p) <= len(path) && p.Meets(path[:len(p)]) }
	return slices.ContainsFunc(r.Fields, func(f Field) bool { return covers(f.place.Path) }) ||
		slices.ContainsFunc(r.Also, func(s Surplus) bool { return covers(s.Path) })
}

// allows reports whether the decision on a change is Allow.
func allows(t *testing.T, k *Target, f *leaf, held []string) bool {
	t.Helper()
	return decide(t, k, f, held) == ""
}

// decide decides on a change as both webhooks do. It returns the denial.
func decide(t *testing.T, k *Target, f *leaf, held []string) string {
	t.Helper()
	request, err := k.request(write{"", f.before, f.after})
	if err != nil {
		t.Fatal(err)
	}
	reviewer := k.reviewer(held)
	result, err := reviewer.Both(t.Context(), request)
	if err != nil {
		t.Fatal(fmt.Errorf("%s %s: code %d: %w", k.Kind, f.path, admission.Code(err), err))
	}
	if !result.Allowed && result.Message == "" {
		return "denied"
	}
	return result.Message
}
