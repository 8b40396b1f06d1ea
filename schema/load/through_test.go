package load

import (
	"maps"
	"slices"
	"strings"
	"testing"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/schema/endpoint"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
)

// compileWorkloads compiles Pods, and the kinds that they are made from, with documents. All built-in kinds take ten times as long. As in a
// cluster, PermissionSchemas are in the order of their names.
func compileWorkloads(t *testing.T, documents ...string) *schema.Schema {
	t.Helper()
	nameOf := func(document string) string {
		_, name, _ := strings.Cut(document, "kind: PermissionSchema\nmetadata: {name: ")
		name, _, _ = strings.Cut(name, "}")
		return name
	}
	documents = slices.SortedStableFunc(slices.Values(documents), func(a, b string) int { return strings.Compare(nameOf(a), nameOf(b)) })
	all := documentsOf(t, documents...)
	all.Topologies[0] = workloadKinds(t)
	return compileDocuments(t, all)
}

// workloads are Pods, the kinds that they are made from, and ConfigMaps, from which none is made.
var workloads = []runtimeschema.GroupVersionKind{
	gvk("", "v1", "Pod"), gvk("", "v1", "ConfigMap"), gvk("", "v1", "ReplicationController"), gvk("", "v1", "PodTemplate"), gvk("extensions", "v1beta1", "DaemonSet"),
	gvk("apps", "v1", "Deployment"), gvk("apps", "v1", "ReplicaSet"), gvk("apps", "v1", "StatefulSet"), gvk("apps", "v1", "DaemonSet"), gvk("apps", "v1", "ControllerRevision"),
	gvk("batch", "v1", "Job"), gvk("batch", "v1", "CronJob"),
}

// workloadKinds returns the topology of Pods and the kinds that they are made from, and of ConfigMaps, from which none is made.
func workloadKinds(t *testing.T) compile.Topology {
	t.Helper()
	topology, err := BuiltIn()
	if err != nil {
		t.Fatal(err)
	}
	topology.Kinds = maps.Clone(topology.Kinds)
	maps.DeleteFunc(topology.Kinds, func(kind runtimeschema.GroupVersionKind, _ string) bool {
		return !slices.Contains(workloads, kind)
	})
	return topology
}

// at returns the verbs of a node of a body. Verbs that may be barriers are in capitals.
func at(t *testing.T, s *schema.Schema, gvk runtimeschema.GroupVersionKind, ref schema.ResourceRef, names ...string) string {
	t.Helper()
	k, err := s.KindFor(gvk, ref)
	if err != nil {
		return err.Error()
	}
	n := k.Root
	bars := false
	for _, name := range names {
		n = n.Map().Child(name)
	}
	var out []string
	for _, p := range n.Permissions() {
		text := strings.TrimPrefix(p.Describe(), "granular:")
		if p.MayBar() {
			text, bars = strings.ToUpper(text), true
		}
		out = append(out, text)
	}
	if bars && !k.MayBar() {
		t.Errorf("%v: has a barrier that the kind does not know of", names)
	}
	return strings.Join(out, " ")
}

func barrier(group, kind, path, verb, more string) string {
	return "apiVersion: fieldperm.dev/v1alpha1\nkind: PermissionSchema\nmetadata: {name: x}\nspec: {group: '" + group + "', kind: " + kind +
		", permissions: [{path: '" + path + "', verb: " + verb + ", " + more + "}]}\n"
}

