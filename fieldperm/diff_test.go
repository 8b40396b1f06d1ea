package fieldperm

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/fieldperm/internal/diff"
	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/test/schematest"
)

func TestDiff(t *testing.T) {
	k, none := compileGadget(t)
	for _, c := range []struct {
		rule, old, new string
		want           []string
	}{
		{"D1 a modified leaf", `{"spec":{"replicas":1,"plain":"a"}}`, `{"spec":{"plain":"a","replicas":2}}`, []string{"modified .spec.replicas: * specification scale"}},
		{"D1 a struct that appears is charged at its leaves", `{}`, `{"spec":{"replicas":2,"plain":"a"}}`, []string{"added .spec.replicas: * specification scale", "added .spec.plain: * specification"}},
		{"D1 a struct that disappears is charged at its leaves", `{"spec":{"replicas":2}}`, `{}`, []string{"removed .spec.replicas: * specification scale"}},
		{"D1 an empty object is a leaf", `{}`, `{"metadata":{"labels":{}}}`, []string{"added .metadata.labels: * metadata labels"}},
		{"D1 an empty list is a leaf", `{}`, `{"metadata":{"finalizers":[]}}`, []string{"added .metadata.finalizers: * metadata finalizers"}},
		{"D1 null is a leaf, and not absent", `{"spec":{"replicas":null}}`, `{"spec":{}}`, []string{"removed .spec.replicas: * specification scale"}},
		{"D1 null for an object", `{"metadata":{"labels":{"a/b":"c"}}}`, `{"metadata":{"labels":null}}`, []string{`removed .metadata.labels["a/b"]: * metadata labels label label(a)`, "added .metadata.labels: * metadata labels"}},
		{"D1 keys are case-sensitive", `{"spec":{"replicas":1}}`, `{"spec":{"Replicas":1}}`, []string{"removed .spec.replicas: * specification scale", `added .spec["Replicas"]: * specification`}},
		{"D1 a key in front of others that was behind them", `{"spec":{"plain":"a","node":"n","replicas":2}}`, `{"spec":{"replicas":3,"plain":"a","node":"n"}}`, []string{"modified .spec.replicas: * specification scale"}},
		{"D1 escapes spell the same key", `{"metadata":{"labels":{"a/b":"c"}}}`, `{"metadata":{"labels":{"\u0061/b":"\u0063"}}}`, nil},
		{"D1 numbers compare exactly", `{"spec":{"replicas":9007199254740993}}`, `{"spec":{"replicas":9007199254740992}}`, []string{"modified .spec.replicas: * specification scale"}},
		{"D1 the sign of a number", `{"spec":{"replicas":-1}}`, `{"spec":{"replicas":1}}`, []string{"modified .spec.replicas: * specification scale"}},
		{"D1 numbers compare by value", `{"spec":{"replicas":100}}`, `{"spec":{"replicas":1.0e2}}`, nil},
		{"D1 a label by its prefix", `{"metadata":{"labels":{"a/b":"1","c":"2"}}}`, `{"metadata":{"labels":{"a/b":"9","d":"2"}}}`, []string{`modified .metadata.labels["a/b"]: * metadata labels label label(a)`, `removed .metadata.labels["c"]: * metadata labels label label(c)`, `added .metadata.labels["d"]: * metadata labels label label(d)`}},
		{"a key that cannot be a parameter has the verb for all parameters alone", `{}`, `{"metadata":{"labels":{"":"1"}}}`, []string{`added .metadata.labels[""]: * metadata labels label`}},
		{"a scalar parameter needs the verb of the old value and of the new", `{"spec":{"note":"a"}}`, `{"spec":{"note":"b"}}`, []string{"removed .spec.note: * specification note note(a)", "added .spec.note: * specification note note(b)"}},
		{"D2 an item that appears is charged at the item, and its barriers", `{"spec":{"containers":[]}}`, `{"spec":{"containers":[{"name":"a","image":"i","privileged":true}]}}`, []string{`added .spec.containers[name="a"]: * specification container container(a)`, `added .spec.containers[name="a"].privileged: (*) (specification) (container) (container(a)) privilege`}},
		{"D2 an item that disappears", `{"spec":{"containers":[{"name":"a","image":"i"}]}}`, `{"spec":{"containers":[]}}`, []string{`removed .spec.containers[name="a"]: * specification container container(a)`}},
		{"D2 a member of a set", `{"metadata":{"finalizers":["a/x"]}}`, `{"metadata":{"finalizers":["a/x","b/y"]}}`, []string{`added .metadata.finalizers[="b/y"]: * metadata finalizers finalizer finalizer(b)`}},
		{"D2 a field of an item that stays", `{"spec":{"containers":[{"name":"a","image":"i"}]}}`, `{"spec":{"containers":[{"name":"a","image":"j"}]}}`, []string{`modified .spec.containers[name="a"].image: * specification container container(a) image image(a)`}},
		{"D2 a renamed key is one item less and one more", `{"spec":{"containers":[{"name":"a"}]}}`, `{"spec":{"containers":[{"name":"b"}]}}`, []string{`removed .spec.containers[name="a"]: * specification container container(a)`, `added .spec.containers[name="b"]: * specification container container(b)`}},
		{
			"D2 the second key of an item", `{"spec":{"ports":[{"port":80,"protocol":"TCP"},{"port":81}]}}`, `{"spec":{"ports":[{"port":80,"protocol":"UDP"},{"port":81}]}}`,
			[]string{`removed .spec.ports[port=80,protocol="TCP"]: * specification ports`, `added .spec.ports[port=80,protocol="UDP"]: * specification ports`},
		},
		{"D3 the order of items that stay", `{"spec":{"containers":[{"name":"a"},{"name":"b"}]}}`, `{"spec":{"containers":[{"name":"b"},{"name":"a"}]}}`, []string{"reordered .spec.containers: * specification"}},
		{"D3 an item in front of others is no new order", `{"spec":{"containers":[{"name":"a"}]}}`, `{"spec":{"containers":[{"name":"b"},{"name":"a"}]}}`, []string{`added .spec.containers[name="b"]: * specification container container(b)`}},
		{"D3 the order of a set", `{"metadata":{"finalizers":["a","b"]}}`, `{"metadata":{"finalizers":["b","a"]}}`, []string{"reordered .metadata.finalizers: * metadata finalizers"}},
		{"D4 an atomic list is charged as a whole", `{"spec":{"args":["a","b"]}}`, `{"spec":{"args":["b","a"]}}`, []string{"modified .spec.args: * specification"}},
		{"D4 an atomic map is charged as a whole", `{"spec":{"selector":{"a":"b"}}}`, `{"spec":{"selector":{"a":"c"}}}`, []string{"modified .spec.selector: * specification"}},
		{"D4 a barrier inside an atomic list", `{"spec":{"rules":[{"host":"a","admin":false}]}}`, `{"spec":{"rules":[{"host":"a","admin":true}]}}`, []string{"modified .spec.rules: * specification rules", "modified .spec.rules[0].admin: (*) (specification) (rules) admin"}},
		{"D4 a barrier that stays at its position is not charged", `{"spec":{"rules":[{"host":"a","admin":false}]}}`, `{"spec":{"rules":[{"host":"b","admin":false}]}}`, []string{"modified .spec.rules: * specification rules"}},
		{"D4 a barrier in an atomic list that disappears", `{"spec":{"rules":[{"admin":true}]}}`, `{"spec":{}}`, []string{"removed .spec.rules: * specification rules", "removed .spec.rules[0].admin: (*) (specification) (rules) admin"}},
		{"D5 items with the same key are charged at the list", `{"spec":{"containers":[{"name":"a","image":"i"},{"name":"a","image":"j"}]}}`, `{"spec":{"containers":[{"name":"a","image":"i"},{"name":"a","image":"k"}]}}`, []string{"modified .spec.containers: * specification"}},
		{"D5 barriers under the same key", `{"spec":{"containers":[{"name":"a"},{"name":"a"}]}}`, `{"spec":{"containers":[{"name":"a"},{"name":"a","privileged":true}]}}`, []string{"modified .spec.containers: * specification", `added .spec.containers[name="a"].privileged: (*) (specification) (container) (container(a)) privilege`}},
		{
			"D5 a barrier that moves from one key to another beside an item without key",
			`{"spec":{"containers":[{"image":"x"},{"name":"a","privileged":true}]}}`, `{"spec":{"containers":[{"image":"y"},{"name":"b","privileged":true}]}}`,
			[]string{
				"modified .spec.containers: * specification", `removed .spec.containers[name="a"].privileged: (*) (specification) (container) (container(a)) privilege`,
				`added .spec.containers[name="b"].privileged: (*) (specification) (container) (container(b)) privilege`,
			},
		},
		{"D5 a second item of a key", `{"spec":{"containers":[{"name":"a"}]}}`, `{"spec":{"containers":[{"name":"a"},{"name":"a"}]}}`, []string{"modified .spec.containers: * specification"}},
		{"D5 an item without its key", `{"spec":{"containers":[{"image":"a"}]}}`, `{"spec":{"containers":[{"image":"b"}]}}`, []string{"modified .spec.containers: * specification"}},
		{"D5 an item beside one without key", `{"spec":{"containers":[{"image":"x"},{"name":"a","image":"i"}]}}`, `{"spec":{"containers":[{"image":"x"},{"name":"a","image":"j"}]}}`, []string{"modified .spec.containers: * specification"}},
		{"D5 an absent key has its default", `{"spec":{"ports":[{"port":80,"target":1}]}}`, `{"spec":{"ports":[{"port":80,"protocol":"TCP","target":2}]}}`, []string{`modified .spec.ports[port=80,protocol="TCP"].target: * specification ports`, `added .spec.ports[port=80,protocol="TCP"].protocol: * specification ports`}},
		{"D10 a name that occurs twice", `{"metadata":{"labels":{"a":"1"}}}`, `{"metadata":{"labels":{"a":"2","a":"1"}}}`, []string{irregularGadget}},
		{"D10 a name that occurs twice on both sides", `{"metadata":{"labels":{"a":"1","a":"2"}}}`, `{"metadata":{"labels":{"a":"1","a":"3"}}}`, []string{irregularGadget}},
		{"D10 a name that occurs twice, and stays", `{"metadata":{"labels":{"a":"1","a":"2"}},"spec":{"plain":"a"}}`, `{"metadata":{"labels":{"a":"1","a":"2"}},"spec":{"plain":"b"}}`, []string{irregularGadget}},
		{"D6 unknown fields have the chain of their parent", `{"spec":{"other":{"x":1,"l":[1,2]}}}`, `{"spec":{"other":{"x":2,"l":[2,1]}}}`, []string{`modified .spec["other"]["x"]: * specification`, `modified .spec["other"]["l"]: * specification`}},
		{"D6, C3 nothing but the root above", `{"extra":1}`, `{"extra":{"a":2}}`, []string{"removed .extra: *", `added .extra["a"]: *`}},
		{"D7 fields that the server writes", `{"metadata":{"uid":"1","resourceVersion":"1"}}`, `{"metadata":{"uid":"2"}}`, nil},
		{"D9 generateName on UPDATE", `{"metadata":{"generateName":"a"}}`, `{"metadata":{"generateName":"b"}}`, []string{"modified .metadata.generateName: * metadata"}},
		{"C2 a barrier", `{"spec":{"node":"a"}}`, `{"spec":{"node":"b"}}`, []string{"modified .spec.node: (*) (specification) node"}},
		{"C2 excluded-when holds", `{"spec":{"feature":{"enabled":false}}}`, `{"spec":{"feature":{"enabled":true}}}`, []string{"modified .spec.feature.enabled: (*) (specification) (feature) switch"}},
		{"C2 excluded-when does not hold", `{"spec":{"feature":{"enabled":true}}}`, `{"spec":{"feature":{"enabled":false}}}`, []string{"modified .spec.feature.enabled: * specification feature switch"}},
		{"C2 excluded-when of a value that goes", `{"spec":{"feature":{"enabled":true}}}`, `{"spec":{}}`, []string{"removed .spec.feature.enabled: * specification feature switch"}},
		{"recursion ends with the object", `{"spec":{"tree":{"child":{"value":"a"}}}}`, `{"spec":{"tree":{"value":"b","child":{"value":"b"}}}}`, []string{"added .spec.tree.value: * specification tree", "modified .spec.tree.child.value: * specification"}},
	} {
		t.Run(c.rule, func(t *testing.T) { expectDiff(t, k, none, c.old, c.new, c.want...) })
	}
}

