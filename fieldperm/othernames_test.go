package fieldperm

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/verbs"
)

// The kinds of these tests have versions with other names for the same fields, or the same names for other fields.

const secretVerb = "granular:g.example/secret"

func ownerIn(version, manager, operation, fields string) string {
	return strings.Replace(owner(manager, operation, fields), "example.com/v1", "g.example/"+version, 1)
}

// structOf is the schema of an object with one struct that has the given properties.
func structOf(name, properties string) string {
	return fmt.Sprintf(`{"type":"object","properties":{%q:{"type":"object","properties":{%s}}}}`, name, properties)
}

// said returns the permissions of two versions as the annotation holds them.
func said(v1, v2 string) string {
	return `"fieldperm.dev/permission-verbs":` + quoted(fmt.Sprintf(`{"v1":[%s],"v2":[%s]}`, v1, v2))
}

func quoted(text string) string { return `"` + strings.ReplaceAll(text, `"`, `\"`) + `"` }

func permission(path, verb, rest string) string {
	return fmt.Sprintf(`{"path":%q,"verb":"g.example/%s"%s}`, path, verb, rest)
}

const (
	lossless = `"fieldperm.dev/lossless-conversion":"true",`
	always   = `,"excluded":true`
)

// object returns an object of the kind in a version, with owners and more fields.
func object(version, rest string, owners ...string) string {
	return fmt.Sprintf(`{"apiVersion":"g.example/%s","metadata":{"name":"x","managedFields":[%s]},%s}`, version, strings.Join(owners, ","), rest)
}

// asks reports whether a change must pass a barrier with the verb.
func asks(t *testing.T, k *schema.Kind, set schema.VerbSet, old, new, barrier string) bool {
	t.Helper()
	got, err := Diff(t.Context(), []byte(old), []byte(new), k, set)
	if err != nil {
		t.Fatal(err)
	}
	want := verb(t, barrier)
	return slices.ContainsFunc(got, func(r Requirement) bool {
		return r.Barrier >= 0 && (r.Candidates()[len(r.Candidates())-1] == want || r.Chain[r.Barrier] == want)
	})
}

// D8: the same path may be another field in another version. v1 .spec.b is v2 .spec.a, and v1 .spec.a is v2 .spec.c.
func TestD8_OwnersOfANamesakeBehindABarrier(t *testing.T) {
	key, atomic := `{"type":"object","properties":{"key":{"type":"string"}}}`, `{"type":"object","x-kubernetes-map-type":"atomic","properties":{"key":{"type":"string"}}}`
	fields := func(text, object, typ string) string {
		return structOf("spec", fmt.Sprintf(`%q:{"type":"string"},%q:%s`, text, object, typ))
	}
	of := func(a string, owners ...string) string {
		return object("v1", fmt.Sprintf(`"spec":{"a":%q,"b":{"key":"s"}}`, a), owners...)
	}
	sec := func(version string) string { return safeEntry(version, "sec", `"f:a":{}`) }
	plain := permission(".spec.a", "plain", "") + "," + permission(".spec.b", "secret", "")
	plainToo := permission(".spec.a", "secret", "") + "," + permission(".spec.c", "plain", "")
	inOne, inBoth := said(permission(".spec.b", "secret", always), ""), said(permission(".spec.b", "secret", always), permission(".spec.a.key", "secret", always))
	whole := schema.VerbSet{verb(t, secretVerb): {}}
	for name, c := range map[string]struct {
		says, typ string
		set       schema.VerbSet
		old, new  string
	}{
		"lost beside a change":                  {lossless + said(plain, plainToo), key, whole, of("1", sec("v2")), of("2")},
		"a set for owners only":                 {lossless + said(strings.Replace(plain, "plain", "secret", 1), strings.Replace(plainToo, "plain", "secret", 1)), key, schema.VerbSet{verb(t, secretVerb): {OwnersOnly: true}}, of("1", sec("v2")), of("2")},
		"the version changes beside a value":    {lossless + said(plain, plainToo), key, whole, of("1", sec("v2")), of("2", sec("v1"))},
		"the version changes, and nothing else": {lossless + said(plain, plainToo), key, whole, of("1", sec("v2")), of("1", sec("v1"))},
		"the guarded field is inside":           {lossless + said(permission(".spec.b.key", "secret", always), permission(".spec.a.key", "secret", always)), atomic, nil, of("1", sec("v2")), of("2")},
		"the version says nothing":              {lossless + inOne, key, nil, of("1", sec("v2")), of("2")},
		"nobody vouches, one version says so":   {inOne, key, nil, of("1", sec("v2")), of("2")},
		"nobody vouches, both versions say so":  {inBoth, key, nil, of("1", sec("v2")), of("2")},
		"the other version says it of a parent": {lossless + said(permission(".spec.a", "plain", ""), permission(".spec", "secret", always)), key, nil, of("1", sec("v2")), of("2")},
		"nobody vouches, the version changes":   {inBoth, key, nil, of("1", sec("v2")), of("2", sec("v1"))},
	} {
		t.Run(name, func(t *testing.T) {
			k := safesOf(t, c.says, fields("a", "b", c.typ), fields("c", "a", c.typ))("v1")
			if !asks(t, k, c.set, c.old, c.new, secretVerb) {
				t.Error("the barrier is passed")
			}
		})
	}
	k := safesOf(t, lossless+said(plain, plainToo), fields("a", "b", key), fields("c", "a", key))("v1")
	if !asks(t, k, whole, of("1", safeEntry("v2", "sec", `"f:c":{}`)), of("2"), secretVerb) {
		t.Error("the owner of a field with another name goes, and nothing is charged")
	}
	var many []string
	for i := range 9 {
		many = append(many, ownerIn("v1", fmt.Sprintf("m%d", i), "Update", `{"f:metadata":{"f:name":{}}}`))
	}
	// The API server merges the oldest entry.
	old := of("1", append([]string{ownerIn("v2", "oldest", "Update", `{"f:spec":{"f:a":{}}}`)}, many...)...)
	merged := of("2", append([]string{ownerIn("v2", "ancient-changes", "Update", `{"f:spec":{"f:a":{}}}`), ownerIn("v1", "me", "Update", `{"f:spec":{"f:a":{}}}`)}, many...)...)
	if asks(t, k, whole, old, merged, secretVerb) {
		t.Error("a merge of the API server is charged")
	}
}

