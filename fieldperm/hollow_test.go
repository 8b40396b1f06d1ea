package fieldperm

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/test/schematest"
)

// chargesAt reports whether a change is charged at a path.
func chargesAt(t *testing.T, k *schema.Kind, old, new, path string) bool {
	t.Helper()
	got, err := Diff(t.Context(), []byte(old), []byte(new), k, nil)
	if err != nil {
		t.Fatal(err)
	}
	return charges(got, path)
}

// D8: an apply converts the object to each version that has an entry. The conversion may drop an empty container, and with it the unowned
// parts. So the whole object is charged.
func TestD8_EmptyAppliedContainersAndAnEntryOfAnotherVersion(t *testing.T) {
	spec := structOf("spec", `"color":{"type":"string"},"size":{"type":"integer"},"box":{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"},"m":{"type":"object","x-kubernetes-map-type":"atomic","additionalProperties":{"type":"string"}}}}`)
	permissions := permission(".spec.color", "color", "") + "," + permission(".spec.box.b", "b", "")
	const whole = "."
	of := func(color, box string, owners ...string) string {
		return object("v1", fmt.Sprintf(`"spec":{"color":%q,"box":{%s}}`, color, box), owners...)
	}
	argo := func(fields string) string { return ownerIn("v2", "argo", "Apply", `{"f:spec":{"f:box":{`+fields+`}}}`) }
	entry := func(version, name, fields string) string {
		return ownerIn(version, name, "Update", `{"f:spec":{`+fields+`}}`)
	}
	creator, painter := entry("v2", "creator", `".":{},"f:color":{}`), entry("v1", "painter", `"f:color":{}`)
	bare := entry("v2", "creator", ``)
	both, here := `"a":"x","b":"y"`, ownerIn("v1", "argo", "Apply", `{"f:spec":{"f:box":{}}}`)
	colored, withB := entry("v2", "creator", `"f:color":{}`), ownerIn("v1", "argo", "Apply", `{"f:spec":{"f:box":{"f:b":{}}}}`)
	withColor, sized := ownerIn("v1", "argo", "Apply", `{"f:spec":{"f:color":{},"f:box":{}}}`), entry("v1", "x", `"f:size":{}`)
	boxed := func(field string) string { return entry("v1", "x", `"f:box":{"f:`+field+`":{}}`) }
	for name, c := range map[string]struct {
		old, new string
		charged  bool
	}{
		"another version comes":                                     {of("c", both, argo(""), creator), of("d", both, argo(""), bare, painter), true},
		"it is there before":                                        {of("c", both, argo(""), bare, painter), of("d", both, argo(""), bare, entry("v1", "another", `"f:color":{}`)), true},
		"no other version is there":                                 {of("c", both, here, painter), of("d", both, here, entry("v1", "another", `"f:color":{}`)), true},
		"owners stay":                                               {of("c", both, argo(""), bare, painter), of("d", both, argo(""), bare, painter), true},
		"it is applied with something in it":                        {of("c", both, argo(`"f:b":{}`), creator), of("d", both, argo(`"f:b":{}`), bare, painter), false},
		"another owns something in it":                              {of("c", both, argo(""), creator, entry("v2", "x", `"f:box":{"f:b":{}}`)), of("d", both, argo(""), bare, painter, entry("v2", "x", `"f:box":{"f:b":{}}`)), true},
		"another applies a value in it":                             {of("c", both, argo(""), creator, ownerIn("v2", "x", "Apply", `{"f:spec":{"f:box":{"f:b":{}}}}`)), of("d", both, argo(""), bare, painter, ownerIn("v2", "x", "Apply", `{"f:spec":{"f:box":{"f:b":{}}}}`)), false},
		"another applies a value in it in this version":             {of("c", both, argo(""), creator, ownerIn("v1", "x", "Apply", `{"f:spec":{"f:box":{"f:b":{}}}}`)), of("d", both, argo(""), bare, painter, ownerIn("v1", "x", "Apply", `{"f:spec":{"f:box":{"f:b":{}}}}`)), true},
		"the entry itself comes to another version":                 {of("c", both, argo("")), of("c", both, here), true},
		"it comes to another version, and others own what is in it": {of("c", `"b":"y"`, argo(""), entry("v1", "x", `".":{},"f:color":{},"f:box":{"f:b":{}}`)), of("c", `"b":"y"`, here, entry("v1", "x", `".":{},"f:color":{},"f:box":{"f:b":{}}`)), true},
		"it comes to another version with the entry of another":     {of("c", both, argo(""), ownerIn("v2", "x", "Apply", `{"f:spec":{"f:box":{"f:b":{}}}}`)), of("c", both, here, ownerIn("v1", "x", "Apply", `{"f:spec":{"f:box":{"f:b":{}}}}`)), true},
		"it comes to another version with a value":                  {of("c", both, argo(`"f:b":{}`)), of("c", both, ownerIn("v1", "argo", "Apply", `{"f:spec":{"f:box":{"f:b":{}}}}`)), false},
		"it is applied in this version":                             {of("c", both, here, creator), of("d", both, here, bare, painter), true},
		"and has nothing without an owner":                          {of("c", `"b":"y"`, here, creator, entry("v2", "x", `"f:box":{"f:b":{}}`)), of("d", `"b":"y"`, here, bare, painter, entry("v2", "x", `"f:box":{"f:b":{}}`)), false},
		"nothing but an empty struct is applied in it":              {of("c", `"a":"x","m":{}`, ownerIn("v1", "argo", "Apply", `{"f:spec":{"f:box":{"f:m":{}}}}`), creator), of("d", `"a":"x","m":{}`, ownerIn("v1", "argo", "Apply", `{"f:spec":{"f:box":{"f:m":{}}}}`), bare, painter), true},
		"nothing is in it here, and it is of another version":       {of("c", "", argo(""), creator), of("d", "", argo(""), bare, painter), true},
		"there is nothing in it":                                    {of("c", "", here, creator), of("d", "", here, bare, painter), false},
		"the field of another owner in it is removed":               {of("c", both, argo(""), painter, entry("v1", "x", `"f:box":{"f:b":{}}`)), of("c", `"a":"x"`, argo(""), painter), true},
		"nobody applies":                                            {of("c", both, entry("v2", "x", `"f:box":{}`), creator), of("d", both, entry("v2", "x", `"f:box":{}`), bare, painter), false},
		"all of it has owners, but for the rest":                    {of("c", `"b":"y"`, argo(""), creator), of("d", `"b":"y"`, argo(""), bare, painter), true},
		"a value of another is emptied, and owners stay":            {of("c", `"a":"x","m":{"k":"v"}`, here, colored, boxed("m")), of("c", `"a":"x","m":{}`, here, colored, boxed("m")), true},
		"a value of another becomes zero":                           {of("c", both, here, colored, boxed("b")), of("c", `"a":"x","b":""`, here, colored, boxed("b")), true},
		"a value of another changes":                                {of("c", both, here, colored, boxed("b")), of("c", `"a":"x","b":"z"`, here, colored, boxed("b")), true},
		"a value is emptied beside an applied one":                  {of("c", `"a":"x","b":"y","m":{"k":"v"}`, withB, colored, boxed("m")), of("c", `"a":"x","b":"y","m":{}`, withB, colored, boxed("m")), false},
		"a value is emptied, and all entries have one version":      {of("c", `"a":"x","m":{"k":"v"}`, here, boxed("m")), of("c", `"a":"x","m":{}`, here, boxed("m")), true},
		"a value of another goes, and all entries have one version": {of("c", both, here, boxed("b")), of("c", `"a":"x"`, here, entry("v1", "x", `"f:box":{}`)), true},
		"a value beside it goes":                                    {object("v1", `"spec":{"color":"c","size":1,"box":{"a":"x"}}`, withColor, sized), object("v1", `"spec":{"color":"c","box":{"a":"x"}}`, withColor), true},
		"an owner of a value goes":                                  {of("c", both, here, boxed("b")), of("c", both, here), true},
		"a value is emptied that nobody owns":                       {of("c", `"a":"x","m":{"k":"v"}`, here, colored), of("c", `"a":"x","m":{}`, here, colored), true},
		"zero is applied in it":                                     {of("c", `"a":"x","b":""`, withB, creator), of("d", `"a":"x","b":""`, withB, bare, painter), false},
	} {
		k := safesOf(t, lossless+said(permissions, permissions), spec, spec)("v1")
		if got := chargesAt(t, k, c.old, c.new, whole); got != c.charged {
			t.Errorf("%s: %s is charged: %t, want %t", name, whole, got, c.charged)
		}
		byNames := safesOf(t, byName+said(permissions, permissions), spec, spec)("v1")
		if chargesAt(t, byNames, c.old, c.new, whole) {
			t.Errorf("%s: %s is charged, though nothing is converted", name, whole)
		}
	}
}

