package fieldperm

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/compile"
)

// D8: kubectl turns the managers that own the annotation of client-side apply into appliers, by their names.
func TestD8_TheOwnerOfTheClientSideApplyAnnotationCountsAsApplier(t *testing.T) {
	k, none := compileGadget(t)
	const note = `"f:annotations":{"f:kubectl.kubernetes.io/last-applied-configuration":{}}`
	of := func(label string, owners ...string) string {
		return owned(fmt.Sprintf(`,"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{}"},"labels":{"policy/x":"1","x.io/k":%q}|`, label), owners...)
	}
	const other = `"f:generateName":{}`
	fields := func(labels, note string) string { return `{"f:metadata":{` + note + `,"f:labels":{` + labels + `}}}` }
	write := func(manager, note string) []string {
		got, err := Diff(t.Context(), []byte(of("1", owner(manager, "Update", `{"f:metadata":{`+note+`}}`))), []byte(of("2", owner(manager, "Update", fields(`"f:x.io/k":{}`, note)))), k, none)
		if err != nil {
			t.Fatal(err)
		}
		return renderAll(got)
	}
	const taken = `ownership .metadata.labels["policy/x"]: * metadata labels label label(policy)`
	if got := write("web", note); !slices.Contains(got, taken) {
		t.Errorf("an owner of the annotation: %q, want %s", got, taken)
	}
	if got := write("kubectl-client-side-apply", other); !slices.Contains(got, taken) {
		t.Errorf("kubectl: %q, want %s", got, taken)
	}
	if got := write("web", other); len(got) != 1 {
		t.Errorf("another: %q, want the label alone", got)
	}
}

// D8: a merge into ancient-changes is free. What becomes an applier's by it is charged if it is behind a barrier, because the first
// server-side apply of kubectl deletes it. What an applier owned stays an applier's.
func TestD8_AMergeMakesAnApplierOfOthers(t *testing.T) {
	k, set := compileGadget(t, "granular:label(policy)")
	const note, other, label = `"f:annotations":{"f:kubectl.kubernetes.io/last-applied-configuration":{}}`, `"f:generateName":{}`, `"f:labels":{"f:policy/x":{}}`
	of := func(label string, owners ...string) string {
		return owned(fmt.Sprintf(`,"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{}"},"labels":{"policy/x":"1","x.io/k":%q}|`, label), owners...)
	}
	entry := func(manager string, fields ...string) string {
		return owner(manager, "Update", `{"f:metadata":{`+strings.Join(fields, ",")+`}}`)
	}
	var many []string
	for i := range 9 {
		many = append(many, entry(fmt.Sprintf("m%d", i), other))
	}
	me := entry("me", `"f:labels":{"f:x.io/k":{}}`)
	const mine, barred = `modified .metadata.labels["x.io/k"]: * metadata labels label label(x.io)`, `ownership .metadata.labels["policy/x"]: (*) (metadata) (labels) (label) label(policy)`
	for rule, c := range map[string]struct {
		set      schema.VerbSet
		old, new []string
		want     []string
	}{
		"of another, into the bucket of an applier":                 {set, []string{entry("policy", label), entry("ancient-changes", note)}, []string{entry("ancient-changes", note, label)}, []string{mine, barred}},
		"of another, into the bucket of an applier, no barrier":     {nil, []string{entry("policy", label), entry("ancient-changes", note)}, []string{entry("ancient-changes", note, label)}, []string{mine}},
		"of another, into another bucket":                           {set, []string{entry("policy", label), entry("ancient-changes", other)}, []string{entry("ancient-changes", other, label)}, []string{mine}},
		"of an applier, with others":                                {set, []string{entry("kubectl-client-side-apply", note, label), entry("ancient-changes", other)}, []string{entry("ancient-changes", note, other, label)}, []string{mine}},
		"of an applier, into the bucket that has a guarded label":   {set, []string{entry("kubectl-client-side-apply", note), entry("ancient-changes", label)}, []string{entry("ancient-changes", note, label)}, []string{mine, barred}},
		"of an applier, into the bucket that has an ordinary label": {nil, []string{entry("kubectl-client-side-apply", note), entry("ancient-changes", label)}, []string{entry("ancient-changes", note, label)}, []string{mine}},
	} {
		t.Run(rule, func(t *testing.T) {
			expectDiff(t, k, c.set, of("1", append(c.old, many...)...), of("2", append(append(c.new, me), many...)...), c.want...)
		})
	}
}

