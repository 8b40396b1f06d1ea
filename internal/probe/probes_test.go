package probe

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/fieldperm/fieldperm/internal/allowlist"
	"github.com/fieldperm/fieldperm/internal/interlock"
	"github.com/fieldperm/fieldperm/schema/endpoint"
)

// list returns an allowlist with Deployments and their scale, Pods, and a custom resource.
func list() *allowlist.List {
	resources := func(groupVersion string, names ...string) *metav1.APIResourceList {
		out := &metav1.APIResourceList{GroupVersion: groupVersion}
		for _, name := range names {
			kind := map[string]string{"deployments": "Deployment", "pods": "Pod", "widgets": "Widget", "namespaces": "Namespace"}[name]
			out.APIResources = append(out.APIResources, metav1.APIResource{Name: name, Kind: kind, Namespaced: name != "namespaces", Verbs: []string{"get", "create", "update", "patch"}})
		}
		return out
	}
	return allowlist.Build([]*metav1.APIResourceList{
		resources("apps/v1", "deployments", "deployments/scale"), resources("v1", "pods", "namespaces"), resources("example.com/v1", "widgets"), resources("metrics.example.com/v1", "gauges"),
	}, []string{"metrics.example.com"}, []string{"metrics.example.com"})
}

func lookup(t *testing.T, group, name string) endpoint.Endpoint {
	t.Helper()
	resource, subresource, _ := strings.Cut(name, "/")
	e, ok := endpoint.Lookup(group, resource, subresource)
	if !ok {
		t.Fatalf("%s %s is no endpoint", group, name)
	}
	return e
}

// Each write must be valid for its endpoint: an empty patch of an object that exists, or a sample.
func TestA6_WritesOfEachEndpoint(t *testing.T) {
	objects := NewObjects()
	objects.known[runtimeschema.GroupResource{Group: "apps", Resource: "deployments"}] = types.NamespacedName{Namespace: "shop", Name: "web"}
	objects.known[runtimeschema.GroupResource{Group: "metrics.example.com", Resource: "gauges"}] = types.NamespacedName{Name: "one"}
	for _, c := range []struct{ group, name, want string }{
		{"apps", "deployments", "UPDATE apps/v1 shop/web; CREATE apps/v1 default/fieldperm-canary Deployment"},
		{"apps", "deployments/scale", "UPDATE apps/v1 shop/web"},
		{"", "pods", "CREATE /v1 default/fieldperm-canary Pod"},
		{"", "pods/status", ""},
		{"", "pods/binding", "CREATE /v1 default/fieldperm-canary Binding"},
		{"", "bindings", "CREATE /v1 default/fieldperm-canary Binding"},
		{"", "namespaces", "UPDATE /v1 /kube-system; CREATE /v1 /fieldperm-canary Namespace"},
		{"example.com", "widgets", "CREATE example.com/v1 default/fieldperm-canary Widget"},
		{"apps", "DELETE deployments", "DELETE apps/v1 shop/web"},
		{"", "DELETE pods", ""},
		{"", "DELETE namespaces", ""}, // kube-system cannot be deleted.
		{"metrics.example.com", "DELETE gauges", ""},
		{"", "CONNECT pods/exec", "CONNECT /v1 default/fieldperm-canary"},
	} {
		var operation interlock.Operation
		if of, name, ok := strings.Cut(c.name, " "); ok {
			operation, c.name = interlock.Operation(of), name
		}
		e := lookup(t, c.group, c.name)
		var got []string
		for _, w := range writes(&e, operation, list(), objects, namespaceBut("")) {
			text, name := "", w.target.Name
			if w.body != nil {
				metadata, _ := w.body["metadata"].(map[string]any)
				text, name = fmt.Sprintf(" %s", w.body["kind"]), fmt.Sprint(metadata["name"])
			}
			got = append(got, fmt.Sprintf("%s %s/%s %s/%s%s", w.target.Operation, w.target.Group, w.target.Version, w.target.Namespace, name, text))
		}
		if is := strings.Join(got, "; "); is != c.want {
			t.Errorf("%s: %s; want %s", nameOf(&e, operation), is, c.want)
		}
	}
	if namespaceBut(metav1.NamespaceDefault) == metav1.NamespaceDefault {
		t.Error("samples go where the webhook is not asked")
	}
}

