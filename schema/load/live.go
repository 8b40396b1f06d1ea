package load

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/openapi"
	"k8s.io/client-go/rest"

	"github.com/fieldperm/fieldperm/schema"
)

const (
	// documentTimeout is what one API may take for its document, so that a broken one costs no more.
	documentTimeout = 10 * time.Second
	// documentsAtOnce bounds the documents in memory.
	documentsAtOnce = 4
	pageSize        = "250"
	anyVersion      = "*"
)

// Live reads what a running server serves: the documents of /openapi/v3, and CustomResourceDefinitions
// that it has accepted. Custom resources come from their definitions, because a server publishes no
// permissions of theirs; the rest from OpenAPI, and from the built-in kinds what is not published. The
// catalogue is among the documents; files and objects of fieldperm.dev are for the caller to append.
//
// An API whose document is broken is an error beside the other documents; its kinds are not known
// then, unless they are built in. Without the server's index, its definitions or its APIServices
// there are no documents at all.
//
// It needs get on the path /openapi/v3 and below, and list on customresourcedefinitions and
// apiservices. client-go's default of 5 requests a second is raised unless the config sets its own.
func Live(ctx context.Context, config *rest.Config) (schema.Documents, []error) {
	docs, errs := builtInDocuments()
	if len(errs) > 0 {
		return schema.Documents{}, errs
	}
	config = rest.CopyConfig(config)
	if config.QPS == 0 {
		config.QPS, config.Burst = 100, 200
	}
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return schema.Documents{}, []error{fmt.Errorf("server %q: %w", config.Host, err)}
	}
	s := &server{client: client.RESTClient()}
	index, err := openapi.NewClientWithContext(s.client).PathsWithContext(ctx)
	if err != nil {
		return schema.Documents{}, []error{fault("/openapi/v3", "", "cannot be read: %v: allow get on it", err)}
	}
	owned, err := s.owned(ctx)
	if err != nil {
		return schema.Documents{}, []error{err}
	}
	custom, defined, errs, err := s.customResources(ctx, owned)
	if err != nil {
		return schema.Documents{}, []error{err}
	}
	published, faults := fetch(ctx, index, func(gv runtimeschema.GroupVersion) bool {
		return owned[gv] || !defined[gv]
	})
	errs = append(errs, faults...)
	docs.Topologies = append(docs.Topologies, published...)
	return docs.Append(without(custom, owned)), errs
}

type server struct {
	client rest.Interface
}

// owned returns the group versions in which no CustomResourceDefinition is served: the server's own, and
// those that an APIService gives to another server. A group that is compiled into the server is there with anyVersion as well: no
// definition is served in it.
func (s *server) owned(ctx context.Context) (map[runtimeschema.GroupVersion]bool, error) {
	out := map[runtimeschema.GroupVersion]bool{}
	err := s.list(ctx, "/apis/apiregistration.k8s.io/v1/apiservices", func(raw json.RawMessage) error {
		var item struct {
			metav1.ObjectMeta `json:"metadata"`
			Spec              struct {
				Group   string          `json:"group"`
				Version string          `json:"version"`
				Service json.RawMessage `json:"service"`
			} `json:"spec"`
		}
		if err := json.Unmarshal(raw, &item); err != nil {
			return err
		}
		remote := len(item.Spec.Service) > 0 && string(item.Spec.Service) != "null"
		if remote || item.Labels["kube-aggregator.kubernetes.io/automanaged"] == "onstart" {
			out[runtimeschema.GroupVersion{Group: item.Spec.Group, Version: item.Spec.Version}] = true
		}
		if !remote && item.Labels["kube-aggregator.kubernetes.io/automanaged"] == "onstart" {
			out[runtimeschema.GroupVersion{Group: item.Spec.Group, Version: anyVersion}] = true
		}
		return nil
	})
	return out, err
}

// customResources decodes the definitions that are served under the kind that they name. A faulty one
// is among the faults, and still among the defined group versions: OpenAPI must not stand in for it,
// because its barriers are unknown. The error is that there is no list.
func (s *server) customResources(ctx context.Context, owned map[runtimeschema.GroupVersion]bool) (docs schema.Documents, defined map[runtimeschema.GroupVersion]bool, faults []error, err error) {
	defined = map[runtimeschema.GroupVersion]bool{}
	var all []schema.Documents
	err = s.list(ctx, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", func(raw json.RawMessage) error {
		var crd apiextensionsv1.CustomResourceDefinition
		if err := json.Unmarshal(raw, &crd); err != nil {
			return err
		}
		for _, v := range crd.Spec.Versions {
			defined[runtimeschema.GroupVersion{Group: crd.Spec.Group, Version: v.Name}] = true
		}
		if !Serves(&crd) || owned[runtimeschema.GroupVersion{Group: crd.Spec.Group, Version: anyVersion}] {
			return nil
		}
		more, errs := CRD("CustomResourceDefinition "+crd.Name, raw)
		all, faults = append(all, more), append(faults, errs...)
		return nil
	})
	return docs.Append(all...), defined, faults, err
}

