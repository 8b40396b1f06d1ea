//go:build controllers

package controllers

import (
	"bytes"
	"context"
	"crypto/tls"
	"embed"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/fieldperm/fieldperm/test/stack"
)

//go:embed testdata
var manifests embed.FS

// world is what the administrator sees and changes in a cluster.
type world struct {
	t       *testing.T
	admin   *rest.Config
	objects dynamic.Interface
	client  *kubernetes.Clientset
	groups  []*restmapper.APIGroupResources
}

func newWorld(t *testing.T, s *stack.Stack) *world {
	t.Helper()
	w := &world{t: t, admin: s.Admin()}
	var err error
	w.objects, err = dynamic.NewForConfig(w.admin)
	must(t, err)
	compact := rest.CopyConfig(w.admin)
	compact.ContentType = runtime.ContentTypeProtobuf
	w.client, err = kubernetes.NewForConfig(compact)
	must(t, err)
	w.groups, err = restmapper.GetAPIGroupResources(w.client)
	must(t, err)
	return w
}

// at returns the objects of a resource, "deployments.apps" or "pods", in a namespace.
func (w *world) at(config *rest.Config, resource, namespace string) (dynamic.ResourceInterface, error) {
	gvr, err := restmapper.NewDiscoveryRESTMapper(w.groups).ResourceFor(schema.ParseGroupResource(resource).WithVersion(""))
	if err != nil {
		return nil, err
	}
	client := w.objects
	if config != nil {
		if client, err = dynamic.NewForConfig(config); err != nil {
			return nil, err
		}
	}
	if namespace == "" {
		return client.Resource(gvr), nil
	}
	return client.Resource(gvr).Namespace(namespace), nil
}

// on returns the objects of a resource and the name, from "NAMESPACE/NAME" or "NAME".
func (w *world) on(resource, object string) (dynamic.ResourceInterface, string) {
	w.t.Helper()
	namespace, name, found := strings.Cut(object, "/")
	if !found {
		namespace, name = "", object
	}
	client, err := w.at(nil, resource, namespace)
	must(w.t, err)
	return client, name
}

// apply applies the documents of a file of testdata.
func (w *world) apply(file string) {
	w.t.Helper()
	content, err := manifests.ReadFile("testdata/" + file)
	must(w.t, err)
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
	mapper := restmapper.NewDiscoveryRESTMapper(w.groups)
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(&object.Object); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			w.t.Fatalf("%s: %v", file, err)
		}
		if len(object.Object) == 0 {
			continue
		}
		kind := object.GroupVersionKind()
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			w.t.Fatalf("%s: %v", file, err)
		}
		w.again(file+" "+kind.Kind+" "+object.GetName(), func() error {
			_, err := w.objects.Resource(mapping.Resource).Namespace(object.GetNamespace()).
				Apply(w.t.Context(), object.GetName(), object, metav1.ApplyOptions{FieldManager: "scenario", Force: true})
			return err
		})
	}
}

// again repeats a write until it succeeds: a controller may be first, or what the write depends on is still being made.
func (w *world) again(what string, write func() error) {
	w.t.Helper()
	await(w.t, what, 30*time.Second, func(context.Context) (bool, string) {
		err := write()
		return err == nil, fmt.Sprint(err)
	})
}

// patch sends a JSON merge patch to an object or, with subresources, to a part of it.
func (w *world) patch(resource, object, patch string, subresources ...string) {
	w.t.Helper()
	client, name := w.on(resource, object)
	w.again(resource+" "+object+" "+patch, func() error {
		_, err := client.Patch(w.t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "scenario"}, subresources...)
		return err
	})
}

// remove deletes an object. The policy is that of its dependents, empty for the default.
func (w *world) remove(resource, object string, policy metav1.DeletionPropagation) {
	w.t.Helper()
	client, name := w.on(resource, object)
	options := metav1.DeleteOptions{}
	if policy != "" {
		options.PropagationPolicy = &policy
	}
	w.again("delete "+resource+" "+object, func() error { return client.Delete(w.t.Context(), name, options) })
}

// gone waits until an object does not exist.
func (w *world) gone(resource, object string) {
	w.t.Helper()
	client, name := w.on(resource, object)
	await(w.t, resource+" "+object+" is gone", patience, func(ctx context.Context) (bool, string) {
		got, err := client.Get(ctx, name, metav1.GetOptions{})
		return apierrors.IsNotFound(err), describe(got, err)
	})
}

// until waits until a field of an object has a value: "status.readyReplicas", "status.conditions[Ready].status".
func (w *world) until(resource, object, path, value string) {
	w.t.Helper()
	client, name := w.on(resource, object)
	await(w.t, fmt.Sprintf("%s %s: %s is %q", resource, object, path, value), patience, func(ctx context.Context) (bool, string) {
		got, err := client.Get(ctx, name, metav1.GetOptions{})
		return err == nil && dig(got.Object, path) == value, describe(got, err)
	})
}

// count waits until as many objects with a label exist.
func (w *world) count(resource, namespace, selector string, n int, is func(o *unstructured.Unstructured) bool) {
	w.t.Helper()
	client, err := w.at(nil, resource, namespace)
	must(w.t, err)
	await(w.t, fmt.Sprintf("%s %s: %d of %s", resource, namespace, n, selector), patience, func(ctx context.Context) (bool, string) {
		list, err := client.List(ctx, metav1.ListOptions{LabelSelector: selector})
		if err != nil {
			return false, err.Error()
		}
		found, state := 0, ""
		for i := range list.Items {
			if is == nil || is(&list.Items[i]) {
				found++
			}
			state += describe(&list.Items[i], nil) + "\n"
		}
		return found == n, fmt.Sprintf("%d:\n%s", found, state)
	})
}

// dig returns the value at a path as text, empty if there is none. "[x]" selects an item of a list by its type, name or number.
func dig(value any, path string) string {
	for _, part := range strings.FieldsFunc(strings.NewReplacer("[", ".[", "]", "").Replace(path), func(r rune) bool { return r == '.' }) {
		key, item := strings.CutPrefix(part, "[")
		if !item {
			fields, _ := value.(map[string]any)
			value = fields[part]
			continue
		}
		list, _ := value.([]any)
		value = nil
		for i, element := range list {
			fields, _ := element.(map[string]any)
			if fields["type"] == key || fields["name"] == key || fmt.Sprint(i) == key {
				value = element
				break
			}
		}
	}
	if value == nil {
		return ""
	}
	return fmt.Sprint(value)
}

func describe(o *unstructured.Unstructured, err error) string {
	if err != nil || o == nil {
		return fmt.Sprint(err)
	}
	o = o.DeepCopy()
	o.SetManagedFields(nil)
	text, _ := o.MarshalJSON()
	return strings.TrimSpace(string(text))
}

func healthy(ctx context.Context, address string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	// The certificate is one that the program makes for itself.
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // It is a probe of health only.
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return errors.New(response.Status)
	}
	return nil
}
