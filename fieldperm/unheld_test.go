package fieldperm

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/schema/endpoint"
)

const (
	unheldSpec  = `,"labels":{"a/x":"1","policy/x":"1","team/y":"1"}|,"spec":{"feature":{"enabled":true,"level":1},"containers":[{"name":"web","image":"w"}]}`
	ownsA       = `{"f:metadata":{"f:labels":{"f:a/x":{}}}}`
	ownsTeam    = `{"f:metadata":{"f:labels":{"f:team/y":{}}}}`
	gainsA      = `added .metadata.labels["a/x"]: * metadata labels label label(a)`
	losesPolicy = `ownership .metadata.labels["policy/x"]: * metadata labels label label(policy)`
)

// TestD8_UnownedFieldsAroundAField: a manager that applies a field of a container may remove the container. A manager holds the
// container only by something that the verbs of single fields cannot remove.
func TestD8_UnownedFieldsAroundAField(t *testing.T) {
	k, none := compileGadget(t)
	argo := owner("argo", "Apply", ownsA)
	before := strings.Replace(unheldSpec, `"a/x":"1",`, "", 1)
	team := owner("team", "Update", ownsTeam)
	creator := owner("creator", "Update", `{"f:metadata":{"f:labels":{".":{},"f:team/y":{}}}}`)
	other := owner("flux", "Apply", ownsTeam)
	spec := func(image, level string) string {
		return `|,"spec":{"feature":{"level":` + level + `},"containers":[{"name":"web","image":"` + image + `"}]}`
	}
	items := `"f:containers":{"k:{\"name\":\"web\"}":{".":{},"f:name":{},"f:image":{}}}`
	image := owner("imager", "Apply", `{"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{".":{},"f:name":{},"f:image":{}}}}}`)
	for _, c := range []struct {
		rule, old, new string
		want           []string
	}{
		{"nobody holds the labels", owned(before), owned(unheldSpec, argo), []string{gainsA, losesPolicy, `ownership .metadata.labels["team/y"]: * metadata labels label label(team)`}},
		{"an updater has a label, which may go by its own verb", owned(before, team), owned(unheldSpec, argo, team), []string{gainsA, losesPolicy}},
		{"an updater has the labels' own entry", owned(before, creator), owned(unheldSpec, argo, creator), []string{gainsA}},
		{"an applier has a label", owned(before, other), owned(unheldSpec, argo, other), []string{gainsA}},
		{"an applier loses that label in the same request", owned(before, other), owned(strings.Replace(unheldSpec, `"team/y":"1"`, `"team/y":"2"`, 1), argo), []string{gainsA, losesPolicy, `modified .metadata.labels["team/y"]: * metadata labels label label(team)`}},
		{"an applier has them in another version", owned(before, strings.Replace(other, "com/v1", "com/v0", 1)), owned(unheldSpec, argo, strings.Replace(other, "com/v1", "com/v0", 1)), []string{gainsA, losesPolicy, `ownership .metadata.labels["team/y"]: * metadata labels label label(team)`}},
		{"the manager has had a label before", owned(before, owner("argo", "Apply", ownsTeam)), owned(unheldSpec, owner("argo", "Apply", `{"f:metadata":{"f:labels":{"f:a/x":{},"f:team/y":{}}}}`)), []string{gainsA, `ownership .metadata.labels["team/y"]: * metadata labels label label(team)`}},
		{"there is nothing in the labels, which go themselves", owned(`,"labels":{}`), owned(`,"labels":{"a/x":"1"}`, argo), []string{gainsA, "ownership .metadata.labels: * metadata labels"}},
		{"there is nothing in labels that the creator has", owned(`,"labels":{}`, owner("creator", "Update", `{"f:metadata":{"f:labels":{}}}`)), owned(`,"labels":{"a/x":"1"}`, argo, owner("creator", "Update", `{"f:metadata":{"f:labels":{}}}`)), []string{gainsA}},
		{"an updater gains as well", owned(before), owned(unheldSpec, owner("me", "Update", ownsA)), []string{gainsA}},
		{"an updater goes, and leaves another's label", owned(unheldSpec, argo, team), owned(strings.Replace(unheldSpec, `,"team/y":"1"`, "", 1), argo), []string{`removed .metadata.labels["team/y"]: * metadata labels label label(team)`}},
		{"of a struct managers own all fields, in lists too", owned(spec("v", "1"), owner("creator", "Update", `{"f:spec":{"f:feature":{"f:level":{}},`+items+`}}`)), owned(spec("w", "1"), owner("creator", "Update", strings.Replace(`{"f:spec":{"f:feature":{"f:level":{}},`+items+`}}`, `,"f:image":{}`, "", 1)), image), []string{`modified .spec.containers[name="web"].image: * specification container container(web) image image(web)`}},
		{"of a struct no manager owns a field", owned(spec("v", "1"), owner("creator", "Update", `{"f:spec":{`+items+`}}`)), owned(spec("w", "1"), owner("creator", "Update", strings.Replace(`{"f:spec":{`+items+`}}`, `,"f:image":{}`, "", 1)), image), []string{`modified .spec.containers[name="web"].image: * specification container container(web) image image(web)`, "ownership .spec.feature.level: * specification feature"}},
	} {
		t.Run(c.rule, func(t *testing.T) { expectDiff(t, k, none, c.old, c.new, c.want...) })
	}
}

