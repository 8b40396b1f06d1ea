package anyvalue

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/internal/fieldtree"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/test/schematest"
	"github.com/fieldperm/fieldperm/verbs"
)

// widgets is a custom resource with barriers, a verb that stands apart, and a parameter. The set named always is a barrier for one engine; the
// other has a condition.
var widgets = schematest.Definition{
	Kind: "Widget",
	Verbs: `[
		{"path": ".spec", "verb": "specification"},
		{"path": ".spec.parts", "verb": "example.com/parts"},
		{"path": ".spec.parts[*].name", "parameterSource": "partName"},
		{"path": ".spec.parts[*]", "verb": "example.com/part", "parameterizedBy": "partName"},
		{"path": ".spec.parts[*].weight", "verb": "example.com/weight", "parameterizedBy": "partName"},
		{"path": ".spec.size", "verb": "example.com/size", "excludedWhen": "self > 9"},
		{"path": ".spec.colour", "verb": "example.com/colour", "excluded": true},
		{"path": ".spec.plain", "verb": "example.com/plain"},
		{"path": ".spec.point", "verb": "example.com/point"},
		{"path": ".spec.point.x", "verb": "example.com/x"},
		{"path": ".spec.point.z", "verb": "example.com/z", "excluded": true},
		{"path": ".spec.pairs", "verb": "example.com/pairs"},
		{"path": ".spec.pairs[*].left", "verb": "example.com/left"}
	]`,
	Properties: `spec: {type: object, properties: {
		size: {type: integer},
		colour: {type: string},
		plain: {type: string},
		other: {type: string},
		point: {type: object, x-kubernetes-map-type: atomic, properties: {x: {type: integer}, z: {type: integer}}},
		pairs: {type: array, items: {type: object, properties: {left: {type: integer}}}},
		parts: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, required: [name], properties: {name: {type: string}, weight: {type: integer}}}}}}`,
}.String() + "---\n" +
	schematest.UncoveredSet("always", "{uncoveredPermissions: ['granular:example.com/weight(engine)'], resources: [{apiGroups: [example.com], resources: [widgets]}]}") + "---\n" +
	schematest.UncoveredSet("perhaps", `{uncoveredPermissions: ['granular:example.com/plain'], resources: [{apiGroups: [example.com], resources: [widgets]}],
		matchConditions: [{name: x, expression: 'request.userInfo.username == "alice"'}]}`)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var (
	widgetRef  = schema.ResourceRef{Group: "example.com", Version: "v1", Resource: "widgets"}
	widgetKind = runtimeschema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
)

const widget = `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w","namespace":"shop","labels":{"a":"0"},"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"pod","uid":"k","blockOwnerDeletion":true}],"managedFields":[
	{"manager":"m","operation":"Update","apiVersion":"example.com/v1","time":"2026-01-05T09:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:other":{}}}}]},
	"spec":{"size":1,"colour":"red","plain":"p","other":"o","point":{"x":1,"z":1},"pairs":[{"left":1}],"parts":[{"name":"engine","weight":1},{"name":"wheel","weight":1}]}}`

// changesOf are fields with replacements of a text of the widget, each of which changes the field only.
var changesOf = []struct {
	field string
	// isCertain means that no condition is about the field: the answer is never depends.
	isCertain bool
	changes   [][2]string
}{
	{".spec.size", false, [][2]string{{`"size":1`, `"size":2`}, {`"size":1`, `"size":10`}}},
	{".spec.colour", true, [][2]string{{`"red"`, `"blue"`}, {`,"colour":"red"`, ``}}},
	{".spec.plain", false, [][2]string{{`"p"`, `"q"`}}},
	{".spec.other", true, [][2]string{{`"o"`, `"q"`}, {`,"other":"o"`, ``}}},
	{`.spec.parts[name="engine"].weight`, true, [][2]string{{`"engine","weight":1`, `"engine","weight":2`}}},
	{`.spec.parts[name="wheel"].weight`, true, [][2]string{{`"wheel","weight":1`, `"wheel","weight":2`}}},
	{`.spec.parts[name="wheel"]`, false, [][2]string{{`"wheel","weight":1`, `"wheel","weight":2`}, {`,{"name":"wheel","weight":1}`, ``}}},
	{`.spec.parts`, false, [][2]string{{`"wheel","weight":1`, `"wheel","weight":2`}, {`"engine","weight":1`, `"engine","weight":2`}, {`{"name":"engine","weight":1},`, ``}, {`[{"name"`, `[{"name":"new"},{"name"`}}},
	{`.spec`, false, [][2]string{{`"o"`, `"q"`}, {`"red"`, `"blue"`}, {`"size":1`, `"size":11`}, {`"size":1`, `"size":2`}, {`"engine","weight":1`, `"engine","weight":2`}, {`"p"`, `"q"`}}},
	{`.metadata.ownerReferences[uid="k"].blockOwnerDeletion`, true, [][2]string{{`"blockOwnerDeletion":true`, `"blockOwnerDeletion":false`}, {`,"blockOwnerDeletion":true`, ``}}},
	{`.spec.point.x`, true, [][2]string{{`"x":1`, `"x":2`}, {`"x":1,`, ``}}},
	{`.spec.point.z`, true, [][2]string{{`"z":1`, `"z":2`}}},
	{`.spec.pairs[0].left`, true, [][2]string{{`"left":1`, `"left":2`}}},
	{`.metadata.labels["a"]`, true, [][2]string{{`"a":"0"`, `"a":"1"`}, {`"a":"0"`, ``}}},
	{`.metadata`, false, [][2]string{{`"a":"0"`, `"a":"1"`}, {`"manager":"m"`, `"manager":"n"`}}},
	{`.metadata.managedFields`, false, [][2]string{{`"manager":"m"`, `"manager":"n"`}, {`"f:other"`, `"f:colour"`}}},
	{``, false, [][2]string{{`"a":"0"`, `"a":"1"`}, {`"red"`, `"blue"`}, {`"o"`, `"q"`}, {`"size":1`, `"size":11`}}},
}

