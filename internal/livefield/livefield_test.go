package livefield

import (
	"encoding/json"
	"strings"
	"testing"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/fieldperm/fieldperm/internal/fieldtree"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/test/schematest"
)

const service = `{"apiVersion":"v1","kind":"Service","metadata":{"name":"web","labels":{"app":"web","example.com/x":"0"},"finalizers":["a/b","c/d"]},
	"spec":{"selector":{"app":"web"},"externalIPs":["10.0.0.1"],"ports":[{"port":80,"name":"http","protocol":"TCP"},{"port":80,"protocol":"UDP"},{"port":443}]}}`

const deployment = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{"replicas":1,"template":{"spec":{"containers":[
	{"name":"web","image":"a","env":[{"name":"A","value":"1"},{"name":"A","value":"2"}]},{"name":"side","image":"b"}]}}}}`

func kindOf(t *testing.T, group, kind, resource string) Kind {
	t.Helper()
	s := schematest.Traced(t)
	gvk, ref := runtimeschema.GroupVersionKind{Group: group, Version: "v1", Kind: kind}, schema.ResourceRef{Group: group, Version: "v1", Resource: resource}
	tree, err := fieldtree.Of(s, gvk, ref)
	must(t, err)
	known, err := s.KindFor(gvk, ref)
	must(t, err)
	return Kind{tree, known.Root}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func objectOf(t *testing.T, text string) map[string]any {
	t.Helper()
	var out map[string]any
	must(t, utiljson.Unmarshal([]byte(text), &out))
	return out
}

func TestResolveNamesItemsByTheirKeys(t *testing.T) {
	services, deployments := kindOf(t, "", "Service", "services"), kindOf(t, "apps", "Deployment", "deployments")
	for _, c := range []struct {
		kind         Kind
		object, path string
		// want are the paths and JSON pointers, or a part of the error.
		want string
	}{
		{deployments, deployment, "spec.replicas", `.spec.replicas /spec/replicas`},
		{deployments, deployment, ".spec.paused", `.spec.paused /spec/paused`},
		{deployments, deployment, "", ` `},
		{deployments, deployment, "spec.template.spec.containers.image", `.spec.template.spec.containers[name="web"].image /spec/template/spec/containers/0/image, .spec.template.spec.containers[name="side"].image /spec/template/spec/containers/1/image`},
		{deployments, deployment, "spec.template.spec.containers[*].image", `.spec.template.spec.containers[name="web"].image /spec/template/spec/containers/0/image, .spec.template.spec.containers[name="side"].image /spec/template/spec/containers/1/image`},
		{deployments, deployment, "spec.template.spec.containers[1].image", `.spec.template.spec.containers[name="side"].image /spec/template/spec/containers/1/image`},
		{deployments, deployment, `.spec.template.spec.containers[image="b"].command`, `.spec.template.spec.containers[name="side"].command /spec/template/spec/containers/1/command`},
		{deployments, deployment, `.spec.template.spec.containers[name="x"].image`, `has no such item: use [name="web"] or [name="side"]`},
		{deployments, deployment, `.spec.template.spec.containers[2].image`, `has 2 items: use an index below 2`},
		{deployments, deployment, `.spec.template.spec.volumes[name="x"].name`, `has no items`},
		{deployments, deployment, `.spec.template.spec.volumes`, `.spec.template.spec.volumes /spec/template/spec/volumes`},
		{deployments, deployment, `.spec.template.spec.volumes.name`, `names no item that is there`},
		{deployments, deployment, `.spec.template.spec.containers[0].env[name="A"].value`, `2 items of ".spec.template.spec.containers[name=\"web\"].env" have these keys: name one by its index`},
		{deployments, deployment, "spec.template.spec.containers[image=b].name", `.spec.template.spec.containers[name="side"].name /spec/template/spec/containers/1/name`},
		{deployments, deployment, "spec.replica", `use "replicas"`},
		{deployments, deployment, `metadata.labels["x"]`, `.metadata.labels["x"] /metadata/labels/x`},
		{deployments, deployment, `metadata.labels[0]`, `has no items`},
		{services, service, `spec.ports[port=80,protocol="UDP"].nodePort`, `.spec.ports[port=80,protocol="UDP"].nodePort /spec/ports/1/nodePort`},
		{services, service, `spec.ports[port=443].nodePort`, `.spec.ports[port=443,protocol="TCP"].nodePort /spec/ports/2/nodePort`},
		{services, service, `spec.ports[port=80].nodePort`, `2 items of ".spec.ports" have these keys`},
		{services, service, `metadata.labels[*]`, `.metadata.labels["app"] /metadata/labels/app, .metadata.labels["example.com/x"] /metadata/labels/example.com~1x`},
		{services, service, `metadata.labels[0]`, `is a map: name a key`},
		{services, service, `metadata.finalizers[="c/d"]`, `.metadata.finalizers[="c/d"] /metadata/finalizers/1`},
		{services, service, `metadata.finalizers[="x"]`, `use [="a/b"] or [="c/d"]`},
		{services, service, `spec.externalIPs[0]`, `.spec.externalIPs[0] /spec/externalIPs/0`},
		{services, service, `spec.selector.app`, `.spec.selector.app /spec/selector/app`},
	} {
		fields, err := Resolve(c.kind, objectOf(t, c.object), c.path)
		var got []string
		for i := range fields {
			got = append(got, fields[i].Text()+" "+fields[i].Pointer())
		}
		text := strings.Join(got, ", ")
		if err != nil {
			if text = err.Error(); strings.Contains(text, c.want) {
				continue
			}
		}
		if text != c.want {
			t.Errorf("%s: got %s, want %s", c.path, text, c.want)
		}
	}
}

// TestD5_AFieldThatIdentifiesAnItemIsChargedAtTheList, and so are items that cannot be told apart.
func TestD5_AFieldThatIdentifiesAnItemIsChargedAtTheList(t *testing.T) {
	k := kindOf(t, "apps", "Deployment", "deployments")
	for path, want := range map[string]string{
		`.spec.template.spec.containers[name="web"].image`:        `.spec.template.spec.containers[*].image`,
		`.spec.template.spec.containers[name="web"].name`:         `.spec.template.spec.containers`,
		`.spec.template.spec.containers[0].env[0].value`:          `.spec.template.spec.containers[*].env`,
		`.spec.template.spec.containers[0].env[1].valueFrom`:      `.spec.template.spec.containers[*].env`,
		`.spec.template.spec.containers[name="side"].env`:         `.spec.template.spec.containers[*].env`,
		`.spec.template.spec.containers[name="web"].resources`:    `.spec.template.spec.containers[*].resources`,
		`.spec.template.spec.containers[name="side"]`:             `.spec.template.spec.containers[*]`,
		`.spec.template.metadata.annotations["example.com/name"]`: `.spec.template.metadata.annotations["example.com/name"]`,
	} {
		fields, err := Resolve(k, objectOf(t, deployment), path)
		must(t, err)
		if got := fields[0].Charged.Path.String(); got != want && got != strings.ReplaceAll(want, `["example.com/name"]`, `.example.com/name`) {
			t.Errorf("%s: charged at %s, want %s", path, got, want)
		}
	}
}

// TestD4_AFieldOfAnAtomicValueKnowsTheWhole, which a change of the field changes.
func TestD4_AFieldOfAnAtomicValueKnowsTheWhole(t *testing.T) {
	deployments, services := kindOf(t, "apps", "Deployment", "deployments"), kindOf(t, "", "Service", "services")
	owned := strings.Replace(service, `"finalizers"`, `"ownerReferences":[{"uid":"k","name":"a"},{"uid":"l","name":"b"}],"finalizers"`, 1)
	for _, c := range []struct {
		kind               Kind
		object, path, want string
	}{
		{services, owned, `.metadata.ownerReferences[uid="k"].blockOwnerDeletion`, `.metadata.ownerReferences[*]`},
		{services, owned, `.metadata.ownerReferences[1].name`, `.metadata.ownerReferences[*]`},
		{services, owned, `.metadata.ownerReferences[uid="k"]`, ``},
		{services, service, `.spec.selector.app`, `.spec.selector`},
		{services, service, `.spec.externalIPs[0]`, `.spec.externalIPs`},
		{services, service, `.spec.ports[port=443].nodePort`, ``},
		{deployments, deployment, `.spec.template.spec.containers[name="web"].image`, ``},
	} {
		fields, err := Resolve(c.kind, objectOf(t, c.object), c.path)
		must(t, err)
		got := ""
		if whole := fields[0].Charged.Whole(); whole != nil {
			got = whole.Path.String()
		}
		if got != c.want {
			t.Errorf("%s: the whole is %q, want %q", c.path, got, c.want)
		}
	}
}

func TestSetChangesTheFieldOnly(t *testing.T) {
	k := kindOf(t, "apps", "Deployment", "deployments")
	for _, c := range []struct {
		path  string
		value any
		from  string
		to    string
	}{
		{".spec.replicas", int64(3), `"replicas":1`, `"replicas":3`},
		{".spec.replicas", nil, `"replicas":1,`, ``},
		{".spec.paused", nil, ``, ``},
		{".spec.paused", true, `"spec":{"replicas"`, `"spec":{"paused":true,"replicas"`},
		{`.metadata.labels["a/b"]`, "x", `"metadata":{`, `"metadata":{"labels":{"a/b":"x"},`},
		{`.metadata.labels["a/b"]`, nil, ``, ``},
		{`.spec.template.spec.containers[name="side"].image`, "c", `"b"`, `"c"`},
		{`.spec.template.spec.containers[name="side"]`, nil, `,{"name":"side","image":"b"}`, ``},
		{`.spec.template.spec.containers[name="side"]`, map[string]any{"name": "new"}, `{"name":"side","image":"b"}`, `{"name":"new"}`},
	} {
		object := objectOf(t, deployment)
		fields, err := Resolve(k, object, c.path)
		must(t, err)
		changed, err := fields[0].Set(object, c.value)
		must(t, err)
		got, want := encode(t, changed), encode(t, objectOf(t, strings.Replace(deployment, c.from, c.to, 1)))
		if got != want {
			t.Errorf("%s to %v: got %s, want %s", c.path, c.value, got, want)
		}
		if encode(t, object) != encode(t, objectOf(t, deployment)) {
			t.Errorf("%s: the object that was given is changed", c.path)
		}
	}
	object := objectOf(t, `{"spec":{"template":"x"}}`)
	fields, err := Resolve(k, object, ".spec.template.spec")
	must(t, err)
	if _, err := fields[0].Set(object, map[string]any{}); err == nil || !strings.Contains(err.Error(), "below a value that is no object") {
		t.Errorf("a field below a text: %v", err)
	}
}

func encode(t *testing.T, of any) string {
	t.Helper()
	out, err := json.Marshal(of)
	must(t, err)
	return string(out)
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"spec.replicas", `.a[name="x"].b`, `a["x/y"]`, `a[0][*]`, `a[="x"]`, `a[port=80,protocol="TCP"]`, `[`, `a[x=`, `a["`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if steps, err := parse(text); err == nil && len(steps) > len(text) {
			t.Errorf("%q has %d steps", text, len(steps))
		}
	})
}