// D8: a manager that comes to own the annotation of client-side apply will apply with everything that it already owns.
func TestD8_ANewOwnerOfTheClientSideApplyAnnotation(t *testing.T) {
	k, set := compileGadget(t, "granular:label(policy)")
	const note, label = `"f:annotations":{"f:kubectl.kubernetes.io/last-applied-configuration":{}}`, `"f:labels":{"f:policy/x":{}}`
	of := func(applied string, owners ...string) string {
		return owned(fmt.Sprintf(`,"annotations":{"kubectl.kubernetes.io/last-applied-configuration":%q},"labels":{"policy/x":"1"}|`, applied), owners...)
	}
	entry := func(manager string, fields ...string) string {
		return owner(manager, "Update", `{"f:metadata":{`+strings.Join(fields, ",")+`}}`)
	}
	var many []string
	for i := range 9 {
		many = append(many, entry(fmt.Sprintf("m%d", i), `"f:generateName":{}`))
	}
	other := strings.Replace(entry("sec", label), `"apiVersion":"example.com/v1"`, `"subresource":"status","apiVersion":"example.com/v1"`, 1)
	for name, c := range map[string]struct {
		old, new string
		want     bool
	}{
		"by a change of it":           {of("{}", entry("sec", label)), of("{ }", entry("sec", note, label)), true},
		"in another entry":            {of("{}", other), of("{ }", other, entry("sec", note)), true},
		"by a merge of kubectl's":     {of("{}", append(many, entry("kubectl-client-side-apply", note), entry("ancient-changes", label))...), of("{ }", append(many, entry("ancient-changes", note, label), entry("me", `"f:generateName":{}`))...), true},
		"the owner before":            {of("{}", entry("sec", note, label)), of("{ }", entry("sec", note, label)), false},
		"the owner of no other field": {of("{}", entry("sec", label)), of("{ }", entry("sec", label), entry("web", note)), false},
		"with an escape in its name":  {of("{}", entry("sec", label)), of("{ }", entry("sec", strings.Replace(note, "/", `\/`, 1), label)), true},
	} {
		got, err := Diff(t.Context(), []byte(c.old), []byte(c.new), k, set)
		barred := slices.ContainsFunc(got, func(r Requirement) bool { return r.Barred() })
		if err != nil || barred != c.want {
			t.Errorf("%s: %q, %v; want a barrier %t", name, renderAll(got), err, c.want)
		}
	}
}

// D8: no API server gives an applier a part of an item without its keys, because such a manager could not apply any more.
func TestD8_AnApplierOwnsNoPartOfAnItemAlone(t *testing.T) {
	k, none := compileGadget(t)
	of := func(owners ...string) string {
		return owned(`|,"spec":{"replicas":1,"containers":[{"name":"web","image":"a"}]}`, owners...)
	}
	creator := func(image string) string {
		return owner("creator", "Update", `{"f:spec":{".":{},"f:containers":{".":{},"k:{\"name\":\"web\"}":{".":{},`+image+`"f:name":{}}},"f:replicas":{}}}`)
	}
	for operation, whole := range map[string]bool{"Apply": true, "Update": false} {
		argo := func(more string) string { return owner("argo", operation, `{"f:spec":{`+more+`"f:replicas":{}}}`) }
		got, err := Diff(t.Context(), []byte(of(creator(`"f:image":{},`), argo(""))), []byte(of(creator(""), argo(`"f:containers":{"k:{\"name\":\"web\"}":{"f:image":{}}},`))), k, none)
		isWhole := slices.ContainsFunc(got, func(r Requirement) bool { return len(r.Chain) == 1 })
		if err != nil || isWhole != whole {
			t.Errorf("%s: %q, %v; want everything %t", operation, renderAll(got), err, whole)
		}
	}
}