var drawnVerbs = []string{
	"update", "patch", "granular", "granular:*", "granular:specification", "granular:metadata", "granular:label", "granular:label(a)", "granular:example.com/size", "granular:example.com/colour",
	"granular:ownerReferences", "granular:deletionBlock", "granular:example.com/point", "granular:example.com/x", "granular:example.com/z", "granular:example.com/pairs", "granular:example.com/left",
	"granular:example.com/plain", "granular:example.com/parts", "granular:example.com/part", "granular:example.com/part(wheel)", "granular:example.com/weight", "granular:example.com/weight(engine)", "granular:example.com/weight(wheel)",
}

// TestC2_YesHoldsForEachValueAndNoForNone compares answers with the decisions of the core on values, with the barrier under a condition in force and
// not in force.
func TestC2_YesHoldsForEachValueAndNoForNone(t *testing.T) {
	s := schematest.Traced(t, widgets)
	tree, err := fieldtree.Of(s, widgetKind, widgetRef)
	must(t, err)
	kind, err := s.KindFor(widgetKind, widgetRef)
	must(t, err)
	random := rand.New(rand.NewPCG(3617, 1))
	seen := map[Outcome]int{}
	for range 400 {
		held := holding()
		for range 1 + random.IntN(5) {
			held.verbs[drawnVerbs[random.IntN(len(drawnVerbs))]] = true
		}
		if random.IntN(2) == 0 {
			held.verbs["granular"] = true
		}
		if random.IntN(4) > 0 {
			held.verbs["get"] = true
		}
		verb, takesMarker := []string{"update", "patch"}[random.IntN(2)], random.IntN(4) > 0
		for _, c := range changesOf {
			p, err := tree.Find(c.field)
			must(t, err)
			j := &Judge{Holdings: &Holdings{Authorizer: held}, Verb: verb, TakesMarker: takesMarker}
			answer, err := j.Field(t.Context(), p)
			must(t, err)
			seen[answer.Outcome]++
			is := map[bool]bool{}
			for _, change := range c.changes {
				for _, inForce := range []bool{false, true} {
					allowed := decided(t, kind, held, verb, takesMarker, change, inForce)
					is[allowed] = true
					if answer.Outcome == Yes && !allowed || answer.Outcome == No && allowed {
						t.Errorf("%v, %s, marker %t: %s: %s, and %q is allowed: %t", keysOf(held.verbs), verb, takesMarker, c.field, answer.Sentence("widgets"), change, allowed)
					}
				}
			}
			if c.isCertain && answer.Outcome == Depends {
				t.Errorf("%v, %s: %s: %s, and no condition is about it", keysOf(held.verbs), verb, c.field, answer.Sentence("widgets"))
			}
			if answer.Outcome == Depends && len(answer.Why) == 0 {
				t.Errorf("%v, %s: %s: depends on nothing", keysOf(held.verbs), verb, c.field)
			}
			if answer.Outcome == Yes && answer.By == "" {
				t.Errorf("%v, %s: %s: yes by no verb", keysOf(held.verbs), verb, c.field)
			}
		}
	}
	for _, o := range []Outcome{Yes, No, Depends} {
		if seen[o] < 100 {
			t.Errorf("%v: %d answers only", o, seen[o])
		}
	}
}