// D8: a container that is applied empty in the names of another version is charged as the whole object, because its contents are not
// known.
func TestD8_EmptyAppliedContainersByTheNamesOfAnotherVersion(t *testing.T) {
	inner := `{"type":"object","properties":{"a":{"type":"string"}}}`
	here, there := structOf("spec", `"color":{"type":"string"},"out":{"type":"string","nullable":true},"box":`+inner), structOf("spec", `"color":{"type":"string"},"crate":`+inner)
	color := permission(".spec.color", "color", "")
	k := safesOf(t, lossless+said(color, color), here, there)("v1")
	of := func(color, owned string, owners ...string) string {
		return object("v1", fmt.Sprintf(`"spec":{"color":%q,"box":{"a":"x"}}`, color), append(owners, ownerIn("v2", "argo", "Apply", `{"f:spec":{`+owned+`}}`))...)
	}
	creator, painter := ownerIn("v2", "creator", "Update", `{"f:spec":{"f:color":{}}}`), ownerIn("v1", "painter", "Update", `{"f:spec":{"f:color":{}}}`)
	if !chargesAt(t, k, of("c", `"f:crate":{}`, creator), of("d", `"f:crate":{}`, painter), ".") {
		t.Error("the crate is the box, and it goes")
	}
	got, err := Diff(t.Context(), []byte(of("c", `"f:crate":{}`, painter)), []byte(of("d", `"f:crate":{}`, painter)), k, nil)
	says := func(r Requirement) bool {
		return r.Path.String() == "." && strings.HasPrefix(r.Instead, `"argo" applies .spec.crate in g.example/v2 without a value that every version has in it`)
	}
	if err != nil || !slices.ContainsFunc(got, says) {
		t.Errorf("the cure is missing in %v (%v)", got, err)
	}
	if !chargesAt(t, k, of("c", `"f:crate":{"f:a":{}}`, creator), of("d", `"f:crate":{"f:a":{}}`, painter), ".") {
		t.Error("the value in the crate may be null")
	}
	if !chargesAt(t, k, of("c", `"f:crate":{}`, painter), of("d", `"f:crate":{}`, painter), ".") {
		t.Error("the other version may have a part of the color in the crate")
	}
	moved := func(out string) string {
		return object("v1", fmt.Sprintf(`"spec":{"color":"c","out":%s,"box":{"a":"x"}}`, out), ownerIn("v1", "x", "Update", `{"f:metadata":{"f:labels":{"f:a":{}}},"f:spec":{"f:out":{}}}`), ownerIn("v2", "argo", "Apply", `{"f:spec":{"f:color":{},"f:crate":{}}}`))
	}
	if !chargesAt(t, k, moved(`"x"`), moved("null"), ".") {
		t.Error("the other version may have the value in the crate")
	}
	if !chargesAt(t, k, moved(`"x"`), moved(`"y"`), ".") {
		t.Error("the other version may have a part of the value in the crate")
	}
	whole := strings.Replace(there, `"crate":{`, `"crate":{"x-kubernetes-map-type":"atomic",`, 1)
	if chargesAt(t, safesOf(t, lossless+said(color, color), here, whole)("v1"), of("c", `"f:crate":{},"f:color":{}`, creator), of("d", `"f:crate":{},"f:color":{}`, painter), ".") {
		t.Error("the crate is atomic: its owner owns its contents")
	}
}

