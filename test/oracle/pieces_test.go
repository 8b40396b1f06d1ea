package oracle

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/test/exact"
	"github.com/fieldperm/fieldperm/test/store"
	"github.com/fieldperm/fieldperm/verbs"
)

// Every key has one owner or none, for every form of resource name and every position of the name in the key.
func TestOracle_OwnersOfAKey(t *testing.T) {
	const address = `{"apiVersion":"networking.k8s.io/v1","kind":"IPAddress","metadata":{"name":"10.0.0.7"},"spec":{"parentRef":{"namespace":"s4","name":"s4-1"}}}`
	for key, c := range map[string]struct {
		stored string
		shard  int
		owned  bool
	}{
		"pods/s3/s3-7":                            {"", 3, true},
		"pods/s3/another":                         {"", 3, true},
		"minions/s11-20":                          {"", 11, true},
		"services/specs/s1/s1-2":                  {"", 1, true},
		"d0.e1.oracle.test/things/s2/s2-10052":    {"", 2, true},
		"d0.e1.oracle.test/things/s2-10052":       {"", 2, true},
		"ipaddresses/10.77.5.20":                  {"", 5, true},
		"ipaddresses/10.0.0.7":                    {address, 4, true},
		"ipaddresses/10.0.0.8":                    {"", 0, false},
		"pods/default/s3x":                        {"", 0, false},
		"apiregistration.k8s.io/apiservices/v1.x": {"", 0, false},
		"services3/specs/default/web":             {"", 0, false},
	} {
		e := &Event{Key: store.Prefix + key}
		if c.stored != "" {
			e.New = []byte(c.stored)
		}
		if shard, owned := shardOf(e); shard != c.shard || owned != c.owned {
			t.Errorf("%s: shard %d, %v; want %d, %v", key, shard, owned, c.shard, c.owned)
		}
	}
}

// The store gives each change to its owner, in order and once. It reports a change without an owner.
func TestOracle_EachChangeGoesToItsShard(t *testing.T) {
	var unowned []string
	s := &Store{owner: shardOf, outside: func(e *Event) { unowned = append(unowned, e.Key) }, queues: map[int][]*Event{}}
	s.take([]store.Change{
		{Key: "/registry/pods/s1/s1-1", After: []byte("a"), Revision: 5},
		{Key: "/registry/pods/s2/s2-1", Before: []byte("b"), Revision: 6},
		{Key: "/registry/leases/x", Revision: 7},
		{Key: "/registry/pods/s1/s1-1", Before: []byte("a"), After: []byte("c"), Revision: 8},
	})
	one, two := s.queues[1], s.queues[2]
	if len(one) != 2 || one[0].Revision != 5 || !one[0].Created() || one[1].Revision != 8 || one[1].Created() || len(two) != 1 || !two[0].Deleted() {
		t.Errorf("shard 1 has %v, shard 2 %v", one, two)
	}
	if !slices.Equal(unowned, []string{"/registry/leases/x"}) {
		t.Errorf("keys without an owner: %q", unowned)
	}
	s.drop(1)
	if len(s.queues[1]) != 0 || len(s.queues[2]) != 1 {
		t.Errorf("after shard 1 has dropped its own: %v", s.queues)
	}
}

func person(grants map[Place][]string) *User {
	u := &User{Name: "u", grants: map[Place]map[string]bool{}}
	for p, held := range grants {
		u.grant(p, held...)
	}
	return u
}

func chain(t *testing.T, text ...string) []verbs.Verb {
	t.Helper()
	var out []verbs.Verb
	for _, one := range text {
		v, err := verbs.Parse(one)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, v)
	}
	return out
}