// TestA5_ABarrierOnAPodHoldsOnItsBinding: the fields of a Binding have the guards of the Pod fields that they become.
func TestA5_ABarrierOnAPodHoldsOnItsBinding(t *testing.T) {
	binding := gvk("", "v1", "Binding")
	for _, ref := range []schema.ResourceRef{{Version: "v1", Resource: "pods", Subresource: "binding"}, {Version: "v1", Resource: "bindings"}} {
		s := compileBuiltIn(t)
		if got := at(t, s, binding, ref, "target", "name"); got != "specification nodeAssignment" {
			t.Errorf("%v: the target has %q", ref, got)
		}
		if k, err := s.KindFor(binding, ref); err != nil || k.MayBar() {
			t.Errorf("%v: a barrier without any document (%v)", ref, err)
		}
		s = compileBuiltIn(t, barrier("", "Pod", ".spec.nodeName", "nodeAssignment", "excluded: true"))
		if got := at(t, s, binding, ref, "target", "name"); got != "specification NODEASSIGNMENT" {
			t.Errorf("%v: barrier on the node's name: the target has %q", ref, got)
		}
		s = compileBuiltIn(t, barrier("", "Pod", ".spec", "specification", "excluded: true"))
		if got := at(t, s, binding, ref, "target", "name"); got != "SPECIFICATION nodeAssignment" {
			t.Errorf("%v: barrier on all of the specification: the target has %q", ref, got)
		}
		s = compileBuiltIn(t, barrier("", "Pod", `.metadata.annotations["example.com/team"]`, "example.com/team", "excluded: true"))
		if got := at(t, s, binding, ref, "metadata", "annotations", "example.com/team"); got != "annotation(prefix of annotationKey) EXAMPLE.COM/TEAM" {
			t.Errorf("%v: barrier on one annotation: it has %q", ref, got)
		}
		if got := at(t, s, binding, ref, "metadata", "annotations", "example.com/other"); got != "annotation(prefix of annotationKey)" {
			t.Errorf("%v: another annotation has %q", ref, got)
		}
		s = compileBuiltIn(t, barrier("", "Pod", ".metadata", "metadata", "excluded: true"))
		if got := at(t, s, binding, ref, "metadata", "labels"); got != "METADATA labels" {
			t.Errorf("%v: barrier on all metadata: the labels have %q", ref, got)
		}
		// The Binding's own permissions stay.
		s = compileBuiltIn(t, barrier("", "Binding", ".metadata.labels", "labels", "excluded: true, parameterSource: labelKey"))
		if got := at(t, s, binding, ref, "metadata", "labels"); got != "LABELS metadata" {
			t.Errorf("%v: barrier on the labels of bindings: they have %q", ref, got)
		}
	}
	s := compileBuiltIn(t, barrier("", "Pod", ".spec.nodeName", "nodeAssignment", "excluded: true"))
	if got := at(t, s, binding, schema.ResourceRef{Version: "v1", Resource: "widgets", Subresource: "binding"}, "target", "name"); got != "" {
		t.Errorf("another resource: %q", got)
	}
}

// TestA4_ABarrierHoldsUnderEveryName: an Event has two groups, each with its own names of fields.
func TestA4_ABarrierHoldsUnderEveryName(t *testing.T) {
	core, events := gvk("", "v1", "Event"), gvk("events.k8s.io", "v1", "Event")
	coreRef, eventsRef := schema.ResourceRef{Version: "v1", Resource: "events"}, schema.ResourceRef{Group: "events.k8s.io", Version: "v1", Resource: "events"}
	s := compileBuiltIn(t, barrier("", "Event", ".message", "message", "excluded: true"))
	if got := at(t, s, events, eventsRef, "note"); got != "MESSAGE" && got != "message MESSAGE" {
		t.Errorf("events.k8s.io: the note has %q", got)
	}
	if got := at(t, s, events, eventsRef, "reason"); got != "reason" {
		t.Errorf("events.k8s.io: the reason has %q", got)
	}
	s = compileBuiltIn(t, barrier("events.k8s.io", "Event", ".regarding.name", "example.com/about", "excluded: true"))
	if got := at(t, s, core, coreRef, "involvedObject", "name"); got != "EXAMPLE.COM/ABOUT" {
		t.Errorf("core: the name of the involved object has %q", got)
	}
	s = compileBuiltIn(t, barrier("", "Event", ".metadata.labels", "labels", "excluded: true, parameterSource: labelKey"))
	if got := at(t, s, events, eventsRef, "metadata", "labels"); !strings.Contains(got, "LABELS") {
		t.Errorf("events.k8s.io: the labels have %q", got)
	}
}