// D8: a value keeps what it is applied in only if each version has it there, because a conversion of the owned values alone may drop it (T40). A declared
// default does not (N1). An annotation may be the conversion's (V4).
func TestD8_WhatKeepsAnAppliedContainer(t *testing.T) {
	here := structOf("spec", `"mode":{"type":"string"},"box":{"type":"object","properties":{"va":{"type":"integer"},"b":{"type":"string"},"d":{"type":"string","default":"x"},"at":{"type":"object","x-kubernetes-map-type":"atomic","properties":{"n":{"type":"string"}}},"more":{"type":"object","x-kubernetes-map-type":"atomic","properties":{"n":{"type":"string"}}}}}`)
	there := structOf("spec", `"mode":{"type":"string"},"val":{"type":"integer"},"box":{"type":"object","properties":{"b":{"type":"string"},"d":{"type":"string","default":"x"},"at":{"type":"object","x-kubernetes-map-type":"atomic","properties":{"n":{"type":"string"}}},"more":{"type":"object","x-kubernetes-map-type":"atomic","properties":{"n":{"type":"string"},"o":{"type":"string"}}}}}`)
	mode := permission(".spec.mode", "mode", "")
	k := safesOf(t, lossless+said(mode, mode), here, there)("v1")
	of := func(mode, box string, owners ...string) string {
		return object("v1", fmt.Sprintf(`"spec":{"mode":%q,"box":{%s}}`, mode, box), append(owners, ownerIn("v1", "x", "Update", `{"f:spec":{"f:mode":{}}}`))...)
	}
	argo := func(version, fields string) string {
		return ownerIn(version, "argo", "Apply", `{"f:spec":{"f:box":{`+fields+`}}}`)
	}
	for name, c := range map[string]struct {
		box, owner string
		charged    bool
	}{
		"a value that another version has elsewhere":        {`"va":1,"b":"y"`, argo("v1", `"f:va":{}`), true},
		"a value in the same place":                         {`"at":{"n":"n"},"b":"y"`, argo("v1", `"f:at":{}`), false},
		"a whole value of which the other version has more": {`"more":{"n":"n"},"b":"y"`, argo("v1", `"f:more":{}`), true},
		"a default that nobody owns":                        {`"d":"x"`, argo("v1", ``), true},
		"an annotation beside one that nobody owns":         {`"b":"y"`, ownerIn("v1", "argo", "Apply", `{"f:metadata":{"f:annotations":{"f:a":{}}}}`), true},
		"a value of the other version in the same place":    {`"at":{"n":"n"},"b":"y"`, argo("v2", `"f:at":{}`), false},
		"a struct at the root":                              {`"b":"y"`, ownerIn("v1", "argo", "Apply", `{"f:spec":{}}`), true},
		"an annotation of the other version":                {`"b":"y"`, ownerIn("v2", "argo", "Apply", `{"f:metadata":{"f:annotations":{"f:a":{}}}}`), true},
	} {
		annotated := func(o string) string {
			return strings.Replace(o, `"name":"x"`, `"name":"x","annotations":{"a":"b","of":"nobody"}`, 1)
		}
		before, after := annotated(of("c", c.box, c.owner)), annotated(of("d", c.box, c.owner))
		if before == of("c", c.box, c.owner) {
			t.Fatal("no annotation")
		}
		if got := chargesAt(t, k, before, after, "."); got != c.charged {
			t.Errorf("%s: the whole object is charged: %t, want %t", name, got, c.charged)
		}
	}
}

