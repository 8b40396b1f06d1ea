package endpoint

import (
	"slices"
	"strings"
	"testing"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
)

// The generated file decodes and is sorted. For every endpoint it has the written fields, or the reason why the endpoint writes nothing.
func TestObserved(t *testing.T) {
	if !strings.HasPrefix(APIServer(), "v1.") {
		t.Errorf("API server %q", APIServer())
	}
	all := All()
	if len(all) < 100 {
		t.Errorf("%d endpoints only", len(all))
	}
	sorted := slices.Clone(all)
	Sort(sorted)
	for i := range all {
		e := &all[i]
		if e.Group != sorted[i].Group || e.Name() != sorted[i].Name() {
			t.Errorf("%s %s is out of order", e.Group, e.Name())
		}
		if e.Storage == "" && e.Note == "" {
			t.Errorf("%s %s writes nothing and does not say why", e.Group, e.Name())
		}
		if e.Storage != "" && !e.Whole && len(e.Fields) == 0 && len(e.Sets) == 0 && !e.Deletes {
			t.Errorf("%s %s writes %q and no field of it", e.Group, e.Name(), e.Storage)
		}
		if strings.Contains(e.Note, "not exercised") {
			t.Errorf("%s %s: %s", e.Group, e.Name(), e.Note)
		}
	}
}

func TestLookup(t *testing.T) {
	for _, c := range []struct {
		group, resource, subresource string
		target                       string // "" for none
		field                        Field
	}{
		{"", "pods", "binding", "pods", Field{From: ".target.name", To: ".spec.nodeName"}},
		{"", "bindings", "", "pods", Field{From: ".target.name", To: ".spec.nodeName"}},
		{"apps", "deployments", "scale", "deployments", Field{From: ".spec.replicas"}},
		{"", "replicationcontrollers", "scale", "replicationcontrollers", Field{From: ".spec.replicas"}},
		{"apps", "deployments", "status", "deployments", Field{From: ".metadata.annotations"}},
		{"events.k8s.io", "events", "", "events", Field{From: ".note", To: ".message"}},
		{"", "serviceaccounts", "token", "", Field{}},
		{"", "pods", "exec", "", Field{}},
		{"authorization.k8s.io", "subjectaccessreviews", "", "", Field{}},
		// The possible endpoints of a custom resource are known.
		{"example.com", "widgets", "scale", "widgets", Field{From: ".spec.replicas", To: SpecReplicas}},
		{"example.com", "widgets", "status", "widgets", Field{From: ".status"}},
	} {
		name := c.group + "/" + c.resource + "/" + c.subresource
		e, ok := Lookup(c.group, c.resource, c.subresource)
		if !ok {
			t.Errorf("%s: is not known", name)
			continue
		}
		if c.field != (Field{}) && !slices.Contains(e.Fields, c.field) {
			t.Errorf("%s: %v; want %v", name, e.Fields, c.field)
		}
		target, writes := Target(c.group, c.resource, c.subresource)
		if writes != (c.target != "") || target.Resource != c.target {
			t.Errorf("%s writes %v, %v; want %q", name, target, writes, c.target)
		}
	}
	for _, unknown := range []key{{"", "pods", "dance"}, {"example.com", "widgets", "dance"}, {"", "serviceaccounts", "status"}} {
		if e, ok := Lookup(unknown.group, unknown.resource, unknown.subresource); ok {
			t.Errorf("%+v: %+v", unknown, e)
		}
	}
	if e, ok := Lookup("example.com", "widgets", "status"); !ok || e.Body != (Kind{Group: "example.com"}) || e.Storage != "example.com/widgets" {
		t.Errorf("a custom resource: %+v", e)
	}
}

func TestA4_Class(t *testing.T) {
	core, events := runtimeschema.GroupResource{Resource: "events"}, runtimeschema.GroupResource{Group: "events.k8s.io", Resource: "events"}
	for _, member := range []runtimeschema.GroupResource{core, events} {
		if got := Class(member.Group, member.Resource); !slices.Equal(got, []runtimeschema.GroupResource{core, events}) {
			t.Errorf("%v: %v", member, got)
		}
	}
	for _, alone := range []runtimeschema.GroupResource{{Group: "apps", Resource: "deployments"}, {Group: "example.com", Resource: "widgets"}, {Resource: "bindings"}} {
		if got := Class(alone.Group, alone.Resource); !slices.Equal(got, []runtimeschema.GroupResource{alone}) {
			t.Errorf("%v: %v", alone, got)
		}
	}
}