// Names come only from requests to the webhooks, and only from objects that exist.
func TestA6_KnownObjects(t *testing.T) {
	yes, learned := true, 0
	o := &Objects{learned: func() { learned++ }}
	at := runtimeschema.GroupResource{Group: "apps", Resource: "deployments"}
	submitted := func(operation admissionv1.Operation, name, subresource string, dry *bool) *admissionv1.AdmissionRequest {
		return &admissionv1.AdmissionRequest{Operation: operation, Namespace: "shop", Name: name, SubResource: subresource, DryRun: dry, Resource: metav1.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}}
	}
	for _, none := range []*admissionv1.AdmissionRequest{
		submitted(admissionv1.Create, "dry", "", &yes), submitted(admissionv1.Create, "", "", nil), submitted(admissionv1.Delete, "gone", "", nil), submitted(admissionv1.Create, "part", "binding", nil),
	} {
		o.Saw(none)
	}
	if name, known := o.Of(at); known {
		t.Errorf("%s is said to exist", name)
	}
	o.Saw(submitted(admissionv1.Update, "web", "scale", &yes))
	o.Saw(submitted(admissionv1.Update, "other", "", nil))
	if name, _ := o.Of(at); name.String() != "shop/web" || learned != 1 {
		t.Errorf("known is %s, reported %d times", name, learned)
	}
	o.Forget(at, types.NamespacedName{Namespace: "shop", Name: "other"})
	if _, known := o.Of(at); !known {
		t.Error("another one is forgotten")
	}
	o.Forget(at, types.NamespacedName{Namespace: "shop", Name: "web"})
	if _, known := o.Of(at); known {
		t.Error("it is not forgotten")
	}
	o.Saw(submitted(admissionv1.Delete, "stays", "", &yes))
	if name, _ := o.Of(at); name.Name != "stays" {
		t.Errorf("a dry run of a deletion shows %s", name)
	}

	// A namespace that can be deleted is better to know than one that cannot.
	o = NewObjects()
	ask := func(name string) *admissionv1.AdmissionRequest {
		return &admissionv1.AdmissionRequest{Operation: admissionv1.Update, Namespace: name, Name: name, Resource: metav1.GroupVersionResource{Version: "v1", Resource: "namespaces"}}
	}
	for _, c := range [][2]string{{"default", "/kube-system"}, {"shop", "/shop"}, {"other", "/shop"}} {
		o.Saw(ask(c[0]))
		if name, _ := o.Of(namespaces); name.String() != c[1] {
			t.Errorf("after %s: %s", c[0], name)
		}
	}
	o.Forget(namespaces, types.NamespacedName{Name: "shop"})
	if name, _ := o.Of(namespaces); name.Name != "kube-system" {
		t.Errorf("after it is gone: %s", name)
	}
}

