//go:build controllers

package trial

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// World is what the administrator sees and changes in a cluster.
type World struct {
	T     *testing.T
	Admin *rest.Config
	// Objects and Client are the administrator's.
	Objects dynamic.Interface
	Client  *kubernetes.Clientset

	mapper *restmapper.DeferredDiscoveryRESTMapper
}

func newWorld(t *testing.T, admin *rest.Config) *World {
	t.Helper()
	w := &World{T: t, Admin: admin}
	var err error
	w.Objects, err = dynamic.NewForConfig(admin)
	Must(t, err)
	compact := rest.CopyConfig(admin)
	compact.ContentType = runtime.ContentTypeProtobuf
	w.Client, err = kubernetes.NewForConfig(compact)
	Must(t, err)
	w.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(w.Client.Discovery()))
	return w
}

// Await calls f until it returns true, and fails the test with what was awaited, and the state of it, after the limit.
func (w *World) Await(what string, limit time.Duration, f func(ctx context.Context) (bool, string)) {
	w.T.Helper()
	await(w.T, what, limit, f)
}

// discover calls f, and again after a new discovery while it does not know a kind: its definition was made a moment ago.
func (w *World) discover(f func() error) error {
	err := f()
	for tries := 0; meta.IsNoMatchError(err) && tries < 50; tries++ {
		time.Sleep(200 * time.Millisecond)
		w.mapper.Reset()
		err = f()
	}
	return err
}

// At returns the objects of a resource, "deployments.apps" or "pods", in a namespace.
func (w *World) At(config *rest.Config, resource, namespace string) (dynamic.ResourceInterface, error) {
	var gvr schema.GroupVersionResource
	err := w.discover(func() (err error) {
		gvr, err = w.mapper.ResourceFor(schema.ParseGroupResource(resource).WithVersion(""))
		return err
	})
	if err != nil {
		return nil, err
	}
	client := w.Objects
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

// On returns the objects of a resource and the name, from "NAMESPACE/NAME" or "NAME".
func (w *World) On(resource, object string) (dynamic.ResourceInterface, string) {
	w.T.Helper()
	namespace, name, found := strings.Cut(object, "/")
	if !found {
		namespace, name = "", object
	}
	client, err := w.At(nil, resource, namespace)
	Must(w.T, err)
	return client, name
}

// Apply applies the documents of a file by server-side apply.
func (w *World) Apply(file string) {
	w.T.Helper()
	content, err := os.ReadFile(file)
	Must(w.T, err)
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(&object.Object); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			w.T.Fatalf("%s: %v", file, err)
		}
		if len(object.Object) == 0 {
			continue
		}
		kind := object.GroupVersionKind()
		var mapping *meta.RESTMapping
		err := w.discover(func() (err error) {
			mapping, err = w.mapper.RESTMapping(kind.GroupKind(), kind.Version)
			return err
		})
		if err != nil {
			w.T.Fatalf("%s: %v", file, err)
		}
		w.Again(file+" "+kind.Kind+" "+object.GetName(), func() error {
			_, err := w.Objects.Resource(mapping.Resource).Namespace(object.GetNamespace()).
				Apply(w.T.Context(), object.GetName(), object, metav1.ApplyOptions{FieldManager: "scenario", Force: true})
			return err
		})
	}
}

// Again repeats a write until it succeeds: a controller may be first, or what the write depends on is still being made.
func (w *World) Again(what string, write func() error) {
	w.T.Helper()
	w.Await(what, 30*time.Second, func(context.Context) (bool, string) {
		err := write()
		return err == nil, fmt.Sprint(err)
	})
}

// Patch sends a JSON merge patch to an object or, with subresources, to a part of it.
func (w *World) Patch(resource, object, patch string, subresources ...string) {
	w.T.Helper()
	client, name := w.On(resource, object)
	w.Again(resource+" "+object+" "+patch, func() error {
		_, err := client.Patch(w.T.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "scenario"}, subresources...)
		return err
	})
}

// Remove deletes an object. The policy is that of its dependents, empty for the default.
func (w *World) Remove(resource, object string, policy metav1.DeletionPropagation) {
	w.T.Helper()
	client, name := w.On(resource, object)
	options := metav1.DeleteOptions{}
	if policy != "" {
		options.PropagationPolicy = &policy
	}
	w.Again("delete "+resource+" "+object, func() error { return client.Delete(w.T.Context(), name, options) })
}

// Gone waits until an object does not exist.
func (w *World) Gone(resource, object string) {
	w.T.Helper()
	client, name := w.On(resource, object)
	w.Await(resource+" "+object+" is gone", Patience, func(ctx context.Context) (bool, string) {
		got, err := client.Get(ctx, name, metav1.GetOptions{})
		return apierrors.IsNotFound(err), describe(got, err)
	})
}

// Until waits until a field of an object has a value: "status.readyReplicas", "status.conditions[Ready].status".
func (w *World) Until(resource, object, path, value string) {
	w.T.Helper()
	client, name := w.On(resource, object)
	w.Await(fmt.Sprintf("%s %s: %s is %q", resource, object, path, value), Patience, func(ctx context.Context) (bool, string) {
		got, err := client.Get(ctx, name, metav1.GetOptions{})
		return err == nil && Dig(got.Object, path) == value, describe(got, err)
	})
}

// Count waits until as many objects with a label exist.
func (w *World) Count(resource, namespace, selector string, n int, is func(o *unstructured.Unstructured) bool) {
	w.T.Helper()
	client, err := w.At(nil, resource, namespace)
	Must(w.T, err)
	w.Await(fmt.Sprintf("%s %s: %d of %s", resource, namespace, n, selector), Patience, func(ctx context.Context) (bool, string) {
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

// parts are the parts of a path.
var parts = regexp.MustCompile(`\[[^\]]*\]|[^.\[\]]+`)

// Dig returns the value at a path as text, empty if there is none: "status.conditions[Ready].status". "[x]" selects an item of a list by its
// type, name or number, or an entry of a map.
func Dig(value any, path string) string {
	for _, part := range parts.FindAllString(path, -1) {
		key := strings.Trim(part, "[]")
		if fields, ok := value.(map[string]any); ok {
			value = fields[key]
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
	defer response.Body.Close() //nolint:errcheck // Only read.
	if response.StatusCode != http.StatusOK {
		return errors.New(response.Status)
	}
	return nil
}