// D8: an API server honours the entries of a version that is no longer served. Its fields are not known, so no value keeps a container in it (U1).
func TestD8_AnEntryOfAVersionThatIsNotServed(t *testing.T) {
	spec := structOf("spec", `"mode":{"type":"string"},"box":{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}}}`)
	mode := permission(".spec.mode", "mode", "")
	k := safesOf(t, lossless+said(mode, mode)+unserved, spec, spec)("v1")
	of := func(mode string, owners ...string) string {
		return object("v1", fmt.Sprintf(`"spec":{"mode":%q,"box":{"a":"x","b":"y"}}`, mode), append(owners, ownerIn("v1", "argo", "Apply", `{"f:spec":{"f:box":{"f:a":{}}}}`))...)
	}
	setter := ownerIn("v1", "x", "Update", `{"f:spec":{"f:mode":{}}}`)
	if chargesAt(t, k, of("c", setter), of("d", setter), ".") {
		t.Error("the value is in the box")
	}
	old := ownerIn("v2", "admin", "Update", `{"f:metadata":{"f:labels":{"f:a":{}}}}`)
	if !chargesAt(t, k, of("c", setter, old), of("d", setter, old), ".") {
		t.Error("the version that is not served may have the value elsewhere")
	}
}

// D8: kube-apiserver itself converts a built-in kind. It keeps each value, but no empty labels or behavior (V1, D2, D5).
func TestD8_AnAppliedContainerOfABuiltInKind(t *testing.T) {
	k, err := schematest.Schema(t).Kind(runtimeschema.GroupVersionKind{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"})
	if err != nil {
		t.Fatal(err)
	}
	entry := func(manager, operation, version, fields string) string {
		return `{"manager":"` + manager + `","operation":"` + operation + `","apiVersion":"autoscaling/` + version + `","time":"2026-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{` + fields + `}}`
	}
	const down = `"behavior":{"scaleDown":{"stabilizationWindowSeconds":1,"selectPolicy":"Max"}}`
	for name, c := range map[string]struct {
		version, applied, metadata, spec string
		charged                          bool
	}{
		"nothing but what others take":              {"v2", `"f:spec":{"f:maxReplicas":{}}`, "", `"minReplicas":1`, false},
		"a value that the other version lacks":      {"v2", `"f:spec":{"f:behavior":{"f:scaleDown":{"f:stabilizationWindowSeconds":{}}}}`, "", down, false},
		"an empty behavior":                         {"v2", `"f:spec":{"f:behavior":{}}`, "", down, true},
		"empty labels":                              {"v2", `"f:metadata":{"f:labels":{}}`, `"labels":{"of":"nobody"}`, `"minReplicas":1`, true},
		"an annotation of the other version":        {"v1", `"f:metadata":{"f:annotations":{"f:a":{}}}`, `"annotations":{"a":"b"}`, `"minReplicas":1`, false},
		"another one that this version has not":     {"v1", `"f:metadata":{"f:annotations":{"f:c":{}}}`, `"annotations":{"a":"b"}`, `"minReplicas":1`, true},
		"a specification of the other version only": {"v1", `"f:spec":{"f:targetCPUUtilizationPercentage":{}}`, "", `"minReplicas":1`, true},
	} {
		of := func(most int) string {
			owners := entry("bot", "Update", "v2", `"f:spec":{"f:maxReplicas":{}}`) + "," + entry("argo", "Apply", c.version, c.applied)
			return fmt.Sprintf(`{"apiVersion":"autoscaling/v2","kind":"HorizontalPodAutoscaler","metadata":{"name":"x","managedFields":[%s]%s},"spec":{"maxReplicas":%d,%s}}`, owners, strings.TrimSuffix(","+c.metadata, ","), most, c.spec)
		}
		if got := chargesAt(t, k, of(1), of(2), "."); got != c.charged {
			t.Errorf("%s: the whole object is charged: %t, want %t", name, got, c.charged)
		}
	}
}

// D8: kube-apiserver 1.34 and before stores a null in the metadata of each template. It is what an absent field is, so no apply changes it. In a custom resource
// null is a value, and an apply that drops it lets a default take its place.
func TestD8_ANullOfABuiltInKindIsAnAbsentField(t *testing.T) {
	builtIn, err := schematest.Schema(t).Kind(runtimeschema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"})
	if err != nil {
		t.Fatal(err)
	}
	spec := structOf("spec", `"replicas":{"type":"integer"},"template":{"type":"object","properties":{"hidden":{"type":"string","nullable":true}}}`)
	replicas := permission(".spec.replicas", "scale", "")
	custom := safesOf(t, byName+said(replicas, replicas), spec, spec)("v1")
	for name, c := range map[string]struct {
		kind    *schema.Kind
		path    string
		charged bool
	}{
		"built in":        {builtIn, ".spec.template.metadata.creationTimestamp", false},
		"custom resource": {custom, ".spec.template.hidden", true},
	} {
		of := func(replicas int, owners string) string {
			return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":"x","managedFields":[%s]},"spec":{"replicas":%d,"template":{"metadata":{"creationTimestamp":null},"hidden":null}}}`,
				c.kind.GroupVersionKind.GroupVersion(), c.kind.GroupVersionKind.Kind, owners, replicas)
		}
		entry := func(manager, operation string) string {
			return fmt.Sprintf(`{"manager":%q,"operation":%q,"apiVersion":%q,"time":"2026-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:replicas":{}}}}`, manager, operation, c.kind.GroupVersionKind.GroupVersion())
		}
		if got := chargesAt(t, c.kind, of(1, entry("setup", "Update")), of(2, entry("scaler", "Apply")), c.path); got != c.charged {
			t.Errorf("%s: the null is charged: %t, want %t", name, got, c.charged)
		}
	}
}

// D8: without a webhook fields keep their names. But if versions tell the items of a list apart by other keys, an entry of one names other items of the other,
// and what nobody owns in an item goes (N5).
func TestD8_ItemsWithOtherKeysInAVersionWithoutAWebhook(t *testing.T) {
	ports := func(keys string) string {
		return structOf("spec", `"ports":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":[`+keys+`],"items":{"type":"object","required":["port"],"properties":{"port":{"type":"integer"},"protocol":{"type":"string","default":"TCP"},"b":{"type":"string"},"x":{"type":"string"}}}}`)
	}
	said := `"fieldperm.dev/permission-verbs":` + quoted(`{"v1":[{"path":".spec.ports[*].protocol","verb":"g.example/protocol"}],"v2":[{"path":".spec.ports[*].protocol","verb":"g.example/protocol"}]}`)
	of := func(owners ...string) string {
		return object("v1", `"spec":{"ports":[{"port":80,"protocol":"UDP","b":"y","x":"z"}]}`, append(owners, ownerIn("v1", "argo", "Apply", `{"f:spec":{"f:ports":{"k:{\"port\":80}":{".":{},"f:port":{},"f:x":{}}}}}`))...)
	}
	setter := ownerIn("v1", "x", "Update", `{"f:spec":{"f:ports":{"k:{\"port\":80}":{"f:protocol":{}}}}}`)
	label := ownerIn("v2", "admin", "Update", `{"f:metadata":{"f:labels":{"f:a":{}}}}`)
	other := ports(`"port","protocol"`)
	for name, c := range map[string]struct {
		said, there string
		charged     bool
	}{
		"the same keys":                         {said, ports(`"port"`), false},
		"other keys":                            {said, other, true},
		"other keys in a version not served":    {said + unserved, other, true},
		"the same keys in a version not served": {said + unserved, ports(`"port"`), false},
	} {
		k := safesOf(t, byName+c.said, ports(`"port"`), c.there)("v1")
		if got := chargesAt(t, k, of(setter, label), of(label), "."); got != c.charged {
			t.Errorf("%s: the whole object is charged: %t, want %t", name, got, c.charged)
		}
	}
}
