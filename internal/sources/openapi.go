package sources

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/openapi"
	"k8s.io/klog/v2"

	"github.com/fieldperm/fieldperm/internal/discovery"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/load"
)

// published is the OpenAPI v3 of an API server, one topology for each group and version.
type published struct {
	client openapi.ClientWithContext
	known  map[string]groupVersion
}

type groupVersion struct {
	// url has the document's hash in it.
	url      string
	topology schema.Topology
	// foreign is that another server serves it.
	foreign bool
}

// read brings the topologies up to date with an index of documents and reports whether any changed. A document that cannot be
// read stays as it was.
//
// Custom resources are left to their definitions: a document that is published before the definition
// is known would have their types without their barriers.
func (p *published) read(ctx context.Context, paths map[string]openapi.GroupVersionWithContext, services *discovery.Services) bool {
	changed := false
	for path := range p.known {
		if _, served := paths[path]; !served || !speaks(path, services) {
			delete(p.known, path)
			changed = true
		}
	}
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		if !speaks(path, services) {
			continue
		}
		gv, _ := groupVersionOf(path)
		foreign := slices.Contains(services.Aggregated, gv)
		url := paths[path].ServerRelativeURL()
		if known, ok := p.known[path]; ok && known.url == url && known.foreign == foreign {
			continue
		}
		topology, err := fetch(ctx, path, paths[path])
		if err != nil {
			klog.FromContext(ctx).Error(err, "The types of a group stay as they were", "path", path)
			continue
		}
		if foreign {
			maps.DeleteFunc(topology.Kinds, func(gvk runtimeschema.GroupVersionKind, _ string) bool { return gvk.GroupVersion() != gv })
		}
		p.known[path] = groupVersion{url: url, topology: topology, foreign: foreign}
		changed = true
	}
	return changed
}

// speaks reports whether a document is about a group version that is built in or another server's.
func speaks(path string, services *discovery.Services) bool {
	gv, ok := groupVersionOf(path)
	return ok && (slices.Contains(services.Aggregated, gv) || isBuiltIn(gv) && !slices.Contains(services.Defined, gv))
}

// topologies returns what is published, without what other servers say of the kinds of this one: a version of theirs is an
// object of theirs, and loses or hides nothing of what is stored here.
func (p *published) topologies(own map[runtimeschema.GroupKind]bool) []schema.Topology {
	var out []schema.Topology
	for _, path := range slices.Sorted(maps.Keys(p.known)) {
		one := p.known[path]
		if one.foreign {
			out = append(out, without([]schema.Topology{one.topology}, own)...)
		} else {
			out = append(out, one.topology)
		}
	}
	return out
}

func fetch(ctx context.Context, path string, document openapi.GroupVersionWithContext) (schema.Topology, error) {
	raw, err := document.SchemaWithContext(ctx, "application/json")
	if err != nil {
		return schema.Topology{}, fmt.Errorf("OpenAPI v3 of %s: %w", path, err)
	}
	return load.OpenAPIV3("openapi/v3/"+path, raw)
}

// groupVersionOf reads api/v1 and apis/GROUP/VERSION.
func groupVersionOf(path string) (runtimeschema.GroupVersion, bool) {
	switch parts := strings.Split(path, "/"); {
	case len(parts) == 2 && parts[0] == "api":
		return runtimeschema.GroupVersion{Version: parts[1]}, true
	case len(parts) == 3 && parts[0] == "apis":
		return runtimeschema.GroupVersion{Group: parts[1], Version: parts[2]}, true
	}
	return runtimeschema.GroupVersion{}, false
}

// isBuiltIn reports whether a kube-apiserver serves the group by itself, so that no custom resource
// can be in it.
func isBuiltIn(gv runtimeschema.GroupVersion) bool {
	return scheme.Scheme.IsVersionRegistered(gv) || gv.Group == "apiextensions.k8s.io" || gv.Group == "apiregistration.k8s.io"
}
