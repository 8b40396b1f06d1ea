package fakeapi

import (
	"encoding/json"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Mux returns a handler that serves the discovery of some resources, one version of each group, with an empty OpenAPI. It has no
// CustomResourceDefinitions and no APIServices. The test adds further paths.
func Mux(resources ...*metav1.APIResourceList) *http.ServeMux {
	mux := http.NewServeMux()
	core := &metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{}}
	groups := &metav1.APIGroupList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIGroupList"}, Groups: []metav1.APIGroup{}}
	for _, list := range resources {
		list.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"}
		group, version, named := strings.Cut(list.GroupVersion, "/")
		if !named {
			core.Versions = append(core.Versions, list.GroupVersion)
			mux.Handle("GET /api/"+list.GroupVersion, value(list))
			continue
		}
		served := metav1.GroupVersionForDiscovery{GroupVersion: list.GroupVersion, Version: version}
		groups.Groups = append(groups.Groups, metav1.APIGroup{Name: group, Versions: []metav1.GroupVersionForDiscovery{served}, PreferredVersion: served})
		mux.Handle("GET /apis/"+list.GroupVersion, value(list))
	}
	mux.Handle("GET /api", value(core))
	mux.Handle("GET /apis", value(groups))
	mux.Handle("GET /openapi/v3", Text(`{"paths":{}}`))
	mux.Handle("GET /apis/apiextensions.k8s.io/v1/customresourcedefinitions", Empty("apiextensions.k8s.io/v1", "CustomResourceDefinition"))
	mux.Handle("GET /apis/apiregistration.k8s.io/v1/apiservices", Empty("apiregistration.k8s.io/v1", "APIService"))
	return mux
}

// Empty serves lists and watches of a resource without objects. No watch has an event, except for the end of the initial ones.
func Empty(apiVersion, kind string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		metadata := map[string]any{"resourceVersion": "1"}
		if r.URL.Query().Get("watch") == "" {
			JSON(w, http.StatusOK, map[string]any{"apiVersion": apiVersion, "kind": kind + "List", "metadata": metadata, "items": []any{}})
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("sendInitialEvents") != "" {
			metadata["annotations"] = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
			_ = json.NewEncoder(w).Encode(map[string]any{"type": "BOOKMARK", "object": map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": metadata}})
		}
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
}

func value(of any) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { JSON(w, http.StatusOK, of) }
}