// TestC2_VerbsOfTheTwinPassNoBarrier: an Event is one object in two trees. Only verbs below a barrier in its own tree pass the barrier,
// and barriers in both trees must be passed one by one.
func TestC2_VerbsOfTheTwinPassNoBarrier(t *testing.T) {
	count := barrier("", "Event", ".count", "example.com/count", "excluded: true")
	name := barrier("events.k8s.io", "Event", ".regarding.name", "example.com/name", "excluded: false")
	involved := barrier("", "Event", ".involvedObject", "example.com/involved", "excluded: true")
	reason := "apiVersion: fieldperm.dev/v1alpha1\nkind: UncoveredPermissionSet\nmetadata: {name: x}\nspec: {uncoveredPermissions: ['granular:reason'], resources: [{apiGroups: [''], resources: [events]}]}\n"
	for _, c := range []struct {
		name      string
		documents []string
		old, new  string
		// core and events are the verbs that pass, for each requirement of the change.
		core, events []string
	}{
		{"none", nil, `{"count":1}`, `{"count":2}`, []string{"* occurrences"}, nil},
		{"own", []string{count}, `{"count":1}`, `{"count":2}`, []string{"example.com/count"}, nil},
		{"twin", []string{count}, `{"deprecatedCount":1}`, `{"deprecatedCount":2}`, nil, []string{"example.com/count"}},
		{
			"a condition that holds", []string{barrier("", "Event", ".count", "example.com/count", "excludedWhen: self > 10")},
			`{"count":1}`, `{"count":12}`, []string{"example.com/count"}, nil,
		},
		{
			"a condition that does not hold", []string{barrier("", "Event", ".count", "example.com/count", "excludedWhen: self > 10")},
			`{"count":1}`, `{"count":2}`, []string{"* example.com/count occurrences"}, nil,
		},
		{
			"both", []string{count, barrier("events.k8s.io", "Event", ".deprecatedCount", "example.com/deprecated", "excluded: true")},
			`{"count":1}`, `{"count":2}`, []string{"example.com/count", "example.com/deprecated"}, nil,
		},
		{
			"a verb of the twin below the barrier", []string{involved, name},
			`{"involvedObject":{"name":"a"}}`, `{"involvedObject":{"name":"b"}}`, []string{"example.com/involved"}, nil,
		},
		{
			"an own verb below the barrier of the twin", []string{involved, name},
			`{"regarding":{"name":"a"}}`, `{"regarding":{"name":"b"}}`, nil, []string{"example.com/involved"},
		},
		{
			"a name that occurs twice", []string{count}, `{"deprecatedCount":1}`, `{"deprecatedCount":2,"deprecatedCount":3}`, nil,
			[]string{"*", "example.com/count"},
		},
		{
			"a set on a verb of the twin alone", []string{barrier("events.k8s.io", "Event", ".reason", "example.com/why", "excluded: false"), reason},
			`{"reason":"a"}`, `{"reason":"b"}`, []string{"reason"}, []string{"reason"},
		},
	} {
		s := compileBuiltIn(t, c.documents...)
		for group, want := range map[string][]string{"": c.core, "events.k8s.io": c.events} {
			if want == nil {
				continue
			}
			ref := schema.ResourceRef{Group: group, Version: "v1", Resource: "events"}
			k, err := s.KindFor(gvk(group, "v1", "Event"), ref)
			if err != nil {
				t.Fatal(err)
			}
			uncovered, err := s.Uncovered(t.Context(), ref, nil)
			if err != nil {
				t.Fatal(err)
			}
			requirements, err := fieldperm.Diff(t.Context(), []byte(c.old), []byte(c.new), k, uncovered)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for i := range requirements {
				var names []string
				for _, v := range requirements[i].Candidates() {
					names = append(names, v.Name())
				}
				got = append(got, strings.Join(names, " "))
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s, group %q: passed by %q, want %q", c.name, group, got, want)
			}
		}
	}
}

// TestA4_ASetHoldsUnderEveryName: a set holds whichever name of an endpoint the request addresses and the set names.
func TestA4_ASetHoldsUnderEveryName(t *testing.T) {
	for set, refs := range map[string]map[schema.ResourceRef]bool{
		"{apiGroups: [''], resources: [events]}":            {{Resource: "events"}: true, {Group: "events.k8s.io", Resource: "events"}: true, {Resource: "pods"}: false},
		"{apiGroups: [events.k8s.io], resources: [events]}": {{Resource: "events"}: true, {Group: "events.k8s.io", Resource: "events"}: true},
		"{apiGroups: [''], resources: [pods]}":              {{Resource: "bindings"}: true, {Resource: "pods", Subresource: "binding"}: true, {Resource: "events"}: false},
		"{apiGroups: [''], resources: [pods/binding]}":      {{Resource: "bindings"}: true, {Resource: "pods"}: false},
		"{apiGroups: [''], resources: [bindings]}":          {{Resource: "pods", Subresource: "binding"}: true, {Resource: "pods"}: false},
	} {
		s := compileBuiltIn(t, "apiVersion: fieldperm.dev/v1alpha1\nkind: UncoveredPermissionSet\nmetadata: {name: x}\nspec: {uncoveredPermissions: ['granular:labels'], resources: ["+set+"]}\n")
		for ref, want := range refs {
			got, err := s.Uncovered(t.Context(), ref, nil)
			if err != nil || len(got) == 1 != want {
				t.Errorf("%s: for %+v: %v, %v; want it to hold: %v", set, ref, got, err, want)
			}
		}
	}
}