func keysOf(of map[string]bool) []string {
	var out []string
	for v := range of {
		out = append(out, v)
	}
	slices.Sort(out)
	return out
}

// decided is the decision of the API server and of the core.
func decided(t *testing.T, kind *schema.Kind, held *holder, verb string, takesMarker bool, change [2]string, inForce bool) bool {
	t.Helper()
	if !held.verbs[verb] && !(takesMarker && held.verbs["granular"] && held.verbs["get"]) {
		return false
	}
	barriers := schema.VerbSet{}
	for _, text := range []string{"granular:example.com/weight(engine)", "granular:example.com/plain"} {
		v, err := verbs.Parse(text)
		must(t, err)
		if inForce || strings.Contains(text, "engine") {
			barriers.Add(v, schema.Extent{})
		}
	}
	changed := strings.Replace(widget, change[0], change[1], 1)
	if changed == widget {
		t.Fatalf("%q changes nothing", change)
	}
	requirements, err := fieldperm.Diff(t.Context(), []byte(widget), []byte(changed), kind, barriers)
	must(t, err)
	out, err := fieldperm.Decide(context.Background(), held, fieldperm.Review{Generic: []string{"update", "patch"}, Requirements: requirements, GenericOnly: !takesMarker}, fieldperm.Limits{})
	must(t, err)
	return out.Allowed
}

// TestA5_TheAPIServerHasTheLastWord: a user with the marker is not let in while fieldperm is not installed or does not prove its enforcement.
func TestA5_TheAPIServerHasTheLastWord(t *testing.T) {
	s := schematest.Traced(t, widgets)
	tree, err := fieldtree.Of(s, widgetKind, widgetRef)
	must(t, err)
	p, err := tree.Find(".spec.other")
	must(t, err)
	for _, c := range []struct {
		verbs string
		in    bool
		want  string
	}{
		{"get granular granular:specification", true, "yes"},
		{"granular granular:specification", true, "yes"},
		{"granular granular:specification", false, "no - needs get on widgets"},
		{"get granular granular:specification", false, "no - holds granular, and the API server does not let the user in: fieldperm is not installed, or does not prove that it is enforced: see kubectl fieldperm version, or grant patch"},
		{"patch", true, "yes"},
		{"", false, "no - needs patch, or granular and one of granular:specification, granular:* on widgets"},
		{"update", false, "no - needs patch or granular on widgets"},
	} {
		j := &Judge{Holdings: &Holdings{Authorizer: holding(strings.Fields(c.verbs)...)}, Verb: "patch", TakesMarker: true, LetIn: func(context.Context) (bool, error) { return c.in, nil }}
		answer, err := j.Field(t.Context(), p)
		if err != nil || !strings.HasPrefix(answer.Sentence("widgets")+" on widgets", c.want) {
			t.Errorf("%q: %s, %v, want %s", c.verbs, answer.Sentence("widgets"), err, c.want)
		}
	}
	boom := fmt.Errorf("boom")
	j := &Judge{Holdings: &Holdings{Authorizer: holding("granular")}, Verb: "patch", TakesMarker: true, LetIn: func(context.Context) (bool, error) { return false, boom }}
	if _, err := j.Field(t.Context(), p); err == nil {
		t.Error("an API server that does not answer is a no")
	}
}

// TestA7_TheMarkerAndAConditionNeedGet: without it nobody is let in, and the generic permission needs none.
func TestA7_TheMarkerAndAConditionNeedGet(t *testing.T) {
	tree, err := fieldtree.Of(schematest.Traced(t, widgets), widgetKind, widgetRef)
	must(t, err)
	for _, c := range []struct {
		verbs, condition, field, want string
	}{
		{"granular granular:*", "", ".spec.other", "no - needs get on widgets"},
		{"granular granular:*", "", ".spec.colour", "no - needs get, and granular:example.com/colour on widgets"},
		{"granular granular:* get", "", ".spec.other", "yes"},
		{"granular granular:* update", "", ".spec.other", "no - needs get on widgets"},
		{"patch", "", ".spec.other", "yes"},
		{"", "object.spec.size == 1", ".spec.other", "no - needs get on widgets"},
		{"get", "object.spec.size == 1", ".spec.other", "depends"},
		{"", "true", ".spec.other", "yes"},
		{"", "", ".spec.other", "no - needs patch, or granular"},
	} {
		p, err := tree.Find(c.field)
		must(t, err)
		j := &Judge{Verb: "patch", TakesMarker: true, Holdings: &Holdings{Authorizer: holding(strings.Fields(c.verbs)...), Conditions: func(_ context.Context, verb string) []Condition {
			if c.condition == "" || verb != "patch" {
				return nil
			}
			return []Condition{{Policy: "p", Effect: "Allow", Text: c.condition}}
		}}}
		if answer, err := j.Field(t.Context(), p); err != nil || !strings.HasPrefix(answer.Sentence("widgets"), c.want) {
			t.Errorf("%q, condition %q, %s: %s, %v, want %s", c.verbs, c.condition, c.field, answer.Sentence("widgets"), err, c.want)
		}
	}
}