// TestDiff_ItemsThatChangeInTheirPlaces: a few changed items are compared without memory for their keys, more of them in groups.
func TestDiff_ItemsThatChangeInTheirPlaces(t *testing.T) {
	k, none := compileGadget(t)
	for n := 1; n <= 2*diff.InStepLimit; n++ {
		var old, new, want []string
		for i := range n {
			item := fmt.Sprintf(`{"name":"c%d","image":"old"}`, i)
			old, new = append(old, item), append(new, strings.Replace(item, "old", "new", 1))
			want = append(want, fmt.Sprintf(`modified .spec.containers[name="c%d"].image: * specification container container(c%d) image image(c%d)`, i, i, i))
		}
		list := func(items []string) string { return `{"spec":{"containers":[` + strings.Join(items, ",") + `]}}` }
		expectDiff(t, k, none, list(old), list(new), want...)
	}
}

// TestP5_ChangesComeInTheOrderOfNames proves that the spelling of the objects has no effect on the order: a denial names the first
// change.
func TestP5_ChangesComeInTheOrderOfNames(t *testing.T) {
	k, none := compileGadget(t)
	for _, c := range [][2]string{
		{`{"spec":{"plain":"a","replicas":2,"args":[]}}`, `{"spec":{"plain":"b","replicas":3,"args":["x"]}}`},
		{`{"spec":{"replicas":2,"plain":"a","args":[]}}`, `{"spec":{"args":["x"],"replicas":3,"plain":"b"}}`},
		{`{"spec":{}}`, `{"spec":{"replicas":3,"plain":"b","args":["x"]}}`},
		{`{}`, `{"spec":{"replicas":3,"args":["x"],"plain":"b"}}`},
	} {
		got, err := Diff(t.Context(), []byte(c[0]), []byte(c[1]), k, none)
		if err != nil {
			t.Fatal(err)
		}
		var paths []string
		for i := range got {
			paths = append(paths, got[i].Path.String())
		}
		if !slices.Equal(paths, []string{".spec.args", ".spec.plain", ".spec.replicas"}) {
			t.Errorf("%s to %s: %q", c[0], c[1], paths)
		}
	}
}

