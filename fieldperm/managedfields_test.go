package fieldperm

import (
	"fmt"
	"strings"
	"testing"
)

func TestD8_ManagersVanishIntoAncientChangesAsAnAPIServerMergesThem(t *testing.T) {
	k, none := compileGadget(t)
	const (
		labels = `,"labels":{"k0":"","k1":""}|`
		fK0    = `{"f:metadata":{"f:labels":{"f:k0":{}}}}`
		fK1    = `{"f:metadata":{"f:labels":{"f:k1":{}}}}`
	)
	many := []string{owner("m0", "Update", fK0)}
	for i := range 10 {
		many = append(many, owner(fmt.Sprintf("n%d", i), "Update", fK1))
	}
	// Three entries are merged, although the limit is a reason for two at most.
	tooMany := append([]string{owner("ancient-changes", "Update", fK1), owner("x", "Update", `{}`), owner("y", "Update", `{}`)}, many[4:]...)
	ancient := append([]string{owner("ancient-changes", "Update", fK0)}, many[1:]...)
	for _, c := range []struct {
		rule, old, new string
		want           []string
	}{
		{"ancient-changes gains a field that no vanished manager held", owned(labels, many...), owned(labels, append(many[1:len(many):len(many)], owner("ancient-changes", "Update", `{"f:metadata":{"f:labels":{"f:k0":{}}},"f:apiVersion":{}}`))...), []string{"ownership .apiVersion: *"}},
		{"a manager vanishes into nothing", owned(labels, many...), owned(labels, many[1:]...), []string{`ownership .metadata.labels["k0"]: * metadata labels label label(k0)`}},
		{"a manager of few vanishes into what ancient-changes holds", owned(labels, owner("ancient-changes", "Update", fK0), owner("a", "Update", fK0)), owned(labels, owner("ancient-changes", "Update", fK0)), []string{`ownership .metadata.labels["k0"]: * metadata labels label label(k0)`}},
		{"more vanish than an API server merges", owned(labels, many[1:]...), owned(labels, tooMany...), []string{`ownership .metadata.labels["k1"]: * metadata labels label label(k1)`}},
		{"an applier does not vanish into ancient-changes", owned(labels, append(ancient[:len(ancient):len(ancient)], owner("a", "Apply", fK0))...), owned(labels, ancient...), []string{`ownership .metadata.labels["k0"]: * metadata labels label label(k0)`}},
	} {
		t.Run(c.rule, func(t *testing.T) { expectDiff(t, k, none, c.old, c.new, c.want...) })
	}
}

func TestD8_EntriesOfNoKnownFormAreChargedAsAWhole(t *testing.T) {
	k, none := compileGadget(t)
	const (
		replicas2 = `|,"spec":{"replicas":2}`
		replicas3 = `|,"spec":{"replicas":3}`
		fReplicas = `{"f:spec":{"f:replicas":{}}}`
		fK0       = `{"f:metadata":{"f:labels":{"f:k0":{}}}}`
	)
	otherVersion := strings.Replace(owner("a", "Apply", `{"f:spec":{"f:plain":{}}}`), "com/v1", "com/v0", 1)
	unknown := strings.Replace(owner("a", "Own", fReplicas), "2026", "2025", 1)
	for _, c := range []struct {
		rule, old, new string
		want           []string
	}{
		{"two entries of an applier", owned(`|,"spec":{"replicas":2,"plain":"p"}`, owner("a", "Apply", fReplicas)), owned(`|,"spec":{"replicas":2,"plain":"p"}`, owner("a", "Apply", fReplicas), otherVersion), []string{wholeGadget}},
		{"an entry of no known form that changes", owned(replicas2, owner("b", "Apply", fK0), unknown), owned(replicas2, owner("b", "Apply", fK0), strings.Replace(unknown, "2025", "2026", 1)), []string{wholeGadget}},
		{"an entry of no known form that stays", owned(replicas2, unknown), owned(replicas3, strings.Replace(unknown, ",", " ,", 1)), []string{"modified .spec.replicas: * specification scale"}},
		{"an entry of no known form that owns the change", owned(replicas2), owned(replicas3, owner("a", "Own", fReplicas)), []string{"modified .spec.replicas: * specification scale", wholeGadget}},
		{"an entry with an unknown member", owned(replicas2), owned(replicas2, strings.Replace(owner("a", "Apply", `{}`), `{`, `{"fieldsV2":{},`, 1)), []string{wholeGadget}},
		{"an entry with a member that occurs twice", owned(replicas2), owned(replicas2, strings.Replace(owner("a", "Apply", `{}`), `{`, `{"manager":"b",`, 1)), []string{irregularGadget}},
		{"an element that occurs twice", owned(replicas2), owned(replicas2, owner("a", "Apply", `{"f:gone":{},"f:gone":{}}`)), []string{irregularGadget}},
		{"fields that cannot be read, taken away", owned(replicas2, owner("a", "Apply", `{"x:y":{}}`)), owned(replicas2), []string{wholeGadget}},
	} {
		t.Run(c.rule, func(t *testing.T) { expectDiff(t, k, none, c.old, c.new, c.want...) })
	}
}
