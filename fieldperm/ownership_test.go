package fieldperm

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/schema"
)

// owner is one entry of managedFields.
func owner(name, operation, fields string) string {
	return fmt.Sprintf(`{"manager":%q,"operation":%q,"apiVersion":"example.com/v1","time":"2026-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":%s}`, name, operation, fields)
}

func owned(rest string, entries ...string) string {
	return `{"apiVersion":"example.com/v1","metadata":{"managedFields":[` + strings.Join(entries, ",") + `]` + metadataOf(rest) + `}` + specOf(rest) + `}`
}

func metadataOf(rest string) string { m, _, _ := strings.Cut(rest, "|"); return m }
func specOf(rest string) string     { _, s, _ := strings.Cut(rest, "|"); return s }

func TestD8_Ownership(t *testing.T) {
	k, none := compileGadget(t)
	const (
		replicas2 = `|,"spec":{"replicas":2}`
		replicas3 = `|,"spec":{"replicas":3}`
		labels    = `,"labels":{"a/x":"1"}|`
		items     = `|,"spec":{"containers":[{"name":"c","image":"i"}]}`
		twins     = `|,"spec":{"containers":[{"name":"c","image":"i"},{"name":"c","image":"j"}]}`
		noted2    = `,"name":"n"|,"spec":{"replicas":2,"plain":"x"}`
		noted3    = `,"name":"n"|,"spec":{"replicas":3,"plain":"x"}`
		fReplicas = `{"f:spec":{"f:replicas":{}}}`
		fLabel    = `{"f:metadata":{"f:labels":{".":{},"f:a/x":{}}}}`
		fItem     = `{"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{".":{},"f:name":{},"f:image":{}}}}}`
		fNoKey    = `{"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{".":{},"f:image":{}}}}}`
	)
	eleven := make([]string, 0, 11)
	for i := range 10 {
		eleven = append(eleven, owner(fmt.Sprintf("m%d", i), "Update", fmt.Sprintf(`{"f:metadata":{"f:labels":{"f:k%d":{}}}}`, i)))
	}
	ten := append([]string{owner("ancient-changes", "Update", `{"f:metadata":{"f:labels":{"f:k0":{},"f:k1":{}}}}`), owner("new", "Update", fReplicas)}, eleven[2:]...)
	manyLabels := `,"labels":{"k0":"","k1":"","k2":"","k3":"","k4":"","k5":"","k6":"","k7":"","k8":"","k9":""}`
	for _, c := range []struct {
		rule, old, new string
		want           []string
	}{
		{"a manager gains what changed", owned(replicas2), owned(replicas3, owner("me", "Update", fReplicas)), []string{"modified .spec.replicas: * specification scale"}},
		{"another loses what changed", owned(replicas2, owner("a", "Apply", fReplicas)), owned(replicas3, owner("me", "Apply", fReplicas)), []string{"modified .spec.replicas: * specification scale"}},
		{"a manager gains what did not change", owned(replicas2), owned(replicas2, owner("me", "Apply", fReplicas)), []string{"ownership .spec.replicas: * specification scale"}},
		{"a manager loses what did not change", owned(replicas2, owner("a", "Apply", fReplicas)), owned(replicas2), []string{"ownership .spec.replicas: * specification scale"}},
		{"a reset charges every path that lost its owner, once", owned(labels[:len(labels)-1]+replicas2, owner("a", "Apply", fReplicas), owner("b", "Update", fReplicas)), owned(labels[:len(labels)-1] + replicas2), []string{"ownership .spec.replicas: * specification scale"}},
		{"a reset that leaves no list", owned(replicas2, owner("a", "Apply", fReplicas)), `{"apiVersion":"example.com/v1","metadata":{},"spec":{"replicas":2}}`, []string{"ownership .spec.replicas: * specification scale"}},
		{"a reset that leaves null", owned(replicas2, owner("a", "Apply", fReplicas)), `{"apiVersion":"example.com/v1","metadata":{"managedFields":null},"spec":{"replicas":2}}`, []string{"ownership .spec.replicas: * specification scale"}},
		{"the own entry of a map is charged", owned(labels, owner("a", "Update", fLabel)), owned(`,"labels":{"a/x":"1","b/y":"2"}|`, owner("a", "Update", fLabel), owner("me", "Apply", `{"f:metadata":{"f:labels":{".":{},"f:b/y":{}}}}`)), []string{`added .metadata.labels["b/y"]: * metadata labels label label(b)`, "ownership .metadata.labels: * metadata labels"}},
		{"the own entry of a map is charged when it goes", owned(`,"labels":{"a/x":"1","b/y":"2"}|`, owner("me", "Apply", `{"f:metadata":{"f:labels":{".":{},"f:b/y":{}}}}`)), owned(labels, owner("me", "Apply", `{}`)), []string{`removed .metadata.labels["b/y"]: * metadata labels label label(b)`, "ownership .metadata.labels: * metadata labels"}},
		{"the own entry taken away from under its fields", owned(labels, owner("a", "Apply", fLabel)), owned(labels, owner("a", "Apply", `{"f:metadata":{"f:labels":{"f:a/x":{}}}}`)), []string{"ownership .metadata.labels: * metadata labels"}},
		{"the keys of an item are free, its other fields are not", owned(items, owner("a", "Update", fItem)), owned(items, owner("a", "Update", fItem), owner("me", "Apply", fItem)), []string{`ownership .spec.containers[name="c"].image: * specification container container(c) image image(c)`}},
		{"the key of an item taken away from under its fields", owned(items, owner("a", "Apply", fItem)), owned(items, owner("a", "Apply", fNoKey)), []string{wholeGadget}},
		{"the key of an item given to the owner of its fields", owned(items, owner("a", "Apply", fNoKey)), owned(items, owner("a", "Apply", fItem)), []string{`ownership .spec.containers[name="c"].name: * specification container container(c)`, `ownership .spec.containers[name="c"]: * specification container container(c)`, `ownership .spec.containers[name="c"].image: * specification container container(c) image image(c)`}},
		{"co-owning a label of another", owned(labels, owner("a", "Update", fLabel)), owned(labels, owner("a", "Update", fLabel), owner("me", "Apply", `{"f:metadata":{"f:labels":{"f:a/x":{}}}}`)), []string{`ownership .metadata.labels["a/x"]: * metadata labels label label(a)`}},
		{"a member of a set", owned(`,"finalizers":["a/x"]|`), owned(`,"finalizers":["a/x"]|`, owner("me", "Update", `{"f:metadata":{"f:finalizers":{"v:\"a/x\"":{}}}}`)), []string{`ownership .metadata.finalizers[="a/x"]: * metadata finalizers finalizer finalizer(a)`}},
		{"an atomic list", owned(`|,"spec":{"args":["a"]}`), owned(`|,"spec":{"args":["a"]}`, owner("me", "Apply", `{"f:spec":{"f:args":{}}}`)), []string{"ownership .spec.args: * specification"}},
		{"a barrier counts for ownership too", owned(`|,"spec":{"node":"n"}`), owned(`|,"spec":{"node":"n"}`, owner("me", "Apply", `{"f:spec":{"f:node":{}}}`)), []string{"ownership .spec.node: (*) (specification) node"}},
		{"one's own time is free", owned(replicas2, owner("a", "Apply", fReplicas)), owned(replicas3, strings.Replace(owner("a", "Apply", fReplicas), "2026", "2027", 1)), []string{"modified .spec.replicas: * specification scale"}},
		{"the times of two are not", owned(replicas2, owner("a", "Apply", fReplicas), owner("b", "Apply", fReplicas)), owned(replicas2, strings.Replace(owner("a", "Apply", fReplicas), "2026", "2027", 1), strings.Replace(owner("b", "Apply", fReplicas), "2026", "2027", 1)), []string{wholeGadget}},
		{"the times of two owners of a changed field are not", owned(replicas2, owner("a", "Apply", fReplicas), owner("b", "Apply", fReplicas)), owned(replicas3, strings.Replace(owner("a", "Apply", fReplicas), "2026", "2027", 1), strings.Replace(owner("b", "Apply", fReplicas), "2026", "2027", 1)), []string{"modified .spec.replicas: * specification scale", wholeGadget}},
		{"the order of entries is free", owned(replicas2, owner("a", "Apply", fReplicas), owner("b", "Apply", fReplicas)), owned(replicas2, owner("b", "Apply", fReplicas), owner("a", "Apply", fReplicas)), nil},
		{"the first apply", owned(noted2), owned(noted3, owner("me", "Apply", fReplicas), owner("before-first-apply", "Update", `{"f:spec":{"f:plain":{}}}`)), []string{"modified .spec.replicas: * specification scale", "ownership .spec.plain: * specification"}},
		{"before-first-apply without an apply", owned(noted2), owned(noted2, owner("before-first-apply", "Update", `{"f:spec":{"f:replicas":{},"f:plain":{}}}`)), []string{"ownership .spec.plain: * specification", "ownership .spec.replicas: * specification scale"}},
		{"before-first-apply where there was something", owned(replicas2, owner("a", "Apply", `{}`)), owned(replicas2, owner("a", "Apply", `{}`), owner("before-first-apply", "Update", fReplicas)), []string{"ownership .spec.replicas: * specification scale"}},
		{"before-first-apply does not apply", owned(replicas2), owned(replicas2, owner("before-first-apply", "Apply", fReplicas)), []string{"ownership .spec.replicas: * specification scale"}},
		{"the merge into ancient-changes", owned(manyLabels+replicas2, eleven...), owned(manyLabels+replicas3, ten...), []string{"modified .spec.replicas: * specification scale"}},
		{"no merge with fewer managers", owned(manyLabels+replicas2, eleven[:2]...), owned(manyLabels+replicas2, ten[:1]...), []string{`ownership .metadata.labels["k0"]: * metadata labels label label(k0)`, `ownership .metadata.labels["k1"]: * metadata labels label label(k1)`}},
		{"entries that no API server writes", owned(replicas2), owned(replicas2, `{"manager":"a","operation":"Own","fieldsType":"FieldsV1"}`), []string{wholeGadget}},
		{"fields that cannot be read", owned(replicas2), owned(replicas2, owner("a", "Apply", `{"x:y":{}}`)), []string{wholeGadget}},
		{"a path that leads nowhere", owned(replicas2), owned(replicas2, owner("a", "Update", `{"f:spec":{"f:gone":{}}}`)), []string{`ownership .spec["gone"]: * specification`}},
		{"a path that leads nowhere in its own version, when something near it changed", owned(replicas2, owner("a", "Apply", `{"f:spec":{"f:gone":{}}}`)), owned(replicas3), []string{"modified .spec.replicas: * specification scale", `ownership .spec["gone"]: * specification`}},
		{"a path of this version that leads nowhere, beside a change", owned(replicas2), owned(replicas3, owner("a", "Apply", `{"f:spec":{"f:gone":{}}}`)), []string{"modified .spec.replicas: * specification scale", `ownership .spec["gone"]: * specification`}},
		{"another version's name for what changed", owned(replicas2, strings.Replace(owner("a", "Apply", `{"f:spec":{"f:count":{}}}`), "com/v1", "com/v0", 1)), owned(replicas3), []string{"modified .spec.replicas: * specification scale", `ownership .spec["count"]: * specification`}},
		{"another version's name at the root, when no value changed", owned(replicas2, strings.Replace(owner("a", "Apply", `{"f:message":{}}`), "com/v1", "com/v0", 1)), owned(replicas2), []string{`ownership ["message"]: *`}},
		{"another version's name at the root, when something else changed", owned(replicas2, strings.Replace(owner("a", "Apply", `{"f:message":{}}`), "com/v1", "com/v0", 1)), owned(replicas3), []string{"modified .spec.replicas: * specification scale", `ownership ["message"]: *`}},
		{"an entry of another group goes with every write through this one", owned(replicas2, strings.Replace(owner("a", "Apply", `{"f:message":{},"f:spec":{"f:plain":{}}}`), "example.com/v1", "v1", 1)), owned(replicas3), []string{"modified .spec.replicas: * specification scale"}},
		{"an entry of a group, where the object says none", owned(replicas2, owner("a", "Apply", `{"f:metadata":{"f:gone":{}}}`)), strings.Replace(owned(replicas3), `"apiVersion":"example.com/v1",`, "", 1), []string{"removed .apiVersion: *", "modified .spec.replicas: * specification scale", `ownership .metadata["gone"]: * metadata`}},
		{"an entry of another group, when no value changed", owned(replicas2, strings.Replace(owner("a", "Apply", fReplicas), "example.com/v1", "v1", 1)), owned(replicas2), []string{"ownership .spec.replicas: * specification scale"}},
		{"part of an entry of another group", owned(replicas2, strings.Replace(owner("a", "Apply", `{"f:message":{},"f:metadata":{"f:labels":{}}}`), "example.com/v1", "v1", 1)), owned(replicas3, strings.Replace(owner("a", "Apply", `{"f:metadata":{"f:labels":{}}}`), "example.com/v1", "v1", 1)), []string{"modified .spec.replicas: * specification scale", `ownership ["message"]: *`}},
		{"another version's name in metadata, when no value changed", owned(replicas2, strings.Replace(owner("a", "Apply", `{"f:metadata":{"f:gone":{}}}`), "com/v1", "com/v0", 1)), owned(replicas2), []string{`ownership .metadata["gone"]: * metadata`}},
		{"the version of another's entry", owned(replicas2, owner("a", "Apply", fReplicas)), owned(replicas2, strings.Replace(owner("a", "Apply", fReplicas), "com/v1", "com/v2", 1)), []string{wholeGadget}},
		{"one's own entry comes to have the version of the request", owned(replicas2, strings.Replace(owner("a", "Apply", fReplicas), "com/v1", "com/v0", 1)), owned(replicas3, owner("a", "Apply", fReplicas)), []string{"modified .spec.replicas: * specification scale"}},
		{"an item that is all key, lost", owned(`|,"spec":{"containers":[{"name":"c"}]}`, owner("a", "Apply", `{"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{".":{},"f:name":{}}}}}`)), owned(`|,"spec":{"containers":[{"name":"c"}]}`), []string{`ownership .spec.containers[name="c"]: * specification container container(c)`, `ownership .spec.containers[name="c"].name: * specification container container(c)`}},
		{"an item whose keys another has too", owned(twins), owned(twins, owner("me", "Apply", fItem)), []string{"ownership .spec.containers: * specification"}},
		{"an item whose keys another has too, with its change", owned(twins), owned(strings.Replace(twins, "j", "k", 1), owner("me", "Update", fItem)), []string{"modified .spec.containers: * specification"}},
		{"an empty object is a leaf", owned(`|,"spec":{"feature":{}}`, owner("a", "Apply", `{"f:spec":{"f:feature":{}}}`)), owned(`|,"spec":{"feature":{}}`), []string{"ownership .spec.feature: * specification feature"}},
		{"another version's name for what did not", owned(replicas2, strings.Replace(owner("a", "Apply", `{"f:spec":{"f:count":{}}}`), "com/v1", "com/v0", 1)), owned(replicas2), []string{`ownership .spec["count"]: * specification`}},
	} {
		t.Run(c.rule, func(t *testing.T) { expectDiff(t, k, none, c.old, c.new, c.want...) })
	}
}