// D8: the unowned parts around a field of the other version disappear with the applier's next apply without that field.
func TestD8_UnownedFieldsAroundAFieldThatAnotherVersionRenames(t *testing.T) {
	fields := func(name string) string {
		return structOf("spec", fmt.Sprintf(`"color":{"type":"string"},%q:{"type":"object","properties":{"key":{"type":"string"},"guard":{"type":"string"}}}`, name))
	}
	k := safesOf(t, lossless+said(permission(".spec.secret.guard", "secret", always), permission(".spec.hidden.guard", "secret", always)), fields("secret"), fields("hidden"))("v1")
	of := func(more string) string {
		return object("v1", `"spec":{"color":"c","secret":{"key":"s","guard":"g"}}`, safeEntry("v1", "kc", `"f:color":{}`), safeEntry("v2", "argo", `"f:color":{}`+more))
	}
	if !asks(t, k, nil, of(""), of(`,"f:hidden":{"f:key":{}}`), secretVerb) {
		t.Error("the barrier is passed")
	}
}

// D8: an item whose key has no owner is removed, whatever the name of the list in another version is.
func TestD8_KeysOfItemsThatAnotherVersionRenames(t *testing.T) {
	fields := func(color, name string) string {
		return structOf("spec", fmt.Sprintf(`%q:{"type":"string"},%q:{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],
			"items":{"type":"object","required":["name"],"properties":{"name":{"type":"string"},"guard":{"type":"string"}}}}`, color, name))
	}
	k := safesOf(t, lossless+said(permission(".spec.safes[*].guard", "secret", always), permission(".spec.boxes[*].guard", "secret", always)), fields("color", "safes"), fields("tint", "boxes"))("v1")
	of := func(color string, owners ...string) string {
		return object("v1", fmt.Sprintf(`"spec":{"color":%q,"safes":[{"name":"a","guard":"g"}]}`, color), owners...)
	}
	in := func(fields string) string {
		return ownerIn("v2", "creator", "Update", `{"f:spec":{"f:boxes":{"k:{\"name\":\"a\"}":{`+fields+`}}}}`)
	}
	all, noKey := in(`".":{},"f:name":{},"f:guard":{}`), in(`".":{},"f:guard":{}`)
	for name, c := range map[string]struct{ old, new string }{
		"lost beside a change":               {of("c", all), of("d", noKey)},
		"lost":                               {of("c", all), of("c", noKey)},
		"lost with the whole entry":          {of("c", all), of("d")},
		"gained":                             {of("c", noKey), of("c", all)},
		"lost by a manager without the item": {of("c", in(`"f:name":{},"f:x":{}`)), of("d", in(`"f:x":{}`))},
	} {
		if !asks(t, k, nil, c.old, c.new, secretVerb) {
			t.Errorf("%s: the barrier is passed", name)
		}
	}
}

