package fieldperm

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/schema/load"
	"github.com/fieldperm/fieldperm/test/schematest"
	"github.com/fieldperm/fieldperm/verbs"
)

// safes have a secret in v1 whose name in v2 is hidden, and a color and a box of things in both.
func safes(t *testing.T, annotations string) func(version string) *schema.Kind {
	t.Helper()
	spec := func(name string) string {
		return fmt.Sprintf(`{"type":"object","properties":{"spec":{"type":"object","properties":{"color":{"type":"string"},
			%q:{"type":"object","properties":{"key":{"type":"string"}}}}}}}`, name)
	}
	return safesOf(t, annotations, spec("secret"), spec("hidden"))
}

func safesOf(t *testing.T, annotations, v1, v2 string) func(version string) *schema.Kind {
	t.Helper()
	conversion := byWebhook
	if strings.Contains(annotations, byName) {
		conversion = `{"strategy":"None"}`
	}
	docs, errs := load.CRD("safes", []byte(fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
		"metadata":{"name":"safes.g.example","annotations":{%s}},
		"spec":{"group":"g.example","scope":"Namespaced","names":{"kind":"Safe","listKind":"SafeList","plural":"safes","singular":"safe"},"conversion":%s,
			"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":%s}},{"name":"v2","served":%t,"storage":false,"schema":{"openAPIV3Schema":%s}}]}}`,
		annotations, conversion, v1, !strings.Contains(annotations, unserved), v2)))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	catalogue, err := load.Catalogue(false)
	if err != nil {
		t.Fatal(err)
	}
	docs.Permissions = append(catalogue, docs.Permissions...)
	s, errs := compile.Compile(docs)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return func(version string) *schema.Kind {
		k, err := s.Kind(runtimeschema.GroupVersionKind{Group: "g.example", Version: version, Kind: "Safe"})
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
}

const (
	byWebhook = `{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],"clientConfig":{"url":"https://localhost"}}}`
	byName    = `"conversion":"none",`
	unserved  = `,"v2":"is not served"`
	vouched   = `"fieldperm.dev/lossless-conversion":"true","fieldperm.dev/permission-verbs":`
	bothSay   = vouched + `"{\"v1\":[{\"path\":\".spec.secret\",\"verb\":\"g.example/secret\",\"excluded\":true}],\"v2\":[{\"path\":\".spec.hidden\",\"verb\":\"g.example/secret\",\"excluded\":true}]}"`
	v1Says    = vouched + `"{\"v1\":[{\"path\":\".spec.secret\",\"verb\":\"g.example/secret\",\"excluded\":true}],\"v2\":[]}"`
	partSays  = vouched + `"{\"v1\":[{\"path\":\".spec.secret.key\",\"verb\":\"g.example/secret\",\"excluded\":true}],\"v2\":[{\"path\":\".spec.hidden.key\",\"verb\":\"g.example/secret\",\"excluded\":true}]}"`
	plainSays = vouched + `"{\"v1\":[{\"path\":\".spec.secret\",\"verb\":\"g.example/secret\"}],\"v2\":[{\"path\":\".spec.hidden\",\"verb\":\"g.example/secret\"}]}"`
)

func safe(version, color string, owners ...string) string {
	field := map[string]string{"v1": "secret", "v2": "hidden"}[version]
	return fmt.Sprintf(`{"apiVersion":"g.example/%s","metadata":{"managedFields":[%s]},"spec":{"color":%q,%q:{"key":"s"}}}`, version, strings.Join(owners, ","), color, field)
}

func safeEntry(version, manager, fields string) string {
	return strings.Replace(owner(manager, "Apply", `{"f:spec":{`+fields+`}}`), "example.com/v1", "g.example/"+version, 1)
}

// D8: a field with another name in another version is charged with the verbs of that version, both when a manager gains it and when a
// manager loses it.
func TestD8_OwnersOfAFieldThatAnotherVersionRenames(t *testing.T) {
	const secret = "granular:g.example/secret"
	color, colored := `"f:color":{}`, safeEntry("v2", "argo", `"f:color":{}`)
	given := func(field string) string { return safeEntry("v2", "argo", color+","+field) }
	for name, c := range map[string]struct {
		annotations, version, old, new string
		// want are the verbs without which the change is refused, except for those above the guarded field.
		want []string
	}{
		"given in the other version's name":             {bothSay, "v1", safe("v1", "c", colored), safe("v1", "c", given(`"f:hidden":{}`)), []string{secret}},
		"given in a name that says nothing":             {v1Says, "v1", safe("v1", "c", colored), safe("v1", "c", given(`"f:hidden":{}`)), []string{secret}},
		"given with the container of a guarded field":   {partSays, "v1", safe("v1", "c", colored), safe("v1", "c", given(`"f:hidden":{".":{}}`)), []string{secret}},
		"lost beside a change":                          {bothSay, "v2", safe("v2", "c", safeEntry("v1", "sec", `"f:secret":{}`)), safe("v2", "d"), []string{secret}},
		"lost below a guarded field":                    {bothSay, "v2", safe("v2", "c", safeEntry("v1", "sec", `"f:secret":{"f:key":{}}`)), safe("v2", "d"), []string{secret}},
		"lost in a name that says nothing":              {v1Says, "v1", safe("v1", "c", safeEntry("v2", "sec", `"f:hidden":{}`)), safe("v1", "d"), []string{secret}},
		"lost beside a change of the same name in both": {plainSays, "v2", safe("v2", "c", safeEntry("v1", "sec", `"f:secret":{}`)), safe("v2", "d"), []string{"granular:*"}},
		"lost where nothing changed":                    {plainSays, "v2", safe("v2", "c", safeEntry("v1", "sec", `"f:secret":{}`)), safe("v2", "c"), []string{"granular:*"}},
		"given, without a barrier":                      {plainSays, "v1", safe("v1", "c", colored), safe("v1", "c", given(`"f:hidden":{}`)), []string{"granular:*"}},
		"the changed field, in an entry of the other":   {plainSays, "v1", safe("v1", "c", safeEntry("v2", "argo", "")), safe("v1", "d", colored), []string{""}},
		"given in an unknown version":                   {bothSay, "v1", safe("v1", "c", safeEntry("v0", "argo", color)), safe("v1", "c", safeEntry("v0", "argo", color+`,"f:x":{}`)), []string{secret, "granular:*"}},
		"lost in an unknown version":                    {bothSay, "v1", safe("v1", "c", safeEntry("v0", "argo", `"f:x":{}`)), safe("v1", "d"), []string{""}},
	} {
		t.Run(name, func(t *testing.T) {
			k := safes(t, c.annotations)(c.version)
			got, err := Diff(t.Context(), []byte(c.old), []byte(c.new), k, nil)
			if err != nil {
				t.Fatal(err)
			}
			owns := slices.DeleteFunc(slices.Clone(got), func(r Requirement) bool { return r.Operation != Ownership })
			for _, verb := range c.want {
				needs := func(r Requirement) bool { return verb == "" || r.Candidates()[len(r.Candidates())-1].String() == verb }
				if !slices.ContainsFunc(owns, needs) {
					t.Errorf("%q, want one that needs %s", renderAll(got), verb)
				}
			}
			if len(c.want) == 0 && len(owns) > 0 {
				t.Errorf("%q, want nothing of owners", renderAll(owns))
			}
		})
	}
}

// D8: in a lossy version an annotation may be a field. So a gain in an entry of that version is charged as the whole object.
func TestD8_EntriesOfALossyVersionAreChargedAsTheObject(t *testing.T) {
	compiled := schematest.Schema(t)
	k, err := compiled.Kind(runtimeschema.GroupVersionKind{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"})
	if err != nil {
		t.Fatal(err)
	}
	const metrics = `{"f:metadata":{"f:annotations":{"f:autoscaling.alpha.kubernetes.io/metrics":{}}}}`
	of := func(note string, owners ...string) string {
		return fmt.Sprintf(`{"apiVersion":"autoscaling/v2","metadata":{"annotations":{"x":%q},"managedFields":[%s]},"spec":{"maxReplicas":3}}`, note, strings.Join(owners, ","))
	}
	entry := func(fields string) string {
		return strings.Replace(owner("argo", "Apply", fields), "example.com/v1", "autoscaling/v1", 1)
	}
	expect := func(old, new string, whole bool) {
		t.Helper()
		got, err := Diff(t.Context(), []byte(old), []byte(new), k, nil)
		isWhole := slices.ContainsFunc(got, func(r Requirement) bool {
			return r.Operation == Ownership && len(r.Chain) == 1 && r.Chain[0] == verbs.All()
		})
		if err != nil || isWhole != whole {
			t.Errorf("%q, %v; want the whole object %t", renderAll(got), err, whole)
		}
	}
	expect(of("1", entry(`{"f:spec":{"f:maxReplicas":{}}}`)), of("2", entry(strings.Replace(metrics, "}}}}", `}}},"f:spec":{"f:maxReplicas":{}}}`, 1))), true)
	expect(of("1", entry(metrics)), of("1"), true)
	expect(of("1", entry(metrics)), of("2"), true)
}

// D8: a barrier of a set that holds only for owners does not apply to a change of a value.
func TestD8_BarriersForOwnersOnly(t *testing.T) {
	k, _ := compileGadget(t)
	scale, all := verb(t, "granular:scale"), verbs.All()
	const fReplicas = `{"f:spec":{"f:replicas":{}}}`
	replicas2, replicas3 := `|,"spec":{"replicas":2}`, `|,"spec":{"replicas":3}`
	owners := schema.VerbSet{scale: {OwnersOnly: true}}
	expectDiff(t, k, owners, owned(replicas2), owned(replicas3), "modified .spec.replicas: * specification scale")
	expectDiff(t, k, owners, owned(replicas2), owned(replicas2, owner("me", "Apply", fReplicas)), "ownership .spec.replicas: (*) (specification) scale")
	expectDiff(t, k, owners, owned(replicas2), owned(replicas3, owner("me", "Apply", fReplicas)), "modified .spec.replicas: * specification scale", "ownership .spec.replicas: (*) (specification) scale")
	expectDiff(t, k, owners, owned(replicas2), owned(replicas3, owner("me", "Update", fReplicas)), "modified .spec.replicas: * specification scale")
	expectDiff(t, k, schema.VerbSet{scale: {}}, owned(replicas2), owned(replicas3), "modified .spec.replicas: (*) (specification) scale")
	status := schema.VerbSet{scale: {StatusOnly: true}}
	expectDiff(t, k, status, owned(replicas2), owned(replicas2, owner("me", "Apply", fReplicas)), "ownership .spec.replicas: * specification scale")
	got, err := Diff(t.Context(), []byte(owned(replicas2)), []byte(owned(replicas2, owner("me", "Apply", fReplicas))), k, schema.VerbSet{all: {OwnersOnly: true}})
	if err != nil || len(got) != 1 || got[0].Barrier != 0 {
		t.Errorf("everything, for owners only: %q, %v", renderAll(got), err)
	}
}

// D8: a condition is about the change of this request. A manager that gains the value by applying removes it with a later apply without
// it.
func TestD8_C2_AConditionDoesNotExemptTheNewOwnerOfAChangedField(t *testing.T) {
	entries := append(gadgetEntries(), entry(".spec.replicas", "scale", excludedWhen("oldSelf != null && self == null")))
	entries = slices.DeleteFunc(entries, func(e compile.Entry) bool { return e.Path == ".spec.replicas" && e.ExcludedWhen == "" })
	k, none := compileEntries(t, entries)
	const fReplicas = `{"f:spec":{"f:replicas":{}}}`
	replicas2, replicas3 := `|,"spec":{"replicas":2}`, `|,"spec":{"replicas":3}`
	barred, change := "ownership .spec.replicas: (*) (specification) scale", "modified .spec.replicas: * specification scale"
	expectDiff(t, k, none, owned(replicas2), owned(replicas3, owner("argo", "Apply", fReplicas)), change, barred)
	expectDiff(t, k, none, owned(replicas2), owned(replicas3, owner("me", "Update", fReplicas)), change)
	expectDiff(t, k, none, owned(replicas2, owner("argo", "Apply", fReplicas)), owned(replicas3, owner("argo", "Apply", fReplicas)), change)
}

// D8: guarded parts of an atomic value disappear with it, also the new parts.
func TestD8_C2_AConditionDoesNotExemptNewFieldsOfAnAppliedValue(t *testing.T) {
	entries := slices.DeleteFunc(gadgetEntries(), func(e compile.Entry) bool { return e.Path == ".spec.rules[*].admin" })
	k, none := compileEntries(t, append(entries, entry(".spec.rules[*].admin", "admin", excludedWhen("oldSelf != null && self == null"))))
	spec := func(rules string) string { return `|,"spec":{"replicas":2` + rules + `}` }
	argo := owner("argo", "Apply", `{"f:spec":{"f:rules":{}}}`)
	const guarded = `,"rules":[{"host":"h","admin":false}]`
	for name, old := range map[string]string{"the whole": "", "a part": `,"rules":[{"host":"h"}]`} {
		got, err := Diff(t.Context(), []byte(owned(spec(old))), []byte(owned(spec(guarded), argo)), k, none)
		if err != nil || !slices.ContainsFunc(got, func(r Requirement) bool { return r.Operation == Ownership && r.Barred() }) {
			t.Errorf("%s is new: %q, %v", name, renderAll(got), err)
		}
	}
}

// D8: a manager holds an item only if it owns the item and its keys.
func TestD8_AnItemWithoutAnOwnerOfItsKeysIsNotHeld(t *testing.T) {
	k, none := compileGadget(t)
	fields := func(in string) string {
		return `{"f:spec":{"f:containers":{"k:{\"name\":\"guard\"}":{` + in + `}}}}`
	}
	spec := func(image string) string {
		return `|,"spec":{"containers":[{"name":"guard","image":"` + image + `","privileged":true}]}`
	}
	const (
		whole   = `".":{},"f:name":{},"f:image":{},"f:privileged":{}`
		noKey   = `".":{},"f:image":{},"f:privileged":{}`
		item    = `ownership .spec.containers[name="guard"]: * specification container container(guard)`
		key     = `ownership .spec.containers[name="guard"].name: * specification container container(guard)`
		guard   = `ownership .spec.containers[name="guard"].privileged: (*) (specification) (container) (container(guard)) privilege`
		root    = wholeGadget
		atIndex = `ownership .spec.containers[0].privileged: (*) (specification) (container) (container(guard)) privilege`
		image   = `modified .spec.containers[name="guard"].image: * specification container container(guard) image image(guard)`
	)
	creator := func(in string) string { return owner("creator", "Update", fields(in)) }
	argo := owner("argo", "Apply", fields(`".":{},"f:name":{},"f:image":{}`))
	expectDiff(t, k, none, owned(spec("i"), creator(whole)), owned(spec("i"), creator(noKey)), root)
	expectDiff(t, k, none, owned(spec("i"), creator(whole)), owned(spec("j"), creator(whole), argo), image)
	expectDiff(t, k, none, owned(spec("i"), creator(noKey)), owned(spec("j"), creator(noKey), argo), image, item, key, guard)
	shell := owner("argo", "Apply", fields(`".":{},"f:name":{}`))
	expectDiff(t, k, none, owned(spec("i"), creator(whole), shell), owned(spec("i"), creator(whole)), item, key, guard)
}

// D8: a set on the status guards fields of the status that have another name in another version.
func TestD8_OwnersInTheStatusOfAnotherVersion(t *testing.T) {
	typ := func(name string) string {
		return fmt.Sprintf(`{"type":"object","properties":{"status":{"type":"object","properties":{%q:{"type":"string"}}}}}`, name)
	}
	k := safesOf(t, vouched+`"{\"v1\":[{\"path\":\".status.secret\",\"verb\":\"g.example/secret\"}],\"v2\":[]}"`, typ("secret"), typ("hidden"))
	entry := strings.Replace(owner("argo", "Apply", `{"f:status":{"f:hidden":{}}}`), "example.com/v1", "g.example/v2", 1)
	for version, field := range map[string]string{"v1": "secret", "v2": "hidden"} {
		creator := strings.Replace(owner("creator", "Update", `{"f:status":{".":{},"f:`+field+`":{}}}`), "example.com/v1", "g.example/"+version, 1)
		of := func(owners string) []byte {
			return []byte(fmt.Sprintf(`{"apiVersion":"g.example/%s","metadata":{"name":"x","managedFields":[%s]},"status":{%q:"s"}}`, version, creator+owners, field))
		}
		secret := verb(t, "granular:g.example/secret")
		set := schema.VerbSet{secret: {StatusOnly: true}}
		got, err := Diff(t.Context(), of(""), of(","+entry), k(version), set)
		guards := func(r Requirement) bool { return r.Barrier >= 0 && slices.Contains(r.Candidates(), secret) }
		if err != nil || !slices.ContainsFunc(got, guards) {
			t.Errorf("gained through %s: %q, %v", version, renderAll(got), err)
		}
		if version != "v1" {
			continue // The entry is of that version.
		}
		got, err = Diff(t.Context(), of(","+entry), bytes.Replace(of(""), []byte(`"s"`), []byte(`"t"`), 1), k(version), set)
		if err != nil || !slices.ContainsFunc(got, guards) {
			t.Errorf("lost through %s beside a change: %q, %v", version, renderAll(got), err)
		}
	}
}

// D8: a barrier that holds only for owners does not hold for values that a version may hide, nor for a new object with only a name.
func TestD8_C3_BarriersForOwnersOnlyHideNoValues(t *testing.T) {
	compiled := schematest.Schema(t)
	hpa, err := compiled.Kind(runtimeschema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "HorizontalPodAutoscaler"})
	if err != nil {
		t.Fatal(err)
	}
	of := func(n int, owners ...string) []byte {
		return []byte(fmt.Sprintf(`{"apiVersion":"autoscaling/v1","metadata":{"name":"x","managedFields":[%s]},"spec":{"maxReplicas":%d}}`, strings.Join(owners, ","), n))
	}
	entry := func(operation string) string {
		return strings.Replace(owner("me", operation, `{"f:spec":{"f:maxReplicas":{}}}`), "example.com/v1", "autoscaling/v1", 1)
	}
	gadget, _ := compileGadget(t)
	for name, c := range map[string]struct {
		kind     *schema.Kind
		old, new []byte
		want     bool
	}{
		"a new object":                        {hpa, nil, of(3, entry("Update")), false},
		"an update":                           {hpa, of(3), of(4, entry("Update")), false},
		"the manager that applies the change": {hpa, of(3), of(4, entry("Apply")), true},
		"nothing but a name":                  {gadget, nil, []byte(owned(`,"name":"x"|`, owner("me", "Update", `{}`))), false},
	} {
		set := schema.VerbSet{verb(t, "granular:specification"): {OwnersOnly: true}, verbs.All(): {OwnersOnly: true}}
		got, err := Diff(t.Context(), c.old, c.new, c.kind, set)
		if err != nil || slices.ContainsFunc(got, func(r Requirement) bool { return r.Barred() }) != c.want {
			t.Errorf("%s: %q, %v; want a barrier %t", name, renderAll(got), err, c.want)
		}
	}
}

// D8: an index does not name an item of a list with keys. A key with its default value needs no owner.
func TestD8_ItemsByIndexAndByDefaultedKeys(t *testing.T) {
	k, web := compileGadget(t, "granular:image(web)")
	in := func(fields string) string { return `{"f:spec":{"f:containers":{` + fields + `}}}` }
	old, new := `|,"spec":{"containers":[{"name":"web","image":"i"}]}`, `|,"spec":{"containers":[{"name":"side","image":"s"},{"name":"web","image":"i"}]}`
	got, err := Diff(t.Context(), []byte(owned(old)), []byte(owned(new, owner("a", "Apply", in(`"i:0":{}`)), owner("helm", "Apply", in(`"k:{\"name\":\"web\"}":{".":{},"f:name":{}}`)))), k, web)
	if err != nil || !slices.ContainsFunc(got, func(r Requirement) bool {
		return r.Path.String() == `.spec.containers[name="web"].image` && r.Barrier > 0
	}) {
		t.Errorf("an index before a key: %q, %v", renderAll(got), err)
	}
	k, none := compileEntries(t, append(gadgetEntries(), entry(".spec.ports[*].target", "target")))
	ports := func(fields string) string {
		return `{"f:spec":{"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{` + fields + `}}}}`
	}
	spec := func(target string) string {
		return `|,"spec":{"ports":[{"port":80,"protocol":"TCP","target":"` + target + `"}]}`
	}
	kubectl, bot := owner("kubectl", "Apply", ports(`".":{},"f:port":{}`)), owner("bot", "Apply", ports(`".":{},"f:port":{},"f:target":{}`))
	expectDiff(t, k, none, owned(spec("1"), kubectl), owned(spec("2"), kubectl, bot), `modified .spec.ports[port=80,protocol="TCP"].target: * specification ports target`)
}

func verb(tb testing.TB, text string) verbs.Verb {
	tb.Helper()
	v, err := verbs.Parse(text)
	if err != nil {
		tb.Fatal(err)
	}
	return v
}
