package fieldperm

import (
	"fmt"
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
		{
			"D5 a barrier that moves from one key to another beside an item without key",
			`{"spec":{"containers":[{"image":"x"},{"name":"a","privileged":true}]}}`, `{"spec":{"containers":[{"image":"y"},{"name":"b","privileged":true}]}}`,
			[]string{
				"modified .spec.containers: * specification", "removed .spec.containers[1].privileged: (*) (specification) (container(a)) privilege",
				"added .spec.containers[1].privileged: (*) (specification) (container(b)) privilege",
			},
		},
	} {
		t.Run(c.rule, func(t *testing.T) { expectDiff(t, k, none, c.old, c.new, c.want...) })
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
	for _, c := range []struct {
		rule, old, new string
		want           []string
	}{
		{"a reset that leaves no list", owned(replicas2, owner("a", "Apply", fReplicas)), `{"apiVersion":"example.com/v1","metadata":{},"spec":{"replicas":2}}`, []string{"ownership .spec.replicas: * specification scale"}},
		{"a reset that leaves null", owned(replicas2, owner("a", "Apply", fReplicas)), `{"apiVersion":"example.com/v1","metadata":{"managedFields":null},"spec":{"replicas":2}}`, []string{"ownership .spec.replicas: * specification scale"}},
		{"the key of an item taken away from under its fields", owned(item, owner("a", "Apply", fItem)), owned(item, owner("a", "Apply", fNoKey)), []string{`ownership .spec.containers[name="c"].name: * specification container(c)`}},
		{"the key of an item given to who holds its fields", owned(item, owner("a", "Apply", fNoKey)), owned(item, owner("a", "Apply", fItem)), []string{`ownership .spec.containers[name="c"].name: * specification container(c)`}},
		{"before-first-apply does not apply", owned(replicas2), owned(replicas2, owner("before-first-apply", "Apply", fReplicas)), []string{"ownership .spec.replicas: * specification scale"}},
		{"ancient-changes gains what no vanished manager held", owned(labels, many...), owned(labels, append(many[1:len(many):len(many)], owner("ancient-changes", "Update", `{"f:metadata":{"f:labels":{"f:k0":{}}},"f:apiVersion":{}}`))...), []string{"ownership .apiVersion: *"}},
		{"a manager vanishes into nothing", owned(labels, many...), owned(labels, many[1:]...), []string{`ownership .metadata.labels["k0"]: * metadata labels label(k0)`}},
		{"a manager of few vanishes into what ancient-changes holds", owned(labels, owner("ancient-changes", "Update", fK0), owner("a", "Update", fK0)), owned(labels, owner("ancient-changes", "Update", fK0)), []string{`ownership .metadata.labels["k0"]: * metadata labels label(k0)`}},
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