// Serves reports whether an API server serves the definition under the kind that it names: for that
// (apiextensions-apiserver, pkg/apiserver/customresource_handler.go) either condition is enough. One that contends for a kind which
// another has is not served, and must not bear on the other's.
func Serves(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return crd.Status.AcceptedNames.Kind == crd.Spec.Names.Kind &&
		(apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.NamesAccepted) || apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.Established))
}

func (s *server) list(ctx context.Context, path string, visit func(json.RawMessage) error) error {
	next := ""
	for {
		request := s.client.Get().AbsPath(path).SetHeader("Accept", "application/json").Param("limit", pageSize)
		if next != "" {
			request = request.Param("continue", next)
		}
		raw, err := request.Do(ctx).Raw()
		if err != nil {
			return fault(path, "", "cannot be listed: %v: allow list on it", err)
		}
		var page struct {
			metav1.ListMeta `json:"metadata"`
			Items           []json.RawMessage `json:"items"`
		}
		if err := json.Unmarshal(raw, &page); err != nil {
			return fault(path, "", "is no list: %v: check the server's address", err)
		}
		for i, item := range page.Items {
			if err := visit(item); err != nil {
				return fault(path, fmt.Sprintf("/items/%d", i), "cannot be decoded: %v: check the server's version", err)
			}
		}
		if next = page.Continue; next == "" {
			return nil
		}
	}
}

// fetch reads the wanted documents of the index, in the order of their paths. A document speaks for
// its own group version only: no server may say what another's kinds are.
func fetch(ctx context.Context, index map[string]openapi.GroupVersionWithContext, wanted func(runtimeschema.GroupVersion) bool) ([]schema.Topology, []error) {
	paths := slices.Sorted(maps.Keys(index))
	topologies := make([]schema.Topology, len(paths))
	faults := make([][]error, len(paths))
	var group errgroup.Group
	group.SetLimit(documentsAtOnce)
	for i, path := range paths {
		gv, ok := groupVersion(path)
		if !ok || !wanted(gv) {
			continue
		}
		group.Go(func() error {
			source := "/openapi/v3/" + path
			ctx, cancel := context.WithTimeout(ctx, documentTimeout)
			defer cancel()
			raw, err := index[path].SchemaWithContext(ctx, "application/json")
			if err != nil {
				faults[i] = []error{fault(source, "", "cannot be read: %v: repair the API, or remove its APIService", err)}
				return nil
			}
			topologies[i], err = OpenAPIV3(source, raw)
			faults[i] = separate(err)
			maps.DeleteFunc(topologies[i].Kinds, func(gvk runtimeschema.GroupVersionKind, _ string) bool {
				return gvk.GroupVersion() != gv
			})
			return nil
		})
	}
	// The functions return no error: one broken document must not cancel the others.
	_ = group.Wait()
	topologies = slices.DeleteFunc(topologies, func(t schema.Topology) bool { return len(t.Kinds) == 0 })
	return topologies, slices.Concat(faults...)
}

// groupVersion reads a path of the index, such as apis/apps/v1 or api/v1.
func groupVersion(path string) (runtimeschema.GroupVersion, bool) {
	steps := strings.Split(path, "/")
	switch {
	case len(steps) == 3 && steps[0] == "apis":
		return runtimeschema.GroupVersion{Group: steps[1], Version: steps[2]}, true
	case len(steps) == 2 && steps[0] == "api":
		return runtimeschema.GroupVersion{Version: steps[1]}, true
	}
	return runtimeschema.GroupVersion{}, false
}

// without drops what definitions say of group versions that others own.
func without(docs schema.Documents, owned map[runtimeschema.GroupVersion]bool) schema.Documents {
	for _, t := range docs.Topologies {
		maps.DeleteFunc(t.Kinds, func(gvk runtimeschema.GroupVersionKind, _ string) bool { return owned[gvk.GroupVersion()] })
	}
	docs.Permissions = slices.DeleteFunc(docs.Permissions, func(d schema.PermissionDocument) bool {
		return owned[runtimeschema.GroupVersion{Group: d.Group, Version: d.Versions[0]}]
	})
	return docs
}