// C1, C2, C6: a verb covers a change if it is held on the object's own resource or on the addressed one, and not on a third one.
func TestC1_C2_VerbsThatCoverAChange(t *testing.T) {
	pods, status, other := Place{Resource: "pods"}, Place{Resource: "pods", Sub: "status"}, Place{Resource: "nodes"}
	verbsOf := chain(t, "granular:*", "granular:specification", "granular:image", "granular:image(web)")
	for name, c := range map[string]struct {
		grants  map[Place][]string
		barrier int
		create  bool
		covered bool
	}{
		"nothing":                         {nil, -1, false, false},
		"generic":                         {map[Place][]string{pods: {"update"}}, -1, false, true},
		"patch is generic for an update":  {map[Place][]string{pods: {"patch"}}, -1, false, true},
		"update is none for a creation":   {map[Place][]string{pods: {"update", "patch"}}, -1, true, false},
		"create":                          {map[Place][]string{pods: {"create"}}, -1, true, true},
		"create is none for an update":    {map[Place][]string{pods: {"create"}}, -1, false, false},
		"marker alone":                    {map[Place][]string{pods: {"granular"}}, -1, false, false},
		"verb without the marker":         {map[Place][]string{pods: {"granular:image"}}, -1, false, false},
		"marker and verb":                 {map[Place][]string{pods: {"granular", "granular:image"}}, -1, false, true},
		"marker here, verb there":         {map[Place][]string{pods: {"granular"}, status: {"granular:image"}}, -1, false, false},
		"on the subresource":              {map[Place][]string{status: {"granular", "granular:image(web)"}}, -1, false, true},
		"elsewhere":                       {map[Place][]string{other: {"granular", "granular:image", "update"}}, -1, false, false},
		"another verb":                    {map[Place][]string{pods: {"granular", "granular:image(side)"}}, -1, false, false},
		"generic before a barrier":        {map[Place][]string{pods: {"update"}}, 2, false, false},
		"generic and the barrier's verb":  {map[Place][]string{pods: {"update", "granular:image"}}, 2, false, true},
		"generic and one below":           {map[Place][]string{pods: {"update", "granular:image(web)"}}, 2, false, true},
		"generic and one above a barrier": {map[Place][]string{pods: {"update", "granular:specification"}}, 2, false, false},
		"everything above a barrier":      {map[Place][]string{pods: {"granular", "granular:*"}}, 2, false, false},
	} {
		charges := []exact.Charge{{Operation: "modified", Path: ".spec.x", Chain: verbsOf, Barrier: c.barrier}}
		open := uncovered(person(c.grants), charges, []standing{{status, c.create}, {pods, c.create}})
		if got := len(open) == 0; got != c.covered {
			t.Errorf("%s: covered is %v, want %v", name, got, c.covered)
		}
	}
}

