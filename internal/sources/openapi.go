package sources

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/openapi"
	"k8s.io/klog/v2"

	"github.com/fieldperm/fieldperm/internal/allowlist"
	"github.com/fieldperm/fieldperm/schema/compile"
	"github.com/fieldperm/fieldperm/schema/load"
)

const (
	// documentTimeout bounds the time to read the document of one API. It limits the cost of an aggregated API that hangs.
	documentTimeout = 10 * time.Second
	// documentsAtOnce bounds the documents that are fetched at the same time.
	documentsAtOnce = 4
)

// published is the OpenAPI v3 of an API server, one topology for each group and version.
type published struct {
	client openapi.ClientWithContext
	known  map[string]groupVersion
	// unread are the documents that could not be read the last time, by path.
	unread map[string]unread
}

type groupVersion struct {
	// url contains the hash of the document.
	url      string
	topology compile.Topology
	// foreign means that another server serves the group version.
	foreign bool
	// unregistered means that client-go does not know the group version: only the API server says that it has it built in.
	unregistered bool
}

// unread is a document that could not be read.
type unread struct {
	groupVersion runtimeschema.GroupVersion
	// foreign means that another server serves it.
	foreign bool
	why     error
}

// read updates the topologies from an index of documents and reports whether any changed. If a document cannot be read, its
// topology does not change.
//
// It skips custom resources, because their definitions are a separate source: a document may be published before the definition is
// known, and would have the types without their barriers.
func (p *published) read(ctx context.Context, paths map[string]openapi.GroupVersionWithContext, services *allowlist.Services) bool {
	changed := false
	for path := range p.known {
		if _, served := paths[path]; !served || !speaks(path, services) {
			delete(p.known, path)
			changed = true
		}
	}
	stale := map[string]groupVersion{}
	for path, document := range paths {
		if !speaks(path, services) {
			continue
		}
		gv, _ := groupVersionOf(path)
		next := groupVersion{url: document.ServerRelativeURL(), foreign: slices.Contains(services.Aggregated, gv), unregistered: !isRegistered(gv)}
		if known, ok := p.known[path]; !ok || known.url != next.url || known.foreign != next.foreign {
			stale[path] = next
		}
	}
	return p.fetch(ctx, paths, stale) || changed
}

// fetch reads documents and reports whether any could be read.
func (p *published) fetch(ctx context.Context, paths map[string]openapi.GroupVersionWithContext, stale map[string]groupVersion) bool {
	p.unread = map[string]unread{}
	changed := false
	// mu guards the results. It is also held during decoding, so that only one document is decoded at a time: decoding takes many
	// times the document's size.
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(documentsAtOnce)
	for _, path := range slices.Sorted(maps.Keys(stale)) {
		group.Go(func() error {
			next := stale[path]
			raw, err := fetch(ctx, paths[path])
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				next.topology, err = load.OpenAPIV3("openapi/v3/"+path, raw)
			}
			gv, _ := groupVersionOf(path)
			if err != nil {
				klog.FromContext(ctx).Error(err, "The types of a group stay as they were", "path", path)
				p.unread[path] = unread{gv, next.foreign, err}
				return nil
			}
			if next.foreign {
				maps.DeleteFunc(next.topology.Kinds, func(gvk runtimeschema.GroupVersionKind, _ string) bool { return gvk.GroupVersion() != gv })
			}
			p.known[path], changed = next, true
			return nil
		})
	}
	// The functions return no error: one broken document must not cancel the others.
	_ = group.Wait()
	return changed
}

// missing returns the groups with a version that another server serves and whose document is not known.
func (p *published) missing(services *allowlist.Services) map[string]bool {
	out := map[string]bool{}
	for _, gv := range services.Aggregated {
		if _, known := p.known["apis/"+gv.String()]; !known {
			out[gv.Group] = true
		}
	}
	return out
}

// speaks reports whether a document describes a group version that is built in or that another server serves. Servers of other minors have
// versions built in that client-go does not know, such as alpha versions that are gone.
func speaks(path string, services *allowlist.Services) bool {
	gv, ok := groupVersionOf(path)
	if !ok || slices.Contains(services.Aggregated, gv) {
		return ok
	}
	return (isRegistered(gv) || slices.Contains(services.Own, gv.Group)) && !slices.Contains(services.Defined, gv)
}

// topologies returns the published types, without the kinds of this API server in documents of other servers: an object of another
// server in such a version is not stored here, so its version removes or hides no field of the objects that are.
//
// Of versions that client-go does not know, it leaves out the kinds that a definition claims. That such a version is built in is known from a
// label, which users may write, and the document of a definition has none of its barriers.
func (p *published) topologies(own, claimed map[runtimeschema.GroupKind]bool) []compile.Topology {
	var out []compile.Topology
	for _, path := range slices.Sorted(maps.Keys(p.known)) {
		one := p.known[path]
		switch {
		case one.foreign:
			out = append(out, without([]compile.Topology{one.topology}, own)...)
		case one.unregistered:
			out = append(out, without([]compile.Topology{one.topology}, claimed)...)
		default:
			out = append(out, one.topology)
		}
	}
	return out
}

// hiding returns the groups of other servers with a kind that topologies leaves out. A definition that claims the kind of another server may
// have only versions that nothing serves, and then takes no request away from that server.
func (p *published) hiding(own map[runtimeschema.GroupKind]bool) map[string]bool {
	out := map[string]bool{}
	for _, one := range p.known {
		for gvk := range one.topology.Kinds {
			if one.foreign && own[gvk.GroupKind()] {
				out[gvk.Group] = true
			}
		}
	}
	return out
}

func fetch(ctx context.Context, document openapi.GroupVersionWithContext) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, documentTimeout)
	defer cancel()
	return document.SchemaWithContext(ctx, "application/json")
}

// groupVersionOf parses api/v1 and apis/GROUP/VERSION.
func groupVersionOf(path string) (runtimeschema.GroupVersion, bool) {
	switch parts := strings.Split(path, "/"); {
	case len(parts) == 2 && parts[0] == "api":
		return runtimeschema.GroupVersion{Version: parts[1]}, true
	case len(parts) == 3 && parts[0] == "apis":
		return runtimeschema.GroupVersion{Group: parts[1], Version: parts[2]}, true
	}
	return runtimeschema.GroupVersion{}, false
}

// isRegistered reports whether a kube-apiserver of the linked version can have the group version built in, so that no custom resource is in it.
func isRegistered(gv runtimeschema.GroupVersion) bool {
	return scheme.Scheme.IsVersionRegistered(gv) || gv.Group == "apiextensions.k8s.io" || gv.Group == "apiregistration.k8s.io"
}
