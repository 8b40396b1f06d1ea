//go:build integration

package endpoints

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/yaml"

	"github.com/fieldperm/fieldperm/schema/endpoint"
)

// definition is a custom resource with all properties that affect endpoints: two versions, both subresources, and replicas at another path
// than in built-in kinds.
const definition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.endpoints.fieldperm.dev}
spec:
  group: endpoints.fieldperm.dev
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - &version
    name: v1
    served: true
    storage: true
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size, labelSelectorPath: .status.selector}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties: {size: {type: integer}, text: {type: string}, labels: {type: object, additionalProperties: {type: string}}}
          status:
            type: object
            properties: {size: {type: integer}, text: {type: string}, selector: {type: string}}
          extra:
            type: object
            properties: {text: {type: string}}
  - <<: *version
    name: v1beta1
    storage: false
`

// custom exercises the endpoints of a custom resource, and returns the properties that all custom resources have.
func (r *recorder) custom(client *discovery.DiscoveryClient) ([]endpoint.Endpoint, error) {
	var body map[string]any
	if err := yaml.Unmarshal([]byte(definition), &body); err != nil {
		return nil, err
	}
	made, err := r.send(http.MethodPost, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", body)
	if err != nil || !made.ok() {
		return nil, fmt.Errorf("definition: %s (%w)", made.message(), err)
	}
	const group = "endpoints.fieldperm.dev"
	r.objects[runtimeschema.GroupKind{Group: group, Kind: "Widget"}] = map[string]any{
		"spec": map[string]any{"size": int64(1), "text": "a"}, "status": map[string]any{"size": int64(1)},
	}
	var lists []*metav1.APIResourceList
	for _, version := range []string{"v1", "v1beta1"} {
		gv := runtimeschema.GroupVersion{Group: group, Version: version}
		list, err := r.served(client, gv)
		if err != nil {
			return nil, err
		}
		lists = append(lists, list)
	}
	all, err := places(lists)
	if err != nil {
		return nil, err
	}
	out, err := r.record(all)
	for i := range out {
		e := &out[i]
		if e.Storage != group+"/widgets" || strings.Join(e.Versions, " ") != "v1 v1beta1" {
			return nil, fmt.Errorf("custom resource: %+v: is not what every custom resource is thought to be", e)
		}
		e.Group, e.Resource, e.Storage, e.Versions = "*", "*", "*", nil
		if e.Body.Kind == "Widget" {
			e.Body = endpoint.Kind{Group: "*", Kind: "*"}
		}
		for j := range e.Fields {
			if e.Fields[j].To == ".spec.size" {
				e.Fields[j].To = endpoint.SpecReplicas
			}
		}
	}
	return out, err
}

// served waits until discovery has the group and its types are published.
func (r *recorder) served(client *discovery.DiscoveryClient, gv runtimeschema.GroupVersion) (*metav1.APIResourceList, error) {
	for range 300 {
		list, err := client.ServerResourcesForGroupVersion(gv.String())
		if err == nil && len(list.APIResources) == 3 {
			if types, err := r.types(gv); err == nil && types.Kind(gv.WithKind("Widget")) != nil {
				return list, nil
			}
			delete(r.documents, gv)
		}
		time.Sleep(50 * time.Millisecond)
	}
	return nil, fmt.Errorf("%s: is not served", gv)
}