// The stored change is compared with the decision of /admit. Only a change despite a refusal, and a change without a necessary review, are
// faults.
func TestOracle_ReviewsAndStoredObjectsArePaired(t *testing.T) {
	pods := Place{Resource: "pods"}
	yes, no := asked{Path: "/admit/granular", Allowed: true}, asked{Path: "/admit/granular", Message: "forbidden"}
	barred := asked{Path: "/admit/uncovered", Allowed: true}
	for name, c := range map[string]struct {
		grants []string
		said   []asked
		wrong  bool
	}{
		"allowed":                              {[]string{"granular"}, []asked{yes}, false},
		"refused":                              {[]string{"granular"}, []asked{no}, true},
		"refused once":                         {[]string{"granular"}, []asked{yes, no}, true},
		"refused to a holder of update":        {[]string{"update"}, []asked{no}, true},
		"a holder of update need not be asked": {[]string{"update"}, nil, false},
		"not asked":                            {[]string{"granular"}, nil, true},
		"asked about barriers only":            {[]string{"granular"}, []asked{barred}, true},
	} {
		r := &Request{User: person(map[Place][]string{pods: c.grants}), Endpoint: &Endpoint{Place: pods}}
		if got := contradicts(r, c.said); (got != "") != c.wrong {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// A review belongs to the shard of its object, in every form in which the review names the object, and to the user of the request.
func TestOracle_UserOfAReview(t *testing.T) {
	var strange []string
	l := &ledger{shards: map[int][]asked{}, strange: func(what string) { strange = append(strange, what) }}
	question := func(namespace, name, generate, user string) []byte {
		return fmt.Appendf(nil, `{"request":{"namespace":%q,"name":%q,"object":{"metadata":{"generateName":%q}},"userInfo":{"username":%q}}}`, namespace, name, generate, user)
	}
	no := []byte(`{"response":{"allowed":false,"status":{"message":"forbidden"}}}`)
	yes := []byte(`{"response":{"allowed":true}}`)
	l.enter("/admit/granular", question("s3", "x", "", "u1"), no)
	l.enter("/admit/uncovered", question("", "s3-7", "", "u1"), yes)
	l.enter("/admit/granular", question("", "", "s3-8-", "u1"), yes)
	l.enter("/admit/granular", question("s3", "x", "", "u2"), yes)
	l.enter("/admit/granular", question("s4", "x", "", "u1"), nil)
	l.enter("/admit/granular", question("default", "x", "", "u1"), yes)
	l.enter("/authorize", []byte("no review"), yes)
	l.enter("/admit/granular", []byte("no review"), yes)
	got := l.take(3, "u1")
	if want := "[/admit/granular: forbidden /admit/uncovered: allowed /admit/granular: allowed]"; fmt.Sprint(got) != want {
		t.Errorf("shard 3: %v, want %s", got, want)
	}
	if again := l.take(3, "u2"); len(again) != 0 {
		t.Errorf("events that were taken are there again: %v", again)
	}
	if none := l.take(4, "u1"); len(none) != 1 || none[0].Allowed {
		t.Errorf("without an answer: %v; want a refusal", none)
	}
	if len(strange) != 1 {
		t.Errorf("strange: %q", strange)
	}
}

// A failure is made smaller by removing one place at a time, the largest first. The identity stays, and the original is not changed.
func TestOracle_Shrink(t *testing.T) {
	const before = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","labels":{"x":"y"}},"spec":{"items":[{"name":"one"},{"name":"two"}]}}`
	r := &Request{Method: MergePatch, Endpoint: &Endpoint{}, Body: []byte(`{"spec":{"items":[{"name":"one","size":1}],"mode":"a"}}`)}
	whole, err := newTrial(r, "key", []byte(before), nil)
	if err != nil {
		t.Fatal(err)
	}
	all := places(whole.bodies[0], whole.before)
	if first := fmt.Sprint(all[0], all[1]); first != "[spec] [metadata]" {
		t.Errorf("first come %s", first)
	}
	for _, at := range all {
		if name, _ := at[len(at)-1].(string); slices.Contains([]string{"apiVersion", "kind", "name"}, name) {
			t.Errorf("%v is taken away", at)
		}
	}
	less := whole.without([]any{"spec", "items", 0}, true, true)
	if got := fmt.Sprint(less.bodies[0], less.before["spec"]); got != "map[spec:map[items:[] mode:a]] map[items:[map[name:two]]]" {
		t.Errorf("without the first item: %s", got)
	}
	if whole.without([]any{"metadata"}, false, true) != nil {
		t.Error("an object without metadata is tried")
	}
	if whole.without([]any{"spec", "nothing"}, true, false) != nil {
		t.Error("a place that is not there is taken away")
	}
	if got := fmt.Sprint(whole.bodies[0]["spec"]); got != "map[items:[map[name:one size:1]] mode:a]" {
		t.Errorf("the original became %s", got)
	}
}

// A smaller failure counts only if it is of the same sort.
func TestOracle_EqualFailures(t *testing.T) {
	is := func(operation, path string) *Verdict {
		return &Verdict{Charges: []exact.Charge{{Operation: operation, Path: path}}}
	}
	if !is("added", ".a").alike(is("added", ".a")) || is("added", ".a").alike(is("added", ".b")) || is("added", ".a").alike(is("removed", ".a")) {
		t.Error("different charges count as equal")
	}
	if none := (&Verdict{}); none.alike(is("added", ".a")) || !none.alike(&Verdict{}) {
		t.Error("a failure without charges is like one with")
	}
}

// The table has every endpoint. For an endpoint that was never written to it has the reason. An unexplained event is reported.
func TestOracle_TheTableOfEndpoints(t *testing.T) {
	table := newTable()
	pods := &Endpoint{Place: Place{Resource: "pods"}, Version: "v1"}
	drawn := &Endpoint{Place: Place{Group: "d1.e2.oracle.test", Resource: "things", Sub: "scale"}, Version: "v2"}
	for _, e := range []*Endpoint{pods, drawn} {
		table.know(e)
	}
	table.hinder(drawn, errors.New("no endpoint creates it"))
	r := &Request{User: &User{Sort: "generic"}, Endpoint: pods, Method: Update}
	table.count(r, &Answer{Code: 200}, []*Event{{}}, 3)
	table.count(r, &Answer{Code: 403}, nil, 0)
	table.count(r, &Answer{Code: 409}, nil, 0)
	report := table.report(nil)
	if want := "oracle: 3 writes, 1 allowed, 1 refused, 3 fields changed, 1 endpoints, 0 not permitted"; report.Last != want {
		t.Errorf("it ends in %q, want %q", report.Last, want)
	}
	for _, want := range []string{"(drawn definitions)/v2/scale", "not written:      1 no endpoint creates it", "generic: allowed", "nothing was stored through: (drawn definitions)/v2/scale\n"} {
		if !strings.Contains(report.Text, want) {
			t.Errorf("%q is missing in\n%s", want, report.Text)
		}
	}
	if len(report.Unjudged) > 0 {
		t.Errorf("not judged: %q", report.Unjudged)
	}
	table.outside(&Event{Key: "/registry/leases/kube-system/apiserver-x"})
	if n := len(table.report(nil).Unjudged); n != 0 {
		t.Errorf("a lease of the API server is %d times not explained", n)
	}
	table.outside(&Event{Key: "/registry/pods/default/x", New: []byte("{}")})
	table.unjudged(&Event{Key: "/registry/pods/s1/x"}, errors.New("no JSON"))
	if got := table.report(nil).Unjudged; len(got) != 2 {
		t.Errorf("not judged: %q", got)
	}
	if !table.fail(&Failure{}, 1) || table.fail(&Failure{}, 1) || !table.enough(Config{MaxFound: 1}) {
		t.Error("failures are not counted")
	}
}

// The same seed draws the same definitions and users.
func TestOracle_ASeedDrawsTheSame(t *testing.T) {
	say := func(seed uint64) string {
		d := newDraw(seed, 1)
		c := drawDefinition(d, 1, 0)
		users := drawUsers(d, "1", []Place{c.resource()}, map[Place]*vocabulary{c.resource(): newVocabulary([]string{"granular:a", "granular:b(x)", "granular:b(y)"})})
		var out strings.Builder
		fmt.Fprint(&out, c.object)
		for _, u := range users {
			fmt.Fprint(&out, u.Name, u.Grants(c.resource()))
		}
		return out.String()
	}
	first := say(7)
	if again := say(7); again != first || say(8) == first {
		t.Error("a seed does not determine the draws")
	}
}

// A stored value that cannot be decoded is an error, never an object without fields.
func TestOracle_UndecodableObjects(t *testing.T) {
	for _, raw := range []string{"k8s\x00\n", "null", "7", "", "{}", `{"kind":"Pod"}`, `{"apiVersion":"v1","kind":"Pod","metadata":7}`} {
		if d, err := decode([]byte(raw)); err == nil {
			t.Errorf("%q is taken for %v", raw, d)
		}
	}
	w := &world{table: newTable()}
	if _, err := w.judge(&Event{New: []byte(`{"apiVersion":"v1","kind":"Pod"}`)}, &Request{}); err == nil {
		t.Error("an object that no endpoint serves is judged")
	}
}

// A place of a theme can be created and removed in maps and in items with a name. Other items stay.
func TestOracle_PlacesOfATheme(t *testing.T) {
	object := map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "web", "image": "a"}, map[string]any{"name": "side"}}}}
	for _, path := range [][]any{{"spec", "containers", named("web"), "image"}, {"spec", "containers", named("third"), "image"}, {"metadata", "labels", "x"}} {
		plant(object, path, "b")
		if at(object, path) != "b" {
			t.Errorf("%v: %v", path, object)
		}
	}
	if list := at(object, []any{"spec", "containers"}).([]any); len(list) != 3 || at(object, []any{"spec", "containers", named("side")}) == nil {
		t.Errorf("items: %v", list)
	}
	if !uproot(object, []any{"spec", "containers", named("web"), "image"}) || uproot(object, []any{"spec", "nothing"}) || at(object, []any{"spec", "containers", named("web"), "image"}) != nil {
		t.Errorf("taken away: %v", object)
	}
	th := &theme{verb: "granular:image", parameter: "web", place: []string{"spec", "containers", "", "image"}}
	if all := th.expand(nil, nil, object, th.place); len(all) != 3 {
		t.Errorf("places: %v", all)
	}
}