func TestC5_Create(t *testing.T) {
	k, none := compileGadget(t)
	identity := `"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"name":"x","uid":"1","managedFields":[{"manager":"m","operation":"Update","apiVersion":"example.com/v1","fieldsType":"FieldsV1","fieldsV1":{}}]}`
	for _, c := range []struct {
		rule, new string
		want      []string
	}{
		{"the identity and the fields of the server are free, the object itself is not", `{` + identity + `}`, nil},
		{"a default is free", `{` + identity + `,"spec":{"replicas":1,"plain":"a"}}`, []string{"added .spec.plain: * specification"}},
		{"another value is not", `{` + identity + `,"spec":{"replicas":2}}`, []string{"added .spec.replicas: * specification scale"}},
		{"a struct whose default is made of defaults is free", `{` + identity + `,"spec":{"limits":{"low":0},"plain":"a"}}`, []string{"added .spec.plain: * specification"}},
		{"an object of nothing but defaults did appear", `{` + identity + `,"spec":{"feature":{"enabled":false}}}`, []string{"added .spec.feature: * specification feature"}},
		{"a label", `{"metadata":{"name":"x","labels":{"a":"b"}}}`, []string{`added .metadata.labels["a"]: * metadata labels label label(a)`}},
		{"a barrier", `{"metadata":{"name":"x"},"spec":{"node":"n"}}`, []string{"added .spec.node: (*) (specification) node"}},
		{"planted owners that cannot be read", `{"metadata":{"name":"x","managedFields":[{"manager":"a","operation":"Update","fieldsType":"FieldsV1"},{"manager":"b","operation":"Update","fieldsType":"FieldsV1"}]}}`, []string{wholeGadget}},
		{"the owner of a field that the object lacks", `{` + strings.Replace(identity, `"fieldsV1":{}`, `"fieldsV1":{"f:spec":{"f:replicas":{}}}`, 1) + `}`, []string{"ownership .spec.replicas: * specification scale"}},
		{"an applier of a zero that the object does not show", `{` + strings.Replace(strings.Replace(identity, `"fieldsV1":{}`, `"fieldsV1":{"f:spec":{"f:replicas":{},"f:plain":{}}}`, 1), "Update", "Apply", 1) + `,"spec":{"plain":"a"}}`, []string{"added .spec.plain: * specification", "ownership .spec.replicas: * specification scale"}},
		{"an applier of an empty struct that others fill", `{` + strings.Replace(strings.Replace(identity, `"fieldsV1":{}`, `"fieldsV1":{"f:spec":{}}`, 1), "Update", "Apply", 1) + `,"spec":{"plain":"a"}}`, []string{"added .spec.plain: * specification", "ownership .spec: * specification"}},
		{"an applier of the struct alone", `{` + strings.Replace(strings.Replace(identity, `"fieldsV1":{}`, `"fieldsV1":{"f:metadata":{},"f:spec":{"f:replicas":{}}}`, 1), "Update", "Apply", 1) + `}`, []string{"ownership .metadata: * metadata", "ownership .spec.replicas: * specification scale"}},
		{"an applier of a key that the object lacks", `{` + strings.Replace(strings.Replace(identity, `"fieldsV1":{}`, `"fieldsV1":{"f:metadata":{"f:labels":{"f:a":{}}},"f:spec":{"f:plain":{}}}`, 1), "Update", "Apply", 1) + `,"spec":{"plain":"a"}}`, []string{"added .spec.plain: * specification", `ownership .metadata.labels["a"]: * metadata labels label label(a)`}},
		{"an applier of nothing that the object has", `{` + strings.Replace(strings.Replace(identity, `"fieldsV1":{}`, `"fieldsV1":{"f:spec":{"f:replicas":{}}}`, 1), "Update", "Apply", 1) + `}`, []string{"ownership .spec.replicas: * specification scale"}},
		{"planted owners in the form of an API server", `{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"name":"x","managedFields":[` + owner("a", "Update", `{"f:spec":{"f:replicas":{}}}`) + "," + owner("b", "Update", `{"f:spec":{"f:replicas":{}}}`) + `]},"spec":{"replicas":2}}`, []string{"added .spec.replicas: * specification scale", "ownership .metadata.managedFields: * metadata"}},
		{"planted owners of what the object lacks", `{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"name":"x","managedFields":[` + owner("a", "Update", `{}`) + "," + owner("b", "Apply", `{"f:spec":{"f:replicas":{}}}`) + `]}}`, []string{"ownership .metadata.managedFields: * metadata", "ownership .spec.replicas: * specification scale"}},
	} {
		t.Run(c.rule, func(t *testing.T) { expectDiff(t, k, none, "", c.new, c.want...) })
	}
}