// D8: what is lost under a name of another version is charged as the whole object, also beside a change.
func TestD8_TheOwnerOfAContainerThatAnotherVersionRenames(t *testing.T) {
	fields := func(color, box string) string {
		return structOf("spec", fmt.Sprintf(`%q:{"type":"string"},%q:{"type":"object","properties":{"key":{"type":"string"}}}`, color, box))
	}
	k := safesOf(t, lossless+said(permission(".spec.box", "box", ""), permission(".spec.chest", "box", "")), fields("color", "box"), fields("tint", "chest"))("v1")
	of := func(color string, owners ...string) string {
		return object("v1", fmt.Sprintf(`"spec":{"color":%q,"box":{"key":"s"}}`, color), owners...)
	}
	for _, owned := range []string{`{}`, `{"f:key":{}}`} {
		creator := ownerIn("v2", "creator", "Update", `{"f:spec":{"f:chest":`+owned+`}}`)
		if !chargesAt(t, k, of("c", creator), of("d"), ".") {
			t.Errorf("the owner of %s goes, and the whole object is not charged", owned)
		}
	}
}

// D8: a conversion may keep fields in annotations that a version does not have. So only versions with the same fields, whose conversion
// loses nothing, have the annotations in common.
func TestD8_AnnotationsThatAConversionMayWrite(t *testing.T) {
	spec := func(name string) string { return structOf("spec", `"`+name+`":{"type":"string"}`) }
	of := func(fields string) string {
		return `{"apiVersion":"g.example/v1","metadata":{"name":"x","annotations":{"a":"1"},"managedFields":[` +
			ownerIn("v2", "creator", "Update", `{"f:metadata":{"f:annotations":{"f:b":{}`+fields+`}}}`) + `]},"spec":{"x":"x"}}`
	}
	for name, c := range map[string]struct {
		says, there string
		whole       bool
	}{
		"the same fields, nothing is lost":  {lossless + said("", ""), "x", false},
		"other fields":                      {lossless + said("", ""), "y", true},
		"the same fields, some may be lost": {said("", ""), "x", true},
	} {
		k := safesOf(t, c.says, spec("x"), spec(c.there))("v1")
		if got := chargesAt(t, k, of(`,"f:a":{}`), of(""), "."); got != c.whole {
			t.Errorf("%s: an owner of an annotation goes: the object is charged: %t, want %t", name, got, c.whole)
		}
	}
}

// D8: a set on the status holds for all owners there, also if it has granular:*, and also if the owners cannot be determined.
func TestD8_BarriersForOwnersOfTheStatus(t *testing.T) {
	alike := structOf("status", `"secret":{"type":"string"}`)
	k := safesOf(t, lossless+said("", ""), alike, alike)("v1")
	of := func(version, field string, owners ...string) string {
		return object(version, fmt.Sprintf(`"status":{%q:"s"}`, field), owners...)
	}
	all := schema.VerbSet{verbs.All(): {StatusOnly: true}}
	if !asks(t, k, all, of("v1", "secret", ownerIn("v1", "controller", "Update", `{"f:status":{".":{},"f:secret":{}}}`)), of("v1", "secret"), "granular:*") {
		t.Error("the verb of everything holds nothing in the status")
	}
	if asks(t, k, all, object("v1", `"spec":1`, ownerIn("v1", "controller", "Update", `{"f:spec":{}}`)), object("v1", `"spec":1`), "granular:*") {
		t.Error("it holds outside of the status")
	}
	k = safesOf(t, lossless+said(permission(".status.secret", "secret", ""), ""), alike, structOf("status", `"hidden":{"type":"string"}`))("v2")
	for name, fields := range map[string]string{"known": `{"f:status":{".":{},"f:hidden":{}}}`, "faulty": `{"f:status":{"f:hidden":{"q:x":{}}}}`} {
		if !asks(t, k, schema.VerbSet{verb(t, secretVerb): {StatusOnly: true}}, of("v2", "hidden", ownerIn("v2", "controller", "Update", fields)), of("v2", "hidden"), secretVerb) {
			t.Errorf("%s fields: the barrier is passed", name)
		}
	}
}