// The condition is True only if every server refused writes through every endpoint by this barrier.
func TestA6_Findings(t *testing.T) {
	deployments, scale, pods := lookup(t, "apps", "deployments"), lookup(t, "apps", "deployments/scale"), lookup(t, "", "pods")
	unserved, custom := lookup(t, "apps", "statefulsets"), lookup(t, "tocome.example.com", "comings")
	held, others, passed, failed := result{holds: []string{"b"}}, result{holds: []string{"a"}}, result{err: fmt.Errorf("x: %w", interlock.ErrUnbarred)}, result{err: errors.New("timeout")}
	at := func(server string, e endpoint.Endpoint) place { return place{server, requestOf(&Barrier{}, &e)} }
	for name, c := range map[string]struct {
		endpoints []endpoint.Endpoint
		results   map[place]result
		want      string
	}{
		"refused":             {[]endpoint.Endpoint{deployments, scale}, map[place]result{at("1", deployments): held, at("2", deployments): held, at("1", scale): held, at("2", scale): held}, "2/0/0"},
		"one server asks not": {[]endpoint.Endpoint{deployments}, map[place]result{at("1", deployments): held, at("2", deployments): passed}, "0/1/0"},
		"one is not probed":   {[]endpoint.Endpoint{deployments}, map[place]result{at("1", deployments): held}, "0/0/1"},
		"one failed":          {[]endpoint.Endpoint{deployments, pods}, map[place]result{at("1", deployments): held, at("2", deployments): failed, at("1", pods): held, at("2", pods): held}, "1/0/1"},
		"by another barrier":  {[]endpoint.Endpoint{deployments}, map[place]result{at("1", deployments): held, at("2", deployments): others}, "0/0/1"},
		"not served":          {[]endpoint.Endpoint{deployments, unserved}, map[place]result{at("1", deployments): held, at("2", deployments): held}, "1/0/0"},
		"nothing served":      {[]endpoint.Endpoint{unserved}, nil, "0/0/1"},
		"no endpoint":         {nil, nil, "0/0/1"},
		"served elsewhere":    {[]endpoint.Endpoint{custom}, nil, "0/0/1"},
	} {
		p := &Probes{servers: []string{"1", "2"}, known: list(), results: c.results}
		found := p.Of(Barrier{Name: "b", Endpoints: c.endpoints})
		if got := fmt.Sprintf("%d/%d/%d", len(found.Refused), len(found.Unbarred), len(found.Unproven)); got != c.want {
			t.Errorf("%s: %s, want %s: %+v", name, got, c.want, found)
		}
	}
	// A write that was refused says nothing about a deletion.
	p := &Probes{servers: []string{"1"}, known: list(), results: map[place]result{at("1", deployments): held}}
	if found := p.Of(Barrier{Name: "b", Operation: admissionv1.Delete, Endpoints: []endpoint.Endpoint{deployments}}); len(found.Refused) > 0 || len(found.Unproven) != 1 {
		t.Errorf("a deletion: %+v", found)
	}
	p.results[place{"1", request{endpoint.Ref{Group: "apps", Resource: "deployments"}, admissionv1.Delete}}] = held
	if found := p.Of(Barrier{Name: "b", Operation: admissionv1.Delete, Endpoints: []endpoint.Endpoint{deployments}}); len(found.Refused) != 1 || found.Refused[0] != "deletions of deployments.apps" {
		t.Errorf("a deletion that was refused: %+v", found)
	}
	for name, p := range map[string]*Probes{"zero": {}, "no servers": {known: list()}} {
		if found := p.Of(Barrier{}); len(found.Unproven) != 1 {
			t.Errorf("%s: %+v", name, found)
		}
	}
}

// Each probe costs a write, so no probe is sent while the last result is valid.
func TestA6_WhenAProbeIsDue(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	one := place{server: "1"}
	p := &Probes{config: Config{Clock: clock}, results: map[place]result{}}
	if !p.due(one, "v1", []string{"b"}) {
		t.Error("an endpoint without a probe is not due")
	}
	p.note(context.Background(), one, result{at: clock.Now(), version: "v1", holds: []string{"b"}})
	for what, due := range map[string]bool{"the same": p.due(one, "v1", []string{"b"}), "other rules": !p.due(one, "v2", []string{"b"}), "another barrier": !p.due(one, "v1", []string{"b", "c"})} {
		if due {
			t.Errorf("%s: due is wrong", what)
		}
	}
	clock.SetTime(clock.Now().Add(renewal))
	if !p.due(one, "v1", []string{"b"}) {
		t.Error("it counts for ever")
	}
	p.note(context.Background(), one, result{at: clock.Now(), version: "v1", holds: []string{"b"}, err: errors.New("x")})
	if !p.due(one, "v1", []string{"b"}) {
		t.Error("a failed probe is not tried again")
	}
}