// C2, C5: a barrier at the root holds for the existence of an object as for its fields.
func TestC5_ABarrierAtTheRootHoldsForTheExistence(t *testing.T) {
	k, root := compileGadget(t, "granular:*")
	got, err := Diff(t.Context(), nil, []byte(`{"spec":{"replicas":2}}`), k, root)
	if err != nil || len(got) != 2 || !got[0].Barred() || !got[1].Barred() {
		t.Fatalf("%v, %v", renderAll(got), err)
	}
	for held, allowed := range map[string]bool{"create": false, "granular:*": true, "granular:creation": false, "granular:creation granular:scale": true, "create granular:scale": false} {
		d := decideWith(t, holds(append(strings.Fields(held), "granular")...), Limits{}, got...)
		if d.Allowed != allowed {
			t.Errorf("%s: allowed %v", held, d.Allowed)
		}
	}
}

// C5: a part is free if it is its own default, or if the API server wrote all of it, and not if it is some of both.
func TestC5_PartsOfBuiltInKinds(t *testing.T) {
	s := schematest.Schema(t)
	for _, c := range []struct {
		group, version, kind, fields string
		want                         []string
	}{
		{"networking.k8s.io", "v1", "NetworkPolicy", `"spec":{"podSelector":{},"policyTypes":["Ingress"]}`, []string{".", ".spec"}},
		{"resource.k8s.io", "v1", "DeviceClass", `"spec":{}`, []string{"."}},
		{"", "v1", "Namespace", `"spec":{"finalizers":["kubernetes"]},"status":{"phase":"Active"}`, []string{"."}},
		{"", "v1", "PersistentVolumeClaim", `"spec":{"volumeMode":"Filesystem","resources":{}},"status":{"phase":"Pending"}`, []string{".", ".spec"}},
		{"policy", "v1", "PodDisruptionBudget", `"spec":{},"status":{"currentHealthy":0,"desiredHealthy":0,"disruptionsAllowed":0,"expectedPods":0}`, []string{"."}},
		{"", "v1", "Service", `"status":{"loadBalancer":{}}`, []string{"."}},
		{"apps", "v1", "Deployment", `"spec":{"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":"25%","maxUnavailable":"25%"}}},"status":{}`, []string{"."}},
		{"apps", "v1", "Deployment", `"spec":{"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":1,"maxUnavailable":"25%"}}},"status":{}`, []string{".", ".spec.strategy.rollingUpdate.maxSurge"}},
	} {
		k, err := s.Kind(runtimeschema.GroupVersionKind{Group: c.group, Version: c.version, Kind: c.kind})
		if err != nil {
			t.Fatal(err)
		}
		got, err := Diff(t.Context(), nil, []byte(`{"metadata":{"name":"x"},`+c.fields+`}`), k, nil)
		if err != nil {
			t.Fatal(err)
		}
		var paths []string
		for i := range got {
			paths = append(paths, got[i].Path.String())
		}
		if !slices.Equal(paths, c.want) {
			t.Errorf("%s %s: %v, want %v", c.kind, c.fields, paths, c.want)
		}
	}
}

