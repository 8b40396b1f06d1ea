package fieldrole

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/internal/fieldtree"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

// leaf is a scalar field of a kind, with two objects that differ in it.
type leaf struct {
	path fieldpath.Pattern
	// text is the path with the keys that the objects have.
	text          string
	before, after map[string]any
}

// scalars are two values of each type.
var scalars = map[string][2]any{
	"string": {"a", "b"}, "integer": {int64(1), int64(2)}, "boolean": {false, true}, "number": {1.5, 2.5},
}

// leaves returns the scalar fields of a kind, in items and values with a key.
func leaves(k *fieldtree.Kind, root *schema.Node, key string, limit int) []leaf {
	var out []leaf
	var visit func(p *fieldtree.Place, depth int)
	visit = func(p *fieldtree.Place, depth int) {
		if len(out) >= limit || depth > 9 || p.Repeats() != nil {
			return
		}
		if values, isScalar := scalars[p.Node().Type]; isScalar && p.Node().Role == schema.RoleNone {
			one := leaf{path: p.Path}
			var ok [2]bool
			one.before, one.text, ok[0] = build(k, root, p.Path, key, values[0])
			one.after, _, ok[1] = build(k, root, p.Path, key, values[1])
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

// build returns an object with one value, and the path of the value. It returns false for the keys by which items are told apart.
func build(k *fieldtree.Kind, root *schema.Node, path fieldpath.Pattern, key string, value any) (map[string]any, string, bool) {
	text := ""
	var at func(n *schema.Node, rest fieldpath.Pattern) (any, bool)
	at = func(n *schema.Node, rest fieldpath.Pattern) (any, bool) {
		if len(rest) == 0 {
			return value, true
		}
		e := rest[0]
		switch {
		case e.Any && n.List() != nil:
			keys := map[string]any{}
			var texts []string
			for _, k := range n.List().Keys() {
				keys[k.Name] = key
				texts = append(texts, k.Name+"="+strconv.Quote(key))
				if strings.HasSuffix(k.Name, "ort") {
					keys[k.Name] = int64(80 + len(key))
					texts[len(texts)-1] = fmt.Sprintf("%s=%d", k.Name, keys[k.Name])
				}
			}
			if text += "[*]"; len(texts) > 0 {
				text = strings.TrimSuffix(text, "*]") + strings.Join(texts, ",") + "]"
			}
			below, ok := at(n.List().Item(), rest[1:])
			item, isObject := below.(map[string]any)
			for name, key := range keys {
				if !isObject || item[name] != nil {
					return nil, false
				}
				item[name] = key
			}
			return []any{below}, ok && (len(keys) > 0 || n.List().Atomic())
		case n.Map() == nil:
			return nil, false
		case e.Any:
			text += fieldpath.Element{Name: key}.String()
			below, ok := at(n.Map().Child(key), rest[1:])
			return map[string]any{key: below}, ok
		}
		text += e.String()
		below, ok := at(n.Map().Child(e.Name), rest[1:])
		return map[string]any{e.Name: below}, ok
	}
	out, ok := at(root, path)
	object, isObject := out.(map[string]any)
	if !ok || !isObject {
		return nil, "", false
	}
	object["apiVersion"], object["kind"] = k.GroupVersion().String(), k.Kind
	metadata, _ := object["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
		object["metadata"] = metadata
	}
	metadata["name"], metadata["namespace"] = "x", "shop"
	return object, text, true
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
	judged, allowedOthers, most := 0, 0, 0
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
		all := append(leaves(tree, of.Root, "k", 3000), leaves(tree, of.Root, "key", 3000)...)
		random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		for i := range all[:min(len(all), 60)] {
			f := &all[i]
			asked := f.text
			if i%3 == 0 {
				asked = f.path.String()
			}
			rules, err := k.Fields(t.Context(), []string{asked}, Options{Wildcard: true})
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
			comments := strings.Join(rules[0].Comments(), "\n")
			for _, also := range rules[0].Also {
				if !strings.Contains(comments, also.Text) {
					t.Errorf("%s %s: the comments do not have %q", name, asked, also.Text)
				}
			}
			most = max(most, len(rules[0].Also))
			held := rules[0].Verbs
			if message := decide(t, k, f, held); message != "" {
				t.Errorf("%s %s: denied with %q: %s", name, f.path, held, message)
			}
			for j := range held {
				if less := slices.Delete(slices.Clone(held), j, j+1); allows(t, k, f, less) {
					t.Errorf("%s %s: %q is not needed of %q", name, f.path, held[j], held)
				}
			}
			// Others are the same field of another item or key, and any.
			var others []*leaf
			for j := range all {
				if slices.Equal(all[j].path, f.path) && all[j].text != f.text {
					others = append(others, &all[j])
				}
			}
			for range 6 {
				others = append(others, &all[random.IntN(len(all))])
			}
			for _, other := range others {
				if strings.HasPrefix(other.path.String(), ".status") || !allows(t, k, other, held) {
					continue
				}
				allowedOthers++
				if !tells(t, tree, rules[0], other) {
					t.Errorf("%s: the role for %s allows %s and does not say so: %q, %+v", name, asked, other.text, held, rules[0].alsoTexts())
				}
				if !rules[0].Fields[0].Barrier && !allows(t, k, other, []string{"update"}) {
					t.Errorf("%s: the role for %s allows %s, which update does not", name, f.path, other.path)
				}
			}
		}
	}
	if most < 9 {
		t.Errorf("no verb covers many places: %d", most)
	}
	if judged < 200 || allowedOthers < 20 {
		t.Errorf("only %d fields and %d others were judged", judged, allowedOthers)
	}
}

// tells reports whether a rule says that it covers a field.
func tells(t *testing.T, tree *fieldtree.Kind, r *Rule, other *leaf) bool {
	t.Helper()
	place, err := tree.Find(other.text)
	if err != nil {
		t.Fatal(err)
	}
	at := askedFor(&Field{place: place})
	return slices.ContainsFunc(r.Fields, func(f Field) bool { return askedFor(&f).contains(at) }) ||
		slices.ContainsFunc(r.Also, func(s Surplus) bool { return s.region.contains(at) })
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