// TestD8_C2_BarriersInsideAValueThatChangesItsOwner: the owner of a container may remove it, with the parts behind barriers.
func TestD8_C2_BarriersInsideAValueThatChangesItsOwner(t *testing.T) {
	argo := func(fields string) string { return owner("argo", "Apply", fields) }
	const barred = `ownership .metadata.labels["policy/x"]: (*) (metadata) (labels) (label) label(policy)`
	rules := `|,"spec":{"rules":[{"host":"a"},{"host":"b","admin":true}]}`
	item := `|,"spec":{"containers":[{"name":"web","image":"w","privileged":true}]}`
	labels := strings.Replace(unheldSpec, `"a/x":"1",`, "", 1)
	own := `{"f:metadata":{"f:labels":{".":{},"f:team/y":{}}}}`
	for _, c := range []struct {
		rule, old, new string
		want           []string
	}{
		{"a label without an owner", owned(labels), owned(unheldSpec, argo(ownsA)), []string{gainsA, barred, `ownership .metadata.labels["team/y"]: * metadata labels label label(team)`}},
		{"a label that another owns", owned(labels, owner("security", "Update", `{"f:metadata":{"f:labels":{"f:policy/x":{}}}}`)), owned(unheldSpec, argo(ownsA), owner("security", "Update", `{"f:metadata":{"f:labels":{"f:policy/x":{}}}}`)), []string{gainsA, `ownership .metadata.labels["team/y"]: * metadata labels label label(team)`}},
		{"an atomic list", owned(rules), owned(rules, argo(`{"f:spec":{"f:rules":{}}}`)), []string{"ownership .spec.rules: * specification rules", "ownership .spec.rules[1].admin: (*) (specification) (rules) admin"}},
		{"an atomic list that changes, with what stays in it", owned(rules), owned(strings.Replace(rules, `"host":"a"`, `"host":"c"`, 1), argo(`{"f:spec":{"f:rules":{}}}`)), []string{"modified .spec.rules: * specification rules", "ownership .spec.rules[1].admin: (*) (specification) (rules) admin"}},
		{"an atomic list that changes, to an updater", owned(rules), owned(strings.Replace(rules, `"host":"a"`, `"host":"c"`, 1), owner("b", "Update", `{"f:spec":{"f:rules":{}}}`)), []string{"modified .spec.rules: * specification rules"}},
		{"an atomic list that is lost", owned(rules, argo(`{"f:spec":{"f:rules":{}}}`)), owned(rules), []string{"ownership .spec.rules: * specification rules", "ownership .spec.rules[1].admin: (*) (specification) (rules) admin"}},
		{"an atomic list that two gain, once", owned(rules), owned(rules, argo(`{"f:spec":{"f:rules":{}}}`), owner("b", "Update", `{"f:spec":{"f:rules":{}}}`)), []string{"ownership .spec.rules: * specification rules", "ownership .spec.rules[1].admin: (*) (specification) (rules) admin"}},
		{"an item", owned(item), owned(item, owner("b", "Update", `{"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{".":{},"f:name":{}}}}}`)), []string{`ownership .spec.containers[name="web"].name: * specification container container(web)`, `ownership .spec.containers[name="web"]: * specification container container(web)`, `ownership .spec.containers[name="web"].privileged: (*) (specification) (container) (container(web)) privilege`}},
		{"an item of nothing but its own entry", owned(item), owned(item, owner("b", "Update", `{"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{}}}}`)), []string{`ownership .spec.containers[name="web"]: * specification container container(web)`, `ownership .spec.containers[name="web"].privileged: (*) (specification) (container) (container(web)) privilege`}},
		{"the own entry of labels", owned(labels, owner("creator", "Update", own)), owned(labels, owner("creator", "Update", ownsTeam)), []string{"ownership .metadata.labels: * metadata labels", barred}},
		{"the own entry of labels that another has all of", owned(labels, owner("creator", "Update", own), owner("b", "Update", `{"f:metadata":{"f:labels":{"f:policy/x":{}}}}`)), owned(labels, owner("creator", "Update", ownsTeam), owner("b", "Update", `{"f:metadata":{"f:labels":{"f:policy/x":{}}}}`)), []string{"ownership .metadata.labels: * metadata labels", barred}},
		{"a label that an applier holds until its last one goes", owned(labels, owner("flux", "Apply", ownsTeam)), owned(unheldSpec, owner("flux", "Apply", ownsTeam), argo(ownsA)), []string{gainsA, barred}},
		{"a label that a future applier holds by the labels' own entry", owned(labels, owner("kubectl-client-side-apply", "Update", own)), owned(unheldSpec, owner("kubectl-client-side-apply", "Update", own), argo(ownsA)), []string{gainsA, barred}},
		{"a label that a client-side applier holds by its entry", owned(labels, owner("helm", "Update", ownsTeam)), owned(unheldSpec, owner("helm", "Update", `{"f:metadata":{"f:labels":{"f:a/x":{},"f:team/y":{}}}}`)), []string{gainsA}},
		{"owners that cannot be read", owned(metadataOf(labels) + rules), owned(metadataOf(labels)+rules, argo(`{"x:y":{}}`)), []string{wholeGadget, "ownership .: label(policy)"}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			k, set := compileGadget(t, "granular:label(policy)")
			expectDiff(t, k, set, c.old, c.new, c.want...)
		})
	}
}

