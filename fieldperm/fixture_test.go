package fieldperm

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/verbs"
)

// gadgetTypes has one field for each way in which values compare.
const gadgetTypes = `types:
- name: gadget
  map:
    fields:
    - {name: apiVersion, type: {scalar: string}}
    - {name: kind, type: {scalar: string}}
    - {name: metadata, type: {namedType: meta}}
    - {name: spec, type: {namedType: spec}}
    - {name: extra, type: {namedType: unknown}}
- name: meta
  map:
    fields:
    - {name: name, type: {scalar: string}}
    - {name: generateName, type: {scalar: string}}
    - {name: uid, type: {scalar: string}}
    - {name: resourceVersion, type: {scalar: string}}
    - {name: labels, type: {map: {elementType: {scalar: string}}}}
    - {name: finalizers, type: {list: {elementRelationship: associative, elementType: {scalar: string}}}}
    - {name: managedFields, type: {list: {elementRelationship: atomic, elementType: {namedType: unknown}}}}
- name: spec
  map:
    fields:
    - {name: replicas, type: {scalar: numeric}, default: 1}
    - {name: note, type: {scalar: string}}
    - {name: plain, type: {scalar: string}}
    - {name: node, type: {scalar: string}}
    - {name: containers, type: {list: {elementRelationship: associative, keys: [name], elementType: {namedType: container}}}}
    - {name: ports, type: {list: {elementRelationship: associative, keys: [port, protocol], elementType: {namedType: port}}}}
    - {name: args, type: {list: {elementRelationship: atomic, elementType: {scalar: string}}}}
    - {name: rules, type: {list: {elementRelationship: atomic, elementType: {namedType: rule}}}}
    - {name: selector, type: {map: {elementRelationship: atomic, elementType: {scalar: string}}}}
    - {name: feature, type: {namedType: feature}}
    - {name: tree, type: {namedType: tree}}
    - {name: limits, type: {map: {fields: [{name: low, type: {scalar: numeric}, default: 0}]}}, default: {}}
- name: container
  map:
    fields:
    - {name: name, type: {scalar: string}}
    - {name: image, type: {scalar: string}}
    - {name: privileged, type: {scalar: boolean}}
- name: port
  map:
    fields:
    - {name: port, type: {scalar: numeric}}
    - {name: protocol, type: {scalar: string}, default: TCP}
    - {name: target, type: {scalar: untyped}}
- name: rule
  map:
    fields:
    - {name: host, type: {scalar: string}}
    - {name: admin, type: {scalar: boolean}}
- name: feature
  map:
    fields:
    - {name: enabled, type: {scalar: boolean}, default: false}
    - {name: level, type: {scalar: numeric}}
- name: tree
  map:
    fields:
    - {name: value, type: {scalar: string}}
    - {name: child, type: {namedType: tree}}
- name: unknown
  scalar: untyped
  list: {elementRelationship: atomic, elementType: {namedType: unknown}}
  map: {elementRelationship: separable, elementType: {namedType: unknown}}
`

var gadget = runtimeschema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gadget"}

func entry(path, verb string, more ...func(*compile.Entry)) compile.Entry {
	e := compile.Entry{FieldPermission: v1alpha1.FieldPermission{Path: path, Verb: verb}, Pointer: path}
	for _, f := range more {
		f(&e)
	}
	return e
}

func by(parameter string) func(*compile.Entry) {
	return func(e *compile.Entry) { e.ParameterizedBy = parameter }
}
func source(name string) func(*compile.Entry) {
	return func(e *compile.Entry) { e.ParameterSource = name }
}
func role(r schema.Role) func(*compile.Entry) { return func(e *compile.Entry) { e.Role = r } }
func excluded(e *compile.Entry)               { e.Excluded = true }
func excludedWhen(x string) func(*compile.Entry) {
	return func(e *compile.Entry) { e.ExcludedWhen = x }
}
func prefix(e *compile.Entry) { e.ParameterTreatment = v1alpha1.TreatmentSlashDelimitedPrefix }