func TestA5_Writers(t *testing.T) {
	names := func(group, resource string) string {
		var out []string
		for _, e := range Writers(group, resource) {
			out = append(out, e.Group+"/"+e.Name())
		}
		return strings.Join(out, " ")
	}
	for _, c := range []struct{ group, resource, want string }{
		{"", "pods", "/bindings /pods /pods/binding /pods/ephemeralcontainers /pods/eviction /pods/resize /pods/status"},
		{"events.k8s.io", "events", "/events events.k8s.io/events"},
		{"", "namespaces", "/namespaces /namespaces/finalize /namespaces/status"},
		{"certificates.k8s.io", "certificatesigningrequests", "certificates.k8s.io/certificatesigningrequests certificates.k8s.io/certificatesigningrequests/approval certificates.k8s.io/certificatesigningrequests/status"},
		{"", "configmaps", "/configmaps"},
		{"example.com", "widgets", "example.com/widgets example.com/widgets/scale example.com/widgets/status"},
	} {
		if got := names(c.group, c.resource); got != c.want {
			t.Errorf("%s/%s:\n%s; want\n%s", c.group, c.resource, got, c.want)
		}
	}
}

func TestA5_Aliases(t *testing.T) {
	for _, c := range []struct {
		of   Ref
		want []Ref
	}{
		{Ref{"", "bindings", ""}, []Ref{{"", "pods", "binding"}}},
		{Ref{"", "pods", "binding"}, []Ref{{"", "bindings", ""}}},
		{Ref{"", "events", ""}, []Ref{{"events.k8s.io", "events", ""}}},
		{Ref{"", "pods", ""}, nil},
		{Ref{"", "pods", "status"}, nil},
		{Ref{"apps", "deployments", "scale"}, nil},
		{Ref{"example.com", "widgets", ""}, nil},
	} {
		if got := Aliases(c.of.Group, c.of.Resource, c.of.Subresource); !slices.Equal(got, c.want) {
			t.Errorf("%+v: %+v; want %+v", c.of, got, c.want)
		}
	}
}

func TestReaches(t *testing.T) {
	binding, _ := Lookup("", "pods", "binding")
	status, _ := Lookup("apps", "deployments", "status")
	finalize, _ := Lookup("", "namespaces", "finalize")
	token, _ := Lookup("", "serviceaccounts", "token")
	pods, _ := Lookup("", "pods", "")
	for _, c := range []struct {
		e    Endpoint
		path string
		want bool
	}{
		{binding, ".spec.nodeName", true}, {binding, ".spec", true}, {binding, "", true},
		{binding, ".spec.containers[*].image", false}, {binding, ".metadata.labels[pod-security]", true}, {binding, ".metadata.finalizers", false},
		{status, ".spec.replicas", false}, {status, ".metadata.annotations", true}, {status, ".metadata.labels", false}, {status, ".status.conditions[*]", true},
		{finalize, ".spec.finalizers[*]", true},
		{token, ".metadata", false},
		{pods, ".spec.containers[*].image", true},
	} {
		if got := c.e.Reaches(c.path); got != c.want {
			t.Errorf("%s reaches %q: %v", c.e.Name(), c.path, got)
		}
	}
}

func TestDecode_Refuses(t *testing.T) {
	const row = "{group: apps, resource: a, body: A.apps, operations: [CREATE], storage: a}"
	for text, want := range map[string]string{
		"apiServer: v1\nendpoints: [" + row + ", " + row + "]":                          "twice",
		"apiServer: v1\nendpoints: [{group: apps, body: A, operations: []}]":            "no resource",
		"apiServer: v1\nstrange: 1":                                                     "strange",
		"endpoints: [{group: a, resource: a, body: A, operations: [], fields: [spec]}]": "does not begin with a dot",
	} {
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want an error with %q", text, err, want)
		}
	}
}
