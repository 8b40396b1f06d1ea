package fieldperm

import (
	"context"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/test/schematest"
	"github.com/fieldperm/fieldperm/verbs"
)

var random = regexp.MustCompile(", [A-Z2-7]{26}>")

// D10: what the API server stores beyond the JSON of the review is charged where the review shows a sign of it.
func TestD10_ContentsThatJSONDoesNotShow(t *testing.T) {
	compiled := schematest.Schema(t)
	image, err := verbs.Parse("granular:image")
	if err != nil {
		t.Fatal(err)
	}
	deployments, endpointSlices, configMaps, classes := runtimeschema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"},
		runtimeschema.GroupVersionKind{Group: "discovery.k8s.io", Version: "v1", Kind: "EndpointSlice"},
		runtimeschema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, runtimeschema.GroupVersionKind{Group: "resource.k8s.io", Version: "v1", Kind: "DeviceClass"}
	object := func(generation int, metadata, spec string) string {
		return fmt.Sprintf(`{"metadata":{"name":"x"%s,"generation":%d},"spec":{"paused":true,"template":{"spec":{"containers":[{"name":"web","image":"i"%s}]}}}}`, metadata, generation, spec)
	}
	data := func(text string) string { return `{"metadata":{"name":"x"},"data":` + text + `}` }
	parameters := func(text string) string {
		return `{"metadata":{"name":"x","generation":1},"spec":{"config":[{"opaque":{"driver":"d","parameters":` + text + `}}]}}`
	}
	const labels, annotations = `,"labels":{"a":"b"}`, `,"annotations":{"a":"b"}`
	for name, c := range map[string]struct {
		kind     runtimeschema.GroupVersionKind
		old, new string
		barriers schema.VerbSet
		want     []string
	}{
		"a generation without a cause":               {deployments, object(1, "", ""), object(2, "", ""), nil, []string{"modified ."}},
		"behind a barrier":                           {deployments, object(1, "", ""), object(2, "", ""), schema.VerbSet{image: {}}, []string{"modified .", "modified .spec.template.spec.containers[name=\"web\"].image"}},
		"beside a label":                             {deployments, object(1, "", ""), object(2, labels, ""), nil, []string{`added .metadata.labels["a"]`, "modified ."}},
		"with an annotation, which raises it":        {deployments, object(1, "", ""), object(2, annotations, ""), nil, []string{`added .metadata.annotations["a"]`}},
		"by two, with an annotation":                 {deployments, object(1, "", ""), object(3, annotations, ""), nil, []string{`added .metadata.annotations["a"]`, "modified ."}},
		"with a label, which raises it":              {endpointSlices, object(1, "", ""), object(2, labels, ""), nil, []string{`added .metadata.labels["a"]`}},
		"with an annotation, which does not":         {endpointSlices, object(1, "", ""), object(2, annotations, ""), nil, []string{`added .metadata.annotations["a"]`, "modified ."}},
		"with a change of the contents":              {deployments, object(1, "", ""), object(2, "", `,"tty":true`), nil, []string{`added .spec.template.spec.containers[name="web"].tty`}},
		"with contents that disappear":               {deployments, object(1, "", ""), `{"metadata":{"name":"x","generation":2}}`, nil, []string{"removed .spec.paused", "removed .spec.template.spec.containers[name=\"web\"]"}},
		"no generation, then one":                    {deployments, `{"metadata":{"name":"x"}}`, `{"metadata":{"name":"x","generation":1}}`, nil, []string{"modified ."}},
		"a string that is not UTF-8":                 {configMaps, data(`{"k":"a\ufffd"}`), data(`{"k":"a\ufffd"}`), nil, []string{`modified .data["k"]`}},
		"the character U+FFFD":                       {configMaps, data(`{"k":"` + "\uFFFD" + `"}`), data(`{"k":"` + "\uFFFD" + `"}`), nil, nil},
		"the character, then the byte":               {configMaps, data(`{"k":"` + "\uFFFD" + `"}`), data(`{"k":"\ufffd"}`), nil, []string{`modified .data["k"]`, "modified ."}},
		"the byte, then the character":               {configMaps, data(`{"k":"\ufffd"}`), data(`{"k":"` + "\uFFFD" + `"}`), nil, []string{`modified .data["k"]`}},
		"U+FFFF, then the character":                 {configMaps, data(`{"k":"` + "\uFFFF" + `"}`), data(`{"k":"` + "\uFFFD" + `"}`), nil, []string{`modified .data["k"]`}},
		"U+FFFF, then the byte":                      {configMaps, data(`{"k":"` + "\uFFFF" + `"}`), data(`{"k":"\ufffd"}`), nil, []string{`modified .data["k"]`, "modified ."}},
		"the byte becomes the character beside one":  {configMaps, data(`{"k":"\ufffd","l":"\ufffd"}`), data(`{"k":"\ufffd","l":"` + "\uFFFD" + `"}`), nil, []string{`modified .data["k"]`, `modified .data["l"]`}},
		"one byte more":                              {configMaps, data(`{"k":"\ufffd"}`), data(`{"k":"\ufffd","l":"\ufffd"}`), nil, []string{`added .data["l"]`, `modified .data["k"]`, "modified ."}},
		"a new object":                               {configMaps, "", data(`{"k":"\ufffd"}`), nil, []string{`added .data["k"]`, "created ."}},
		"a field manager that is not UTF-8":          {configMaps, data(`{"k":"v"}`), `{"metadata":{"name":"x","managedFields":[{"manager":"\ufffd","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:data":{"f:l":{}}}}]},"data":{"k":"v","l":"w"}}`, nil, []string{`added .data["l"]`, "modified .", "ownership ."}},
		"a name that is not UTF-8":                   {configMaps, data(`{"\ufffd":"v"}`), data(`{"\ufffd":"v"}`), nil, []string{"added .data[\"<not UTF-8>\uFFFD\"]", "removed .data[\"<not UTF-8>\uFFFD\"]"}},
		"several such strings":                       {configMaps, data(`{"k":"\ufffd\"\ufffd","l":"\ufffd\\"}`), data(`{"k":"\ufffd\"\ufffd","l":"\ufffd\\"}`), nil, []string{`modified .data["k"]`, `modified .data["l"]`}},
		"text that looks like the escape":            {configMaps, data(`{"k":"\ufffd","l":"\\ufffd"}`), data(`{"k":"x","l":"\\ufffd"}`), nil, []string{`modified .data["k"]`}},
		"an escaped backslash, then the escape":      {configMaps, data(`{"l":"\\\ufffd"}`), data(`{"l":"\\\ufffd"}`), nil, []string{`modified .data["l"]`}},
		"a string in one of the objects only":        {configMaps, data(`{"k":"v"}`), data(`{"k":"v","l":"\ufffd"}`), nil, []string{`added .data["l"]`, "modified ."}},
		"another spelling of a number in raw JSON":   {classes, parameters(`{"n":1}`), parameters(`{"n":1.0}`), nil, []string{"modified .spec.config"}},
		"the same spelling in another order of them": {classes, parameters(`{"n":1,"m":1e2}`), parameters(`{"m":1e2,"n":1}`), nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			kind, err := compiled.Kind(c.kind)
			if err != nil {
				t.Fatal(err)
			}
			var old []byte
			if c.old != "" {
				old = []byte(c.old)
			}
			requirements, err := Diff(context.Background(), old, []byte(c.new), kind, c.barriers)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for i := range requirements {
				got = append(got, random.ReplaceAllString(fmt.Sprintf("%s %s", requirements[i].Operation, requirements[i].Path), ">"))
			}
			slices.Sort(got)
			want := slices.Sorted(slices.Values(c.want))
			if strings.Join(got, "\n") != strings.Join(want, "\n") {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

// D10: an object of such bytes does not take many times its memory.
func TestD10_ManyBytesThatAreNotUTF8(t *testing.T) {
	compiled := schematest.Schema(t)
	kind, err := compiled.Kind(runtimeschema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
	if err != nil {
		t.Fatal(err)
	}
	text := `{"metadata":{"name":"x"},"data":{"k":"` + strings.Repeat(`\ufffd\"a`, 1<<17) + `"}}`
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	rs, err := Diff(t.Context(), []byte(text), []byte(text), kind, nil)
	runtime.ReadMemStats(&after)
	if err != nil || len(rs) != 1 {
		t.Errorf("%d requirements, %v", len(rs), err)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > uint64(16*len(text)) {
		t.Errorf("%d bytes for objects of %d", used, len(text))
	}
}
