package deploy

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// root is the checkout.
const root = "../.."

// split returns the documents of a file.
func split(t *testing.T, text []byte) [][]byte {
	t.Helper()
	var out [][]byte
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		var fields map[string]any
		if err := yaml.UnmarshalStrict(document, &fields); err != nil {
			t.Fatalf("%v in:\n%s", err, document)
		}
		if len(fields) > 0 {
			out = append(out, document)
		}
	}
}

// strictly decodes an object into its Go type: a field that the type does not have, or a duplicate field, is an error. Kinds of other
// projects are not checked.
func strictly(document []byte) (runtime.Object, error) {
	types := runtime.NewScheme()
	if err := errors.Join(scheme.AddToScheme(types), apiextensionsv1.AddToScheme(types)); err != nil {
		return nil, err
	}
	decoder := json.NewSerializerWithOptions(json.DefaultMetaFactory, types, types, json.SerializerOptions{Yaml: true, Strict: true})
	object, _, err := decoder.Decode(document, nil, nil)
	if runtime.IsNotRegisteredError(err) {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &object.Object); err != nil {
			return nil, err
		}
		if !strings.HasPrefix(object.GetAPIVersion(), "cert-manager.io/") {
			return nil, err
		}
		return object, nil
	}
	return object, err
}

// objects decodes a file into the Go types and returns the content by kind and name. Differences in spelling only disappear by that.
func objects(t *testing.T, text []byte) map[string]map[string]any {
	t.Helper()
	out := map[string]map[string]any{}
	for _, document := range split(t, text) {
		object, err := strictly(document)
		if err != nil {
			t.Errorf("%v in:\n%s", err, document)
			continue
		}
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			t.Fatal(err)
		}
		u := unstructured.Unstructured{Object: fields}
		name := fmt.Sprintf("%s %s/%s", u.GroupVersionKind().GroupKind(), u.GetNamespace(), u.GetName())
		if _, twice := out[name]; twice {
			t.Errorf("%s is there twice", name)
		}
		out[name] = fields
	}
	return out
}