// TestD8_ABarrierForAnotherSubresourceHoldsForOwners and so nothing above it is certain.
func TestD8_ABarrierForAnotherSubresourceHoldsForOwners(t *testing.T) {
	s := schematest.Traced(t, widgets)
	tree, err := fieldtree.Of(s, widgetKind, widgetRef)
	must(t, err)
	size, err := verbs.Parse("granular:example.com/parts")
	must(t, err)
	elsewhere := []schema.SetVerb{{Source: "UncoveredPermissionSet x", Verb: size}}
	for _, c := range []struct {
		verb, field string
		want        Outcome
	}{{"update", ".spec.parts", Depends}, {"update", `.spec.parts[name="wheel"].weight`, Depends}, {"update", ".spec.other", Yes}, {"update", ".spec", Depends}, {"granular:example.com/parts", `.spec.parts[name="wheel"].weight`, Yes}} {
		p, err := tree.Find(c.field)
		must(t, err)
		j := &Judge{Holdings: &Holdings{Authorizer: holding("update", c.verb)}, Verb: "update", TakesMarker: true, Elsewhere: elsewhere}
		if answer, err := j.Field(t.Context(), p); err != nil || answer.Outcome != c.want {
			t.Errorf("%s: %s: %s, %v, want %v", c.verb, c.field, answer.Sentence("widgets"), err, c.want)
		}
	}
	j := &Judge{Elsewhere: elsewhere}
	if chain := []string{"granular:*", "granular:specification", "granular:example.com/parts"}; j.OfOwners(chain, "update") == "" || j.OfOwners(chain, chain[1]) == "" || j.OfOwners(chain, chain[2]) != "" {
		t.Error("the verb of the barrier itself covers the owners, and no other does")
	}
}

// TestW4_ADenyOnTheFloorIsNoCertainNo: it does not reach holders of the generic permission.
func TestW4_ADenyOnTheFloorIsNoCertainNo(t *testing.T) {
	tree, err := fieldtree.Of(schematest.Traced(t, widgets), widgetKind, widgetRef)
	must(t, err)
	p, err := tree.Find(".spec.other")
	must(t, err)
	for _, c := range []struct {
		onFloor, in bool
		want        Outcome
	}{{true, true, Depends}, {true, false, No}, {false, true, No}} {
		j := &Judge{Verb: "update", TakesMarker: true, OnFloor: c.onFloor, LetIn: func(context.Context) (bool, error) { return c.in, nil }, Holdings: &Holdings{
			Authorizer: holding("update"), Conditions: func(context.Context, string) []Condition {
				return []Condition{{Policy: "d", Effect: "Deny", Text: "true"}}
			},
		}}
		if answer, err := j.Field(t.Context(), p); err != nil || answer.Outcome != c.want {
			t.Errorf("%+v: %s, %v", c, answer.Sentence("widgets"), err)
		}
	}
}

// TestC2_AnAnswerSaysThatThereAreMoreDifferences: a reader takes the differences that an answer names for all of them.
func TestC2_AnAnswerSaysThatThereAreMoreDifferences(t *testing.T) {
	tree, err := fieldtree.Of(schematest.Traced(t, widgets), widgetKind, widgetRef)
	must(t, err)
	spec, err := tree.Find(".spec")
	must(t, err)
	held := holding()
	held.verbs["granular"], held.verbs["get"], held.verbs["granular:specification"] = true, true, true
	for most, isCut := range map[int]bool{1: true, 0: true, 64: false} {
		j := &Judge{Holdings: &Holdings{Authorizer: held}, Verb: "patch", TakesMarker: true, Differences: most}
		answer, err := j.Field(t.Context(), spec)
		must(t, err)
		why := strings.Join(answer.Why, "\n")
		if answer.Outcome != Depends || strings.Contains(why, "there are more differences than are named here") != isCut {
			t.Errorf("%d differences: %q", most, why)
		}
		for _, barrier := range []string{"colour: needs granular:example.com/colour", "point.z: needs granular:example.com/z"} {
			if !isCut && !strings.Contains(why, "below, at .spec."+barrier) {
				t.Errorf("%d differences: %q is not in %q", most, barrier, why)
			}
		}
	}
}