// A container is handed over to an applier. Then the applier owns the parts that other managers owned there, and the others lose them
// unless they keep them.
func TestOracle_AContainerIsHandedOver(t *testing.T) {
	shared := false
	for seed := range uint64(40) {
		object := map[string]any{"spec": map[string]any{"list": []any{}}, "metadata": map[string]any{"managedFields": []any{
			map[string]any{"manager": "argo", "operation": "Apply", "fieldsV1": map[string]any{}},
			map[string]any{"manager": "maker", "operation": "Update", "fieldsV1": map[string]any{"f:spec": map[string]any{"f:list": map[string]any{}}}},
		}}}
		if handOver(newDraw(seed, 1), object, []any{"spec", "list"}, "argo") == "" {
			t.Fatal("nothing is handed over")
		}
		list := metadata(object)["managedFields"].([]any)
		if spec := list[0].(map[string]any)["fieldsV1"].(map[string]any)["f:spec"].(map[string]any); spec["f:list"] == nil {
			t.Errorf("seed %d: the applier owns %v", seed, spec)
		}
		_, kept := list[1].(map[string]any)["fieldsV1"].(map[string]any)["f:spec"].(map[string]any)["f:list"]
		shared = shared || kept
	}
	if !shared {
		t.Error("the others never keep it")
	}
}

// Only the charges of a sequence count that are where the applier changed something.
func TestOracle_ChangesOfTheApplier(t *testing.T) {
	is := func(paths ...string) (out []exact.Charge) {
		for _, path := range paths {
			out = append(out, exact.Charge{Path: path})
		}
		return out
	}
	got := about(is(".a", ".b.c", ".bc", ".d[x=1].e"), is(".a.z", ".b", ".d[x=1]"))
	if len(got) != 3 || got[0].Path != ".a" || got[1].Path != ".b.c" || got[2].Path != ".d[x=1].e" {
		t.Errorf("%v", got)
	}
}