func TestC2_UncoveredPermissionSet(t *testing.T) {
	k, root := compileGadget(t, "granular:*")
	expectDiff(t, k, root, `{"spec":{"replicas":1}}`, `{"spec":{"replicas":2}}`, "modified .spec.replicas: * specification scale")
	got, err := Diff(t.Context(), []byte(`{"spec":{"replicas":1}}`), []byte(`{"spec":{"replicas":2}}`), k, root)
	if err != nil || got[0].Barrier != 0 || !got[0].Barred() {
		t.Errorf("granular:* uncovered: barrier %v, %v", got, err)
	}
	k, label := compileGadget(t, "granular:label(locked.example.com)")
	expectDiff(t, k, label, `{"metadata":{"labels":{"locked.example.com/a":"1","b":"1"}}}`, `{"metadata":{"labels":{"b":"2"}}}`,
		`removed .metadata.labels["locked.example.com/a"]: (*) (metadata) (labels) (label) label(locked.example.com)`, `modified .metadata.labels["b"]: * metadata labels label label(b)`)
	k, image := compileGadget(t, "granular:image(a)")
	expectDiff(t, k, image, `{"spec":{}}`, `{"spec":{"containers":[{"name":"a","image":"x"}]}}`,
		`added .spec.containers[name="a"]: * specification container container(a)`, `added .spec.containers[name="a"].image: (*) (specification) (container) (container(a)) (image) image(a)`)
}