// D8: a client-side applier is an applier: a condition on the change does not exempt it, whatever manifest it writes.
func TestD8_C2_AConditionDoesNotExemptClientSideAppliers(t *testing.T) {
	entries := slices.DeleteFunc(gadgetEntries(), func(e compile.Entry) bool { return e.Path == ".spec.replicas" })
	k, none := compileEntries(t, append(entries, entry(".spec.replicas", "scale", excludedWhen("oldSelf != null && self == null"))))
	of := func(applied string, replicas int, owners ...string) string {
		return owned(fmt.Sprintf(`,"annotations":{"kubectl.kubernetes.io/last-applied-configuration":%q}|,"spec":{"replicas":%d}`, applied, replicas), owners...)
	}
	const note = `"f:metadata":{"f:annotations":{"f:kubectl.kubernetes.io/last-applied-configuration":{}}}`
	before, after := owner("kubectl-client-side-apply", "Update", `{`+note+`}`), owner("kubectl-client-side-apply", "Update", `{`+note+`,"f:spec":{"f:replicas":{}}}`)
	for _, applied := range []string{"{}", "{ }", `{"apiVersion":"example.com/v1","spec":{}}`, `{"apiVersion":"example.com/v1","spec":{"replicas":3}}`} {
		got, err := Diff(t.Context(), []byte(of("{}", 2, before)), []byte(of(applied, 3, after)), k, none)
		if err != nil || !slices.ContainsFunc(got, func(r Requirement) bool { return r.Barred() }) {
			t.Errorf("it writes %q: %q, %v; want a barrier", applied, renderAll(got), err)
		}
	}
}

// D8: a manager that becomes an applier is also charged for the barriers inside changed values, because its next apply may remove the
// whole value.
func TestD8_ANewApplierWithAChange(t *testing.T) {
	k, none := compileGadget(t)
	const note = `"f:metadata":{"f:annotations":{"f:kubectl.kubernetes.io/last-applied-configuration":{}}}`
	of := func(applied, host string, owners ...string) string {
		return owned(`,"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"`+applied+`"}|,"spec":{"rules":[{"host":"`+host+`","admin":true}]}`, owners...)
	}
	before, after := owner("sec", "Update", `{"f:spec":{"f:rules":{}}}`), owner("sec", "Update", `{`+note+`,"f:spec":{"f:rules":{}}}`)
	got, err := Diff(t.Context(), []byte(of("a", "h", before)), []byte(of("b", "i", after)), k, none)
	if err != nil || !slices.ContainsFunc(got, func(r Requirement) bool { return r.Path.String() == ".spec.rules[0].admin" && r.Barred() }) {
		t.Errorf("%q, %v", renderAll(got), err)
	}
}

// D8: unchanged entries are read as well if their manager becomes an applier, and count as changed. The amount that is read is limited.
func TestD8_TooManyPathsOfANewApplier(t *testing.T) {
	k, none := compileGadget(t)
	const note = `{"f:metadata":{"f:annotations":{"f:kubectl.kubernetes.io/last-applied-configuration":{}}}}`
	var paths []string
	for i := range 1000 {
		paths = append(paths, fmt.Sprintf(`"f:%d":{}`, i))
	}
	deep := strings.Repeat(`{"f:extra":`, 3000) + "{" + strings.Join(paths, ",") + "}" + strings.Repeat("}", 3000)
	at := func(subresource, fields string) string {
		return strings.Replace(owner("sec", "Update", fields), `"operation"`, `"subresource":"`+subresource+`","operation"`, 1)
	}
	of := func(applied string, owners ...string) string {
		return owned(`,"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"`+applied+`"}|,"spec":{}`, owners...)
	}
	got, err := Diff(t.Context(), []byte(of("a", at("s", deep))), []byte(of("b", at("s", deep), owner("sec", "Update", note))), k, none)
	if err != nil || !slices.ContainsFunc(got, func(r Requirement) bool { return r.Operation == Ownership && r.Path.IsRoot() }) {
		t.Errorf("%q, %v", renderAll(got), err)
	}
}