// D8: a set for owners only holds for every change of owners, also if only the times of entries change, of one or of several.
func TestD8_ASetForOwnersHoldsForTimes(t *testing.T) {
	const spec = `|,"spec":{"replicas":2}`
	a, b := owner("a", "Apply", `{"f:spec":{"f:replicas":{}}}`), owner("b", "Update", `{"f:spec":{"f:replicas":{}}}`)
	later := func(entry string) string { return strings.Replace(entry, "2026", "2027", 1) }
	plain, set := compileGadget(t, "granular:metadata")
	for verb := range set {
		set[verb] = schema.Extent{OwnersOnly: true}
	}
	for _, entries := range [][]string{{later(a), b}, {later(a), later(b)}} {
		expectDiff(t, plain, set, owned(spec, a, b), owned(spec, entries...), wholeGadget, "ownership .: metadata")
	}
}

// D8: an applier that gains an own entry deletes the container by a later apply without it. So the gain is charged if no other manager
// owns the container.
func TestD8_UnownedFieldsNeedTheirVerbForANewOwner(t *testing.T) {
	k, none := compileGadget(t)
	const (
		web   = `"k:{\"name\":\"web\"}":{".":{},"f:name":{},"f:image":{}}`
		guard = `"k:{\"name\":\"guard\"}":{".":{},"f:name":{}}`
	)
	containers := func(items ...string) string { return `{"f:spec":{"f:containers":{` + strings.Join(items, ",") + `}}}` }
	spec := func(image string) string {
		return `,"labels":{"policy/x":"1"}|,"spec":{"feature":{"enabled":true},"containers":[{"name":"web","image":"w"},{"name":"guard","image":"` + image + `"}]}`
	}
	argo, image := owner("argo", "Apply", containers(web)), strings.Replace(guard, `"f:name":{}`, `"f:image":{},"f:name":{}`, 1)
	held, all := `"k:{\"name\":\"guard\"}":{"f:privileged":{}}`, strings.Replace(image, `"f:name":{}`, `"f:name":{},"f:privileged":{}`, 1)
	creator := owner("creator", "Update", containers(guard, web))
	later := func(entry string) string { return strings.Replace(entry, "2026", "2027", 1) }
	other := func(entry string) string { return strings.Replace(entry, "com/v1", "com/v0", 1) }
	const item = `ownership .spec.containers[name="guard"]: * specification container container(guard)`
	const key = `ownership .spec.containers[name="guard"].name: * specification container container(guard)`
	const owns = `ownership .spec.containers[name="web"].image: * specification container container(web) image image(web)` // F2: what argo owned before.
	const changed = `modified .spec.containers[name="guard"].image: * specification container container(guard) image image(guard)`
	const label = `added .metadata.labels["a/x"]: * metadata labels label label(a)`
	for _, c := range []struct {
		rule, old, new string
		want           []string
	}{
		{"an item", owned(spec("g"), argo), owned(spec("g"), owner("argo", "Apply", containers(guard, web))), []string{item, key, owns}},
		{"an item, with a field that changes", owned(spec("g"), argo), owned(spec("h"), owner("argo", "Apply", containers(image, web))), []string{item, changed, owns}},
		{"an item that another owns, with a field that changes", owned(spec("g"), creator, argo), owned(spec("h"), creator, owner("argo", "Apply", containers(image, web))), []string{changed, owns}},
		{"an item that another owns, with nothing in it", owned(spec("g"), creator, argo), owned(spec("g"), creator, owner("argo", "Apply", containers(guard, web))), []string{item, key, owns}},
		{"an item that another comes to own as well", owned(spec("g"), argo), owned(spec("h"), argo, owner("a", "Apply", containers(image)), owner("b", "Apply", containers(image))), []string{item, changed, "ownership .spec.feature.enabled: (*) (specification) (feature) switch"}},
		{"an item that another owns in another version", owned(spec("g"), other(creator), argo), owned(spec("h"), other(creator), owner("argo", "Apply", containers(image, web))), []string{item, changed, owns}},
		{"an item to an updater", owned(spec("g"), creator), owned(spec("h"), creator, owner("a", "Update", containers(image))), []string{item, key, changed}},
		{"the labels around one", owned(spec("g"), argo), owned(strings.Replace(spec("g"), `{"policy`, `{"a/x":"1","policy`, 1), owner("argo", "Apply", strings.TrimSuffix(containers(web), "}")+`,"f:metadata":{"f:labels":{"f:a/x":{}}}}`)), []string{label, `ownership .metadata.labels["policy/x"]: * metadata labels label label(policy)`, owns}},
		{"the labels around one, of which another has one", owned(spec("g"), argo, owner("b", "Update", `{"f:metadata":{"f:labels":{"f:policy/x":{}}}}`)), owned(strings.Replace(spec("g"), `{"policy`, `{"a/x":"1","policy`, 1), owner("argo", "Apply", strings.TrimSuffix(containers(web), "}")+`,"f:metadata":{"f:labels":{"f:a/x":{}}}}`), owner("b", "Update", `{"f:metadata":{"f:labels":{"f:policy/x":{}}}}`)), []string{label, owns}},
		{"a struct of which the manager has all", owned(spec("g"), argo), owned(spec("g"), owner("argo", "Apply", `{"f:spec":{"f:containers":{`+web+`},"f:feature":{"f:enabled":{}}}}`)), []string{"ownership .spec.feature.enabled: (*) (specification) (feature) switch", owns}},
		{"an item that is left while an updater has it", owned(spec("g"), creator, owner("a", "Apply", containers(image))), owned(spec("h"), creator), []string{changed, item, key}},
		{"an item that is left while an applier has it", owned(spec("g"), owner("a", "Apply", containers(guard)), owner("b", "Apply", containers(image))), owned(spec("h"), owner("a", "Apply", containers(guard))), []string{item, key, changed}},
		{"an item to the owner of a field in it", owned(spec("g"), creator, owner("a", "Apply", containers(held))), owned(spec("h"), creator, owner("a", "Apply", containers(all))), []string{item, key, changed, `ownership .spec.containers[name="guard"].privileged: (*) (specification) (container) (container(guard)) privilege`}},
		{"an item from above an owned field in it", owned(spec("g"), creator, owner("a", "Apply", containers(all))), owned(spec("h"), creator, owner("a", "Apply", containers(held))), []string{changed, wholeGadget}},
		{"one time, where nothing changed", owned(spec("g"), argo), owned(spec("g"), later(argo)), []string{wholeGadget}},
		{"the time of another, where something changed", owned(spec("g"), argo), owned(spec("h"), later(argo), owner("me", "Update", containers(`"k:{\"name\":\"guard\"}":{"f:image":{}}`))), []string{changed, wholeGadget}},
		{"the version of another, where something changed", owned(spec("g"), other(argo)), owned(spec("h"), argo, owner("me", "Update", containers(`"k:{\"name\":\"guard\"}":{"f:image":{}}`))), []string{
			changed, `ownership .spec.containers[name="guard"]: * specification container container(guard)`, "ownership .spec.feature.enabled: (*) (specification) (feature) switch", `ownership .spec.containers[name="web"]: * specification container container(web)`, `ownership .spec.containers[name="web"].name: * specification container container(web)`,
			`ownership .spec.containers[name="web"].image: * specification container container(web) image image(web)`,
		}},
	} {
		t.Run(c.rule, func(t *testing.T) { expectDiff(t, k, none, c.old, c.new, c.want...) })
	}
}