// TestD8_C2_InheritedBarriersInsideAValueThatChangesItsOwner: the barrier is above the field without owner, and below the value that changes
// its owner.
func TestD8_C2_InheritedBarriersInsideAValueThatChangesItsOwner(t *testing.T) {
	k, none := compileEntries(t, append(gadgetEntries(), entry(".spec.limits", "limits", excluded)))
	const spec = `|,"spec":{"limits":{"low":1},"tree":{"value":"v"}}`
	expectDiff(t, k, none, owned(spec, owner("a", "Update", `{"f:spec":{".":{},"f:tree":{"f:value":{}}}}`)), owned(spec, owner("a", "Update", `{"f:spec":{"f:tree":{"f:value":{}}}}`)),
		"ownership .spec: * specification", "ownership .spec.limits: (*) (specification) limits")
}

// TestD8_C2_DefaultsBesideFieldsOfOtherAppliers: an applied object has values that the API server gives to every object. They have
// no owner and may be behind barriers. If they are removed, the API server sets them again.
func TestD8_C2_DefaultsBesideFieldsOfOtherAppliers(t *testing.T) {
	k, set := compileEntries(t, append(gadgetEntries(), entry(".spec.replicas", "", written(endpoint.Write{On: "CREATE", Becomes: values("1")[0]}))), "granular:scale")
	flux, bot := owner("flux", "Apply", `{"f:spec":{"f:tree":{"f:value":{}}}}`), owner("bot", "Apply", `{"f:spec":{"f:plain":{}}}`)
	of := func(replicas, plain string, owners ...string) string {
		return owned(`|,"spec":{"replicas":`+replicas+`,"plain":"`+plain+`","tree":{"value":"v"}}`, owners...)
	}
	const plain = "modified .spec.plain: * specification"
	expectDiff(t, k, set, of("1", "a", flux), of("1", "b", flux, bot), plain)
	const charged = "ownership .spec.replicas: (*) (specification) scale"
	expectDiff(t, k, set, of("2", "a", flux), of("2", "b", flux, bot), plain, charged)
	// The other field may be set in the request that removes the value.
	k, set = compileEntries(t, append(gadgetEntries(), entry(".spec.replicas", "", written(endpoint.Write{On: "CREATE", Without: ".spec.note", Becomes: values("1")[0]}))), "granular:scale")
	expectDiff(t, k, set, of("1", "a", flux), of("1", "b", flux, bot), plain, charged)
}