// A schema may have no barrier at all, and an UncoveredPermissionSet may still put one inside an atomic value.
func TestD4_UncoveredPermissionSetInsideAnAtomicValue(t *testing.T) {
	k, admin := compileEntries(t, []compile.Entry{entry(".spec.rules", "rules"), entry(".spec.rules[*].admin", "admin")}, "granular:admin")
	expectDiff(t, k, admin, `{"spec":{"rules":[{"host":"a"}]}}`, `{"spec":{"rules":[{"host":"b","admin":true}]}}`,
		"modified .spec.rules: * rules", "added .spec.rules[0].admin: (*) (rules) admin")
}

// A verb without its parameter covers all its parameters, in a barrier as in a grant.
func TestC2_A6_BarrierWithoutItsParameterHoldsForAllParameters(t *testing.T) {
	const old, new = `{"spec":{"containers":[{"name":"a","image":"x"}]}}`, `{"spec":{"containers":[{"name":"a","image":"y"}]}}`
	for _, c := range []struct {
		barriers []string
		want     string
	}{
		{nil, "* specification container container(a) image image(a)"},
		{[]string{"granular:image"}, "(*) (specification) (container) (container(a)) image image(a)"},
		{[]string{"granular:image(a)"}, "(*) (specification) (container) (container(a)) (image) image(a)"},
		{[]string{"granular:image(b)"}, "* specification container container(a) image image(a)"},
		{[]string{"granular:container"}, "(*) (specification) container container(a) image image(a)"},
		{[]string{"granular:container(a)"}, "(*) (specification) (container) container(a) image image(a)"},
		// A further barrier never allows more: the last one counts.
		{[]string{"granular:image", "granular:image(a)"}, "(*) (specification) (container) (container(a)) (image) image(a)"},
	} {
		t.Run(strings.Join(c.barriers, " "), func(t *testing.T) {
			k, set := compileGadget(t, c.barriers...)
			expectDiff(t, k, set, old, new, `modified .spec.containers[name="a"].image: `+c.want)
		})
	}
}

