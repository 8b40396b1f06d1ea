package fieldperm

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/schema"
)

// The tests of this file are here because test/mutation broke the code and nothing else noticed.

func TestDiff_WhereOnlyASmallMutationShows(t *testing.T) {
	k, none := compileGadget(t)
	for _, c := range []struct {
		rule, old, new string
		want           []string
	}{
		{"D1 the sign of a number", `{"spec":{"replicas":-1}}`, `{"spec":{"replicas":1}}`, []string{"modified .spec.replicas: * specification scale"}},
		{
			"D4, D5 a barrier under a name that occurs twice in an atomic list", `{"spec":{"rules":[{"admin":true}]}}`, `{"spec":{"rules":[{"admin":false,"admin":true}]}}`,
			[]string{
				"modified .spec.rules: * specification rules", "removed .spec.rules[0].admin: (*) (specification) (rules) admin",
				"added .spec.rules[0].admin: (*) (specification) (rules) admin", "added .spec.rules[0].admin: (*) (specification) (rules) admin",
			},
		},
		{"D1 a key in front of others that was behind them", `{"spec":{"plain":"a","node":"n","replicas":2}}`, `{"spec":{"replicas":3,"plain":"a","node":"n"}}`, []string{"modified .spec.replicas: * specification scale"}},
		{
			"D2 the second key of an item", `{"spec":{"ports":[{"port":80,"protocol":"TCP"},{"port":81}]}}`, `{"spec":{"ports":[{"port":80,"protocol":"UDP"},{"port":81}]}}`,
			[]string{`removed .spec.ports[port=80,protocol="TCP"]: * specification ports`, `added .spec.ports[port=80,protocol="UDP"]: * specification ports`},
		},
		{"D5 an item beside one without key", `{"spec":{"containers":[{"image":"x"},{"name":"a","image":"i"}]}}`, `{"spec":{"containers":[{"image":"x"},{"name":"a","image":"j"}]}}`, []string{"modified .spec.containers: * specification"}},
		{"D5 a key that occurs twice in an item", `{"spec":{"containers":[{"name":"a","name":"b","image":"i"}]}}`, `{"spec":{"containers":[{"name":"a","name":"b","image":"j"}]}}`, []string{"modified .spec.containers: * specification"}},
		{"D5 a name that occurs twice on both sides", `{"metadata":{"labels":{"a":"1","a":"2"}}}`, `{"metadata":{"labels":{"a":"1","a":"3"}}}`, []string{"modified .metadata.labels: * metadata labels"}},
		{
			"D5 a barrier that moves from one key to another beside an item without key",
			`{"spec":{"containers":[{"image":"x"},{"name":"a","privileged":true}]}}`, `{"spec":{"containers":[{"image":"y"},{"name":"b","privileged":true}]}}`,
			[]string{
				"modified .spec.containers: * specification", "removed .spec.containers[1].privileged: (*) (specification) (container) (container(a)) privilege",
				"added .spec.containers[1].privileged: (*) (specification) (container) (container(b)) privilege",
			},
		},
	} {
		t.Run(c.rule, func(t *testing.T) { expectDiff(t, k, none, c.old, c.new, c.want...) })
	}
}

