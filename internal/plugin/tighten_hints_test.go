package plugin

import (
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/fieldperm/fieldperm/internal/tighten"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/test/fakeapi"
	"github.com/fieldperm/fieldperm/test/schematest"
)

// TestTighten_ReadsManagedFieldsInConstantMemory lists objects in pages. The heap does not grow with their number.
func TestTighten_ReadsManagedFieldsInConstantMemory(t *testing.T) {
	compiled := schematest.Schema(t)
	heap := map[int]uint64{}
	for _, total := range []int{5000, 20_000} {
		var at []uint64
		server := fakeapi.Plain(t, metadataPages(total, func() {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			at = append(at, m.HeapAlloc)
		}))
		client, err := metadata.NewForConfig(&rest.Config{Host: server.URL, QPS: -1})
		if err != nil {
			t.Fatal(err)
		}
		h := &tighten.Hints{Managers: []string{"operator"}, Kind: func(apiVersion, kind string) (*schema.Kind, error) {
			return compiled.Kind(runtimeschema.FromAPIVersionAndKind(apiVersion, kind))
		}}
		resource := tighten.Resource{Group: "apps", Name: "deployments"}
		if err := readHints(t.Context(), h, "Deployment", resource, metadataIn(client, runtimeschema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, "")); err != nil {
			t.Fatal(err)
		}
		server.Close()
		// What else the process does adds to a reading. What is kept of the objects is in all readings of the second half.
		heap[total] = slices.Min(at[len(at)/2:])
		found := h.Found.Resources[resource].Verbs["granular:scale"]
		if h.Objects != int64(total) || h.Faults > 0 || found == nil || found.Count != int64(total) {
			t.Errorf("%d objects, %d faults, %+v", h.Objects, h.Faults, found)
		}
	}
	t.Logf("heap in bytes by the number of objects: %v", heap)
	if heap[20_000] > heap[5000]+4<<20 {
		t.Errorf("the heap grows with the objects: %v", heap)
	}
}

// metadataPages serves Deployments in pages, as kube-apiserver does.
func metadataPages(total int, each func()) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		each()
		begin, _ := strconv.Atoi(r.URL.Query().Get("continue"))
		limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
		end := total
		if limit > 0 {
			end = min(begin+limit, total)
		}
		list := metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"}, ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
		if end < total {
			list.Continue = strconv.Itoa(end)
		}
		for i := begin; i < end; i++ {
			list.Items = append(list.Items, metav1.PartialObjectMetadata{
				TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"},
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("web-%d", i), ManagedFields: []metav1.ManagedFieldsEntry{{
					Manager: "operator", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "apps/v1", FieldsType: "FieldsV1",
					FieldsV1: metav1.NewFieldsV1(fmt.Sprintf(`{"f:metadata":{"f:labels":{"f:example.com/l%d":{}}},"f:spec":{"f:replicas":{}}}`, i%1000)),
				}}},
			})
		}
		fakeapi.JSON(w, http.StatusOK, &list)
	})
}