// D8: versions with the same names count as one version.
func TestD8_EntriesOfAVersionWithTheSameNames(t *testing.T) {
	alike := structOf("spec", `"x":{"type":"string"}`)
	k := safesOf(t, lossless+said("", ""), alike, alike)("v1")
	of := func(more string, owners ...string) string {
		return fmt.Sprintf(`{"apiVersion":"g.example/v1","metadata":{"name":"x","labels":{"a/x":"1"%s},"managedFields":[%s]},"spec":{"x":"x"}}`, more, strings.Join(owners, ","))
	}
	const labels = `{"f:metadata":{"f:labels":{".":{},"f:a/x":{}}}}`
	me := ownerIn("v1", "me", "Apply", `{"f:metadata":{"f:labels":{"f:b/y":{}}}}`)
	for _, version := range []string{"v1", "v2"} {
		set := schema.VerbSet{verb(t, "granular:label(a)"): {}}
		if asks(t, k, set, of("", ownerIn(version, "creator", "Update", labels)), of(`,"b/y":"2"`, ownerIn(version, "creator", "Update", labels), me), "granular:label(a)") {
			t.Errorf("a field of an entry of %s counts as unowned", version)
		}
	}
	got, err := Diff(t.Context(), []byte(of("", ownerIn("v2", "me", "Apply", labels))), []byte(of("", ownerIn("v1", "me", "Apply", labels))), k, nil)
	if err != nil || len(got) > 0 {
		t.Errorf("a manager that applies the same in the request's version: %q, %v", renderAll(got), err)
	}
	// An API server that does not know the version drops the entry after some time.
	if got, err := Diff(t.Context(), []byte(of("", ownerIn("v1", "me", "Apply", labels))), []byte(of("", ownerIn("v2", "me", "Apply", labels))), k, nil); err != nil || len(got) == 0 {
		t.Errorf("an entry comes to have another version than the request's: %q, %v", renderAll(got), err)
	}
}

// D8: an atomic item has no parts that managers can own.
func TestD8_AnAtomicItemIsHeldByItsOwner(t *testing.T) {
	refs := structOf("spec", `"refs":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],
		"items":{"type":"object","x-kubernetes-map-type":"atomic","required":["name"],"properties":{"name":{"type":"string"}}}}`)
	says := permission(".spec.refs[*]", "ref", "")
	k := safesOf(t, lossless+said(says, says), refs, refs)("v1")
	entry := func(manager, operation, name string) string {
		return ownerIn("v1", manager, operation, `{"f:spec":{"f:refs":{"k:{\"name\":\"`+name+`\"}":{}}}}`)
	}
	old := object("v1", `"spec":{"refs":[{"name":"p"}]}`, entry("adder", "Update", "p"))
	got, err := Diff(t.Context(), []byte(old), []byte(object("v1", `"spec":{"refs":[{"name":"p"},{"name":"q"}]}`, entry("adder", "Update", "p"), entry("me", "Apply", "q"))), k, nil)
	if err != nil || len(got) != 1 || got[0].Operation != Added {
		t.Errorf("%q, %v; want the new item alone", renderAll(got), err)
	}
	expectDiff(t, k, nil, old, object("v1", `"spec":{"refs":[{"name":"p"}]}`), `ownership .spec.refs[name="p"]: * specification g.example/ref`)
}

// D8: a list whose items have more fields in another version is the same list.
func TestD8_ItemsOfWhichAVersionHasMore(t *testing.T) {
	items := func(more string) string {
		return structOf("spec", `"items":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],"items":{"type":"object","required":["name"],
			"properties":{"name":{"type":"string"},"size":{"type":"string"}`+more+`}}}`)
	}
	item := permission(".spec.items[*]", "item", "")
	k := safesOf(t, lossless+said(item, item), items(""), items(`,"extra":{"type":"string"}`))("v2")
	entry := func(version, manager, operation, name string) string {
		return ownerIn(version, manager, operation, `{"f:spec":{"f:items":{"k:{\"name\":\"`+name+`\"}":{".":{},"f:name":{},"f:size":{}}}}}`)
	}
	const one, two = `"spec":{"items":[{"name":"a","size":"1"}]}`, `"spec":{"items":[{"name":"a","size":"1"},{"name":"b","size":"1"}]}`
	for name, c := range map[string]struct {
		old, new string
		want     int
	}{
		"another's item":          {object("v2", one, entry("v1", "creator", "Update", "a")), object("v2", two, entry("v1", "creator", "Update", "a"), entry("v2", "me", "Apply", "b")), 1},
		"an unchanged manifest":   {object("v2", one, entry("v1", "argo", "Apply", "a")), object("v2", one, entry("v2", "argo", "Apply", "a")), 0},
		"one value of the item":   {object("v2", one, entry("v1", "argo", "Apply", "a")), object("v2", strings.Replace(one, `"1"`, `"2"`, 1), entry("v2", "argo", "Apply", "a")), 1},
		"the owner of the item":   {object("v2", one, entry("v1", "argo", "Apply", "a")), object("v2", one), 3},
		"an owner in the other's": {object("v2", one), object("v2", one, entry("v1", "argo", "Apply", "a")), 1},
	} {
		if got, err := Diff(t.Context(), []byte(c.old), []byte(c.new), k, nil); err != nil || len(got) != c.want {
			t.Errorf("%s: %q, %v; want %d", name, renderAll(got), err, c.want)
		}
	}
}