// TestDiff_ItemsThatChangeInTheirPlaces: few are compared without memory for their keys, more by groups.
func TestDiff_ItemsThatChangeInTheirPlaces(t *testing.T) {
	k, none := compileGadget(t)
	for n := 1; n <= 2*inStepLimit; n++ {
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

// TestP5_ChangesComeInTheOrderOfNames, however the objects are spelled: a denial names the first.
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

func TestD8_WhereOnlyASmallMutationShows(t *testing.T) {
	k, none := compileGadget(t)
	const (
		replicas2 = `|,"spec":{"replicas":2}`
		replicas3 = `|,"spec":{"replicas":3}`
		labels    = `,"labels":{"k0":"","k1":""}|`
		item      = `|,"spec":{"containers":[{"name":"c","image":"i"}]}`
		fReplicas = `{"f:spec":{"f:replicas":{}}}`
		fItem     = `{"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{".":{},"f:name":{},"f:image":{}}}}}`
		fNoKey    = `{"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{".":{},"f:image":{}}}}}`
		fK0       = `{"f:metadata":{"f:labels":{"f:k0":{}}}}`
		fK1       = `{"f:metadata":{"f:labels":{"f:k1":{}}}}`
	)
	many := []string{owner("m0", "Update", fK0)}
	for i := range 10 {
		many = append(many, owner(fmt.Sprintf("n%d", i), "Update", fK1))
	}
	// Three are merged where one more is no reason for more than two.
	tooMany := append([]string{owner("ancient-changes", "Update", fK1), owner("x", "Update", `{}`), owner("y", "Update", `{}`)}, many[4:]...)
	ancient := append([]string{owner("ancient-changes", "Update", fK0)}, many[1:]...)
	otherVersion := strings.Replace(owner("a", "Apply", `{"f:spec":{"f:plain":{}}}`), "com/v1", "com/v0", 1)
	unknown := strings.Replace(owner("a", "Own", fReplicas), "2026", "2025", 1)
	for _, c := range []struct {
		rule, old, new string
		want           []string
	}{
		{"a reset that leaves no list", owned(replicas2, owner("a", "Apply", fReplicas)), `{"apiVersion":"example.com/v1","metadata":{},"spec":{"replicas":2}}`, []string{"ownership .spec.replicas: * specification scale"}},
		{"a reset that leaves null", owned(replicas2, owner("a", "Apply", fReplicas)), `{"apiVersion":"example.com/v1","metadata":{"managedFields":null},"spec":{"replicas":2}}`, []string{"ownership .spec.replicas: * specification scale"}},
		{"the key of an item taken away from under its fields", owned(item, owner("a", "Apply", fItem)), owned(item, owner("a", "Apply", fNoKey)), []string{wholeGadget, `ownership .spec.containers[name="c"].name: * specification container container(c)`, `ownership .spec.containers[name="c"]: * specification container container(c)`}},
		{"the key of an item given to who holds its fields", owned(item, owner("a", "Apply", fNoKey)), owned(item, owner("a", "Apply", fItem)), []string{`ownership .spec.containers[name="c"].name: * specification container container(c)`, `ownership .spec.containers[name="c"]: * specification container container(c)`}},
		{"before-first-apply does not apply", owned(replicas2), owned(replicas2, owner("before-first-apply", "Apply", fReplicas)), []string{"ownership .spec.replicas: * specification scale"}},
		{"ancient-changes gains what no vanished manager held", owned(labels, many...), owned(labels, append(many[1:len(many):len(many)], owner("ancient-changes", "Update", `{"f:metadata":{"f:labels":{"f:k0":{}}},"f:apiVersion":{}}`))...), []string{"ownership .apiVersion: *"}},
		{"a manager vanishes into nothing", owned(labels, many...), owned(labels, many[1:]...), []string{`ownership .metadata.labels["k0"]: * metadata labels label label(k0)`}},
		{"a manager of few vanishes into what ancient-changes holds", owned(labels, owner("ancient-changes", "Update", fK0), owner("a", "Update", fK0)), owned(labels, owner("ancient-changes", "Update", fK0)), []string{`ownership .metadata.labels["k0"]: * metadata labels label label(k0)`}},
		{"more vanish than an API server merges", owned(labels, many[1:]...), owned(labels, tooMany...), []string{`ownership .metadata.labels["k1"]: * metadata labels label label(k1)`}},
		{"who applies does not vanish into ancient-changes", owned(labels, append(ancient[:len(ancient):len(ancient)], owner("a", "Apply", fK0))...), owned(labels, ancient...), []string{`ownership .metadata.labels["k0"]: * metadata labels label label(k0)`}},
		{"two entries of one who applies", owned(`|,"spec":{"replicas":2,"plain":"p"}`, owner("a", "Apply", fReplicas)), owned(`|,"spec":{"replicas":2,"plain":"p"}`, owner("a", "Apply", fReplicas), otherVersion), []string{wholeGadget}},
		{"an entry of no known form that changes", owned(replicas2, owner("b", "Apply", fK0), unknown), owned(replicas2, owner("b", "Apply", fK0), strings.Replace(unknown, "2025", "2026", 1)), []string{wholeGadget}},
		{"an entry of no known form that stays", owned(replicas2, unknown), owned(replicas3, strings.Replace(unknown, ",", " ,", 1)), []string{"modified .spec.replicas: * specification scale"}},
		{"an entry with a member that nobody knows", owned(replicas2), owned(replicas2, strings.Replace(owner("a", "Apply", `{}`), `{`, `{"fieldsV2":{},`, 1)), []string{wholeGadget}},
		{"an entry with a member that occurs twice", owned(replicas2), owned(replicas2, strings.Replace(owner("a", "Apply", `{}`), `{`, `{"manager":"b",`, 1)), []string{wholeGadget}},
		{"an element that occurs twice", owned(replicas2), owned(replicas2, owner("a", "Apply", `{"f:gone":{},"f:gone":{}}`)), []string{wholeGadget}},
		{"fields that cannot be read, taken away", owned(replicas2, owner("a", "Apply", `{"x:y":{}}`)), owned(replicas2), []string{wholeGadget}},
		{"a path of this version that leads nowhere, beside a change", owned(replicas2), owned(replicas3, owner("a", "Apply", `{"f:spec":{"f:gone":{}}}`)), []string{"modified .spec.replicas: * specification scale", `ownership .spec["gone"]: * specification`}},
	} {
		t.Run(c.rule, func(t *testing.T) { expectDiff(t, k, none, c.old, c.new, c.want...) })
	}
}

func TestC2_ExcludedWhenSeesBothValuesAndFailsClosed(t *testing.T) {
	plain := func(expression string) []schema.Entry {
		return append(gadgetEntries(), entry(".spec.plain", "plain", excludedWhen(expression)))
	}
	const barred, free = "modified .spec.plain: (*) (specification) plain", "modified .spec.plain: * specification plain"
	for _, c := range []struct{ expression, want string }{
		{"oldSelf == 'a' && self == 'b'", barred},
		{"oldSelf == 'b' || self == 'a'", free},
		{"self.nothing == 1", barred},
	} {
		t.Run(c.expression, func(t *testing.T) {
			k, none := compileEntries(t, plain(c.expression))
			expectDiff(t, k, none, `{"spec":{"plain":"a"}}`, `{"spec":{"plain":"b"}}`, c.want)
		})
	}
}

func TestP3_LimitHoldsWithinALevel(t *testing.T) {
	g := holds("granular", "granular:a", "granular:b", "granular:c", "granular:d")
	d := decideWith(t, g, Limits{MaxChecks: 6, Parallel: 8}, need("a", "*", "a"), need("b", "*", "b"), need("c", "*", "c"), need("d", "*", "d"))
	if d.Allowed || len(g.asked) != 6 {
		t.Errorf("allowed %v after %d checks, want a denial after 6: %q", d.Allowed, len(g.asked), g.asked)
	}
}

// A schema may have no barrier at all, and an UncoveredPermissionSet puts one inside what is atomic.
func TestD4_UncoveredPermissionSetInsideWhatIsAtomic(t *testing.T) {
	k, admin := compileEntries(t, []schema.Entry{entry(".spec.rules", "rules"), entry(".spec.rules[*].admin", "admin")}, "granular:admin")
	expectDiff(t, k, admin, `{"spec":{"rules":[{"host":"a"}]}}`, `{"spec":{"rules":[{"host":"b","admin":true}]}}`,
		"modified .spec.rules: * rules", "added .spec.rules[0].admin: (*) (rules) admin")
}