// A declared default appears and disappears with the struct that contains it.
func TestD8_C2_ADeclaredDefaultGoesWithItsStruct(t *testing.T) {
	of := structOf("spec", `"image":{"type":"string"},"other":{"type":"string"},"pull":{"type":"string","default":"Always"}`)
	k := safesOf(t, byName+said(permission(".spec.pull", "secret", always), permission(".spec.pull", "secret", always)), of, of)("v1")
	argo := ownerIn("v1", "argo", "Apply", `{"f:spec":{"f:other":{}}}`)
	with := func(image string, owners ...string) string {
		return object("v1", `"spec":{"image":"`+image+`","other":"o","pull":"Always"}`, append(owners, argo)...)
	}
	if !asks(t, k, nil, with("1"), with("2", ownerIn("v1", "bot", "Apply", `{"f:spec":{"f:image":{}}}`)), secretVerb) {
		t.Error("the barrier is passed")
	}
}

// A manager that owns an item and its keys holds the item through any conversion, because an item with keys is not empty.
func TestD8_AnItemIsHeldThroughAnyConversion(t *testing.T) {
	items := func(name string) string {
		return structOf("spec", `"`+name+`":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],"items":{"type":"object","required":["name"],"properties":{"name":{"type":"string"},"val":{"type":"integer"},"lock":{"type":"string"}}}}`)
	}
	k := safesOf(t, lossless+said(permission(".spec.items[*].lock", "secret", always), permission(".spec.things[*].lock", "secret", always)), items("items"), items("things"))("v1")
	const all, some = `{"f:spec":{"f:items":{"k:{\"name\":\"a\"}":{".":{},"f:lock":{},"f:name":{},"f:val":{}}}}}`, `{"f:spec":{"f:items":{"k:{\"name\":\"a\"}":{".":{},"f:lock":{},"f:name":{}}}}}`
	of := func(val int, owners ...string) string {
		return object("v1", fmt.Sprintf(`"spec":{"items":[{"name":"a","val":%d,"lock":"l"}]}`, val), owners...)
	}
	bot := ownerIn("v1", "bot", "Apply", `{"f:spec":{"f:items":{"k:{\"name\":\"a\"}":{".":{},"f:name":{},"f:val":{}}}}}`)
	got, err := Diff(t.Context(), []byte(of(1, ownerIn("v1", "creator", "Update", all))), []byte(of(2, ownerIn("v1", "creator", "Update", some), bot)), k, nil)
	if err != nil || len(got) != 1 {
		t.Errorf("%q, %v", renderAll(got), err)
	}
}