// D8: API servers convert to versions that they do not serve, and keep the entries of such versions.
func TestD8_EntriesOfAVersionThatIsNotServed(t *testing.T) {
	k := safes(t, bothSay+unserved)("v1")
	if !asks(t, k, nil, safe("v1", "c", safeEntry("v2", "sec", `"f:hidden":{}`)), safe("v1", "d"), secretVerb) {
		t.Error("the owner of a guarded field is removed with a change beside it")
	}
	if !asks(t, k, nil, safe("v1", "c"), safe("v1", "c", safeEntry("v2", "sec", `"f:hidden":{}`)), secretVerb) {
		t.Error("a guarded field gets a new owner")
	}
}

// P5: a denial of the whole object names the entry of managedFields that is the reason.
func TestP5_TheEntryOfAnotherVersionIsNamed(t *testing.T) {
	k := safesOf(t, "", structOf("spec", `"a":{"type":"string"}`), structOf("spec", `"b":{"type":"string"}`))("v1")
	of := func(fields string) string {
		return object("v1", `"spec":{"a":"1"}`, ownerIn("v2", "sync", "Apply", fields))
	}
	rs, err := Diff(t.Context(), []byte(of(`{}`)), []byte(of(`{"f:spec":{"f:b":{}}}`)), k, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := decideWith(t, holds("granular"), Limits{}, rs...).Denial.Message(Subject{Resource: "things.g.example", Name: "x", User: "bot", Verb: "update"})
	if want := `may not change . (the object as a whole) (its field managers: "sync" in g.example/v2): needs granular:*`; !strings.Contains(got, want) {
		t.Errorf("%s\ndoes not say\n%s", got, want)
	}
}

// D8: a conversion may drop an empty struct together with its owner. That owner then does not hold the struct.
func TestD8_AContainerIsHeldWhereConversionsKeepIt(t *testing.T) {
	grp := structOf("spec", `"color":{"type":"string"},"grp":{"type":"object","properties":{"x":{"type":"integer"},"lock":{"type":"string"}}}`)
	flat := structOf("spec", `"color":{"type":"string"},"grpX":{"type":"integer"},"grpLock":{"type":"string"}`)
	of := func(x int, owners ...string) string {
		return object("v1", fmt.Sprintf(`"spec":{"color":"c","grp":{"x":%d,"lock":"l"}}`, x), append(owners, ownerIn("v1", "creator", "Update", `{"f:spec":{"f:color":{},"f:grp":{}}}`))...)
	}
	argo := func(fields string) string {
		return ownerIn("v1", "argo", "Apply", `{"f:spec":{"f:color":{}`+fields+`}}`)
	}
	old, new := of(1, argo("")), of(2, argo(`,"f:grp":{"f:x":{}}`))
	guarded := said(permission(".spec.grp.lock", "secret", always), permission(".spec.grpLock", "secret", always))
	if k := safesOf(t, lossless+guarded, grp, flat)("v1"); !asks(t, k, nil, old, new, secretVerb) {
		t.Error("its owner holds it, though conversions drop it")
	}
	inOne := said(permission(".spec.grp.lock", "secret", always), permission(".spec.grp.lock", "secret", always))
	if k := safesOf(t, byName+inOne, grp, grp)("v1"); asks(t, k, nil, old, new, secretVerb) {
		t.Error("its owner does not hold it, though nothing is converted")
	}
}

// D8: a guarded field may not exist yet, and may get a value after its owner was removed.
func TestD8_OwnersOfAnAbsentField(t *testing.T) {
	here, there := structOf("spec", `"color":{"type":"string"},"sub":{"type":"string"}`), structOf("spec", `"color":{"type":"string"},"under":{"type":"string"}`)
	k := safesOf(t, lossless+said(permission(".spec.sub", "secret", always), permission(".spec.under", "secret", always)), here, there)("v1")
	of := func(fields string) string {
		return object("v1", `"spec":{"color":"c"}`, ownerIn("v2", "argo", "Apply", `{"f:spec":{"f:color":{}`+fields+`}}`))
	}
	if !asks(t, k, nil, of(""), of(`,"f:under":{}`), secretVerb) {
		t.Error("argo gets a guarded field")
	}
}