// D8: who applies one more field in the name of a bot makes every later apply of the bot need its verb. So the verbs of what the bot owns
// are needed as well (F2). An apply of the same fields with other values needs only theirs.
func TestD8_WhoAppliesInTheNameOfAnotherHoldsItsVerbs(t *testing.T) {
	k, none := compileGadget(t)
	const image, both = `{"f:spec":{"f:replicas":{}}}`, `{"f:metadata":{"f:labels":{"f:team/y":{}}},"f:spec":{"f:replicas":{}}}`
	creator := owner("creator", "Update", `{"f:metadata":{"f:labels":{".":{},"f:a/x":{}}},"f:spec":{}}`)
	of := func(replicas, more, bot string) string {
		return owned(`,"labels":{"a/x":"1"`+more+`}|,"spec":{"replicas":`+replicas+`}`, creator, owner("bot", "Apply", bot))
	}
	const label, replicas = `added .metadata.labels["team/y"]: * metadata labels label label(team)`, ".spec.replicas: * specification scale"
	expectDiff(t, k, none, of("2", "", image), of("2", `,"team/y":"1"`, both), label, "ownership "+replicas)
	expectDiff(t, k, none, of("2", "", image), of("3", "", image), "modified "+replicas)
	expectDiff(t, k, none, of("2", "", image), of("3", `,"team/y":"1"`, both), label, "modified "+replicas)
}