func gadgetEntries() []compile.Entry {
	return []compile.Entry{
		entry(".apiVersion", "", role(schema.RoleIdentity)), entry(".kind", "", role(schema.RoleIdentity)),
		entry(".metadata", "metadata"),
		entry(".metadata.name", "", role(schema.RoleIdentity)), entry(".metadata.generateName", "", role(schema.RoleIdentity)),
		entry(".metadata.uid", "", role(schema.RoleServerWritten)), entry(".metadata.resourceVersion", "", role(schema.RoleServerWritten)),
		entry(".metadata.managedFields", "", role(schema.RoleOwnership)),
		entry(".metadata.labels", "labels", source("key")), entry(".metadata.labels[*]", "label", by("key"), prefix),
		entry(".metadata.finalizers", "finalizers"), entry(".metadata.finalizers[*]", "finalizer", source("finalizer"), by("finalizer"), prefix),
		entry(".spec", "specification"),
		entry(".spec.replicas", "scale"), entry(".spec.note", "note", source("text"), by("text")),
		entry(".spec.node", "node", excluded),
		entry(".spec.containers[*].name", "", source("container")), entry(".spec.containers[*]", "container", by("container")),
		entry(".spec.containers[*].image", "image", by("container")), entry(".spec.containers[*].privileged", "privilege", excluded),
		entry(".spec.ports", "ports"),
		entry(".spec.rules", "rules"), entry(".spec.rules[*].admin", "admin", excluded),
		entry(".spec.feature", "feature"), entry(".spec.feature.enabled", "switch", excludedWhen("self == true")),
		entry(".spec.tree.value", "tree"),
	}
}

func compileGadget(tb testing.TB, uncovered ...string) (*schema.Kind, schema.VerbSet) {
	tb.Helper()
	return compileEntries(tb, gadgetEntries(), uncovered...)
}

func compileEntries(tb testing.TB, entries []compile.Entry, uncovered ...string) (*schema.Kind, schema.VerbSet) {
	tb.Helper()
	parser, err := typed.NewParser(typed.YAMLObject(gadgetTypes))
	if err != nil {
		tb.Fatal(err)
	}
	// Writes of the API server itself have a document of their own.
	said := slices.DeleteFunc(slices.Clone(entries), func(e compile.Entry) bool { return len(e.Writes) > 0 })
	written := slices.DeleteFunc(slices.Clone(entries), func(e compile.Entry) bool { return len(e.Writes) == 0 })
	s, errs := compile.Compile(compile.Documents{
		Topologies: []compile.Topology{{Source: "gadget", JSON: true, Types: &parser.Schema, Kinds: map[runtimeschema.GroupVersionKind]string{gadget: "gadget"}}},
		Permissions: []compile.PermissionDocument{
			{Source: "gadget.yaml", Group: gadget.Group, Kind: gadget.Kind, Entries: said},
			{Source: "written.yaml", Group: gadget.Group, Kind: gadget.Kind, Entries: written},
		},
	})
	for _, err := range errs {
		tb.Error(err)
	}
	k, err := s.Kind(gadget)
	if err != nil {
		tb.Fatal(err)
	}
	set := schema.VerbSet{}
	for _, text := range uncovered {
		set[verb(tb, text)] = schema.Extent{}
	}
	return k, set
}

// render writes a requirement as "operation path: verbs". The verbs lack "granular:" and go from general to specific. Verbs before a
// barrier are in parentheses.
func render(r Requirement) string {
	names := make([]string, 0, len(r.Chain)+1)
	for i, v := range r.Chain {
		name := strings.TrimPrefix(v.String(), verbs.Prefix)
		if i < r.Barrier {
			name = "(" + name + ")"
		}
		names = append(names, name)
	}
	if r.Barrier == len(r.Chain) {
		names = append(names, "nobody")
	}
	return fmt.Sprintf("%s %s: %s", r.Operation, r.Path, strings.Join(names, " "))
}

func renderAll(rs []Requirement) []string {
	out := make([]string, len(rs))
	for i := range rs {
		out[i] = render(rs[i])
	}
	slices.Sort(out)
	return out
}

// wholeGadget is the gadget as a whole, with every barrier that it may have.
const wholeGadget = "ownership .: *"

// irregularGadget stands for the requirements of a change of an irregular object.
const irregularGadget = "modified .: *"

// expectDiff compares the requirements with those that are wanted, in any order. An old object of "" is a creation, whose existence need not be said.
func expectDiff(t *testing.T, k *schema.Kind, uncovered schema.VerbSet, old, new string, want ...string) {
	t.Helper()
	var oldRaw []byte
	if old != "" {
		oldRaw = []byte(old)
	}
	got, err := Diff(t.Context(), oldRaw, []byte(new), k, uncovered)
	if err != nil {
		t.Fatalf("Diff(%s, %s): %v", old, new, err)
	}
	for _, whole := range []string{wholeGadget, irregularGadget} {
		if slices.Contains(want, whole) {
			for _, barrier := range []string{"admin", "node", "privilege", "switch"} {
				want = append(want, strings.Replace(whole, "*", barrier, 1))
			}
		}
	}
	if old == "" && !slices.ContainsFunc(want, func(w string) bool { return strings.HasPrefix(w, "created") }) {
		want = append(want, "created .: * creation")
	}
	slices.Sort(want)
	if !slices.Equal(renderAll(got), want) {
		t.Errorf("Diff(%s, %s)\n got  %q\n want %q", old, new, renderAll(got), want)
	}
}