func TestC2_A6_ExcludedBarsAtTheVerbForAllParameters(t *testing.T) {
	entries := gadgetEntries()
	for i := range entries {
		if entries[i].Path == ".metadata.labels[*]" {
			entries[i].Excluded = true
		}
	}
	k, none := compileEntries(t, entries)
	expectDiff(t, k, none, `{}`, `{"metadata":{"labels":{"a":"1"}}}`, `added .metadata.labels["a"]: (*) (metadata) (labels) label label(a)`)
	// A value that cannot be a parameter is behind the barrier as well.
	expectDiff(t, k, none, `{}`, `{"metadata":{"labels":{"":"1"}}}`, `added .metadata.labels[""]: (*) (metadata) (labels) label`)
}

func TestC2_ExcludedWhenSeesBothValuesAndFailsClosed(t *testing.T) {
	plain := func(expression string) []compile.Entry {
		return append(gadgetEntries(), entry(".spec.plain", "plain", excludedWhen(expression)))
	}
	const barred, free = "modified .spec.plain: (*) (specification) plain", "modified .spec.plain: * specification plain"
	for _, c := range []struct{ expression, want string }{
		{"oldSelf == 'a' && self == 'b'", barred},
		{"oldSelf == 'b' || self == 'a'", free},
		{"self.nothing == 1", barred},
		{"self == null", free},
	} {
		t.Run(c.expression, func(t *testing.T) {
			k, none := compileEntries(t, plain(c.expression))
			expectDiff(t, k, none, `{"spec":{"plain":"a"}}`, `{"spec":{"plain":"b"}}`, c.want)
		})
	}
	// Programs read a null as absent, or as an empty text.
	k, none := compileEntries(t, plain("false"))
	expectDiff(t, k, none, `{"spec":{"plain":"a"}}`, `{"spec":{"plain":null}}`, barred)
	expectDiff(t, k, none, `{"spec":{"plain":null}}`, `{"spec":{"plain":"a"}}`, free)
}