// TestC2_ABindingHasNoOldObject: a condition that reads the existing Pod counts as true for a Binding.
func TestC2_ABindingHasNoOldObject(t *testing.T) {
	binding := gvk("", "v1", "Binding")
	const label = `.metadata.labels["env"]`
	for name, c := range map[string]struct {
		path, verb, condition string
		names                 []string
		value                 any
		bars                  bool
	}{
		"the old value":              {label, "example.com/stage", "self == 'production' || oldSelf == 'production'", []string{"metadata", "labels", "env"}, "dev", true},
		"the old value, by a look":   {label, "example.com/stage", "[oldSelf].exists(o, o == 'production')", []string{"metadata", "labels", "env"}, "dev", true},
		"the new value":              {label, "example.com/stage", "self == 'production'", []string{"metadata", "labels", "env"}, "dev", false},
		"the new value, which it is": {label, "example.com/stage", "self == 'production'", []string{"metadata", "labels", "env"}, "production", true},
		"the node":                   {".spec.nodeName", "nodeAssignment", "self.startsWith('master')", []string{"target", "name"}, "worker", false},
		"the node that it was on":    {".spec.nodeName", "nodeAssignment", "oldSelf != null", []string{"target", "name"}, "worker", true},
		"the old value, if it must":  {label, "example.com/stage", "self == 'production' && oldSelf == null", []string{"metadata", "labels", "env"}, "dev", false},
	} {
		t.Run(name, func(t *testing.T) {
			s := compileBuiltIn(t, barrier("", "Pod", c.path, c.verb, `excludedWhen: "`+c.condition+`"`))
			for _, ref := range []schema.ResourceRef{{Version: "v1", Resource: "pods", Subresource: "binding"}, {Version: "v1", Resource: "bindings"}} {
				k, err := s.KindFor(binding, ref)
				if err != nil {
					t.Fatal(err)
				}
				n := k.Root
				for _, name := range c.names {
					n = n.Map().Child(name)
				}
				bars := slices.ContainsFunc(n.Permissions(), func(p *schema.Permission) bool { return p.MayBar() && p.Bars(t.Context(), nil, c.value) })
				if bars != c.bars || !k.MayBar() {
					t.Errorf("%v: it bars: %t; want %t", ref, bars, c.bars)
				}
			}
		})
	}
}

// TestA5_EveryObservedFieldExists: every observed field exists in the body and in the object.
func TestA5_EveryObservedFieldExists(t *testing.T) {
	s := compileBuiltIn(t)
	kinds := map[runtimeschema.GroupKind][]*schema.Kind{}
	for _, k := range s.Kinds() {
		kinds[k.GroupKind()] = append(kinds[k.GroupKind()], k)
	}
	exists := func(kinds []*schema.Kind, path string) bool {
		return len(kinds) == 0 || slices.ContainsFunc(kinds, func(k *schema.Kind) bool {
			p, err := fieldpath.ParsePattern(path)
			if err != nil {
				t.Fatal(err)
			}
			n := k.Root
			for _, e := range p {
				if n = n.Step(e); n == nil {
					return false
				}
			}
			return true
		})
	}
	tried := 0
	for _, e := range endpoint.All() {
		target, ok := endpoint.Target(e.Group, e.Resource, e.Subresource)
		if !ok {
			continue
		}
		// Storage uses the names of one of the object's groups.
		var objects []*schema.Kind
		for _, member := range endpoint.Class(target.Group, target.Resource) {
			own, _ := endpoint.Lookup(member.Group, member.Resource, "")
			objects = append(objects, kinds[own.GroupKind()]...)
		}
		for _, f := range e.Fields {
			tried++
			if !exists(kinds[e.GroupKind()], f.From) || !exists(objects, f.Stored()) {
				t.Errorf("%s %s: field %v does not exist", e.Group, e.Name(), f)
			}
		}
	}
	if tried < 100 {
		t.Errorf("%d fields only", tried)
	}
}

// The way to all keys of a map ends at the map: some keys may have verbs of their own, which the node of the others does not know.
func TestW2_TheWayToAllKeysEndsAtTheMap(t *testing.T) {
	k, err := compileBuiltIn(t).Kind(runtimeschema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"})
	if err != nil {
		t.Fatal(err)
	}
	way := k.Way(".metadata.annotations[*]")
	if len(way) != 3 || len(way[2].Map().Parts().Keys) == 0 {
		t.Errorf("%d nodes, want those of the object, the metadata and the annotations", len(way))
	}
	if way := k.Way(".spec.nothing"); len(way) != 3 || way[2] != schema.Unknown() {
		t.Errorf("%d nodes, want those of the object, the specification and unknown fields", len(way))
	}
}