// API servers leave out most zeros of their own kinds. So an absent field of such a kind may have the zero, and a barrier holds if it does for either.
func TestC2_AnAbsentFieldMayBeAZero(t *testing.T) {
	compiled := schematest.Schema(t, schematest.PermissionSchema("zeros", "apps", "Deployment", "{path: .spec.paused, verb: example.com/pause, excludedWhen: self == false}, {path: .spec.minReadySeconds, verb: example.com/wait, excludedWhen: oldSelf == 0}"))
	k, err := compiled.Kind(runtimeschema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"})
	if err != nil {
		t.Fatal(err)
	}
	const pause, wait = "example.com/pause", "example.com/wait"
	expectDiff(t, k, nil, `{"spec":{"paused":true}}`, `{"spec":{}}`, "removed .spec.paused: (*) (specification) "+pause)
	expectDiff(t, k, nil, `{"spec":{}}`, `{"spec":{"paused":true}}`, "added .spec.paused: * specification "+pause)
	expectDiff(t, k, nil, `{"spec":{}}`, `{"spec":{"minReadySeconds":1}}`, "added .spec.minReadySeconds: (*) (specification) "+wait)
	expectDiff(t, k, nil, `{"spec":{"minReadySeconds":2}}`, `{"spec":{"minReadySeconds":1}}`, "modified .spec.minReadySeconds: * specification "+wait)
}

func TestDiff_RefusesValuesThatAreNoObjects(t *testing.T) {
	k, none := compileGadget(t)
	deep := strings.Repeat(`{"a":`, 20000) + "1" + strings.Repeat("}", 20000)
	for _, c := range []struct{ name, old, new, want string }{
		{"no JSON", `{}`, `{`, "is no JSON"},
		{"no object", `{}`, `[]`, "is no JSON object"},
		{"more than one", `{}`, `{}{}`, "more JSON"},
		{"invalid UTF-8", `{}`, "{\"spec\":{\"plain\":\"\xff\"}}", "UTF-8"},
		{"too deep", `{}`, deep, "depth"},
		{"a list for a struct", `{"spec":{}}`, `{"spec":[]}`, ".spec: a value of this type does not fit"},
		{"an object for a scalar", `{}`, `{"spec":{"replicas":{}}}`, ".spec.replicas: a value"},
		{"a scalar for a list", `{"spec":{"containers":[]}}`, `{"spec":{"containers":1}}`, ".spec.containers: a value"},
		{"old is no JSON", `x`, `{}`, "is no JSON"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Diff(t.Context(), []byte(c.old), []byte(c.new), k, none)
			var invalid *InvalidObjectError
			if !errors.As(err, &invalid) || !strings.Contains(err.Error(), c.want) || got != nil {
				t.Errorf("got %v, %v; want an InvalidObjectError with %q", got, err, c.want)
			}
		})
	}
}

func TestD10_UnchangedObjectsNeedNoVerb(t *testing.T) {
	k, none := compileGadget(t)
	for _, x := range []string{`{}`, `{"spec":{"containers":[{"name":"a"},{"name":"a"}]}}`, `{"metadata":{"labels":{"a":"1","a":"2"}}}`, `{"extra":[{"b":[null]}]}`} {
		expectDiff(t, k, none, x, x)
	}
}

func TestPathIsUnambiguous(t *testing.T) {
	k, none := compileGadget(t)
	expectDiff(t, k, none, `{}`, `{"metadata":{"labels":{"a\"].spec[\"b":"1"}}}`, `added .metadata.labels["a\"].spec[\"b"]: * metadata labels label label(a%22%5D.spec%5B%22b)`)
}
