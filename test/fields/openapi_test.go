//go:build integration

package fields

import (
	"context"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fieldperm/fieldperm/test/openapi"
)

// types are the types of a server's kinds, by group and version.
type types map[runtimeschema.GroupVersion]openapi.Document

func serverTypes(ctx context.Context, s *server, lists []*metav1.APIResourceList) (types, error) {
	out := types{}
	for _, list := range lists {
		gv, err := runtimeschema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		raw, err := s.raw(ctx, openapi.Path(gv))
		if err != nil {
			return nil, err
		}
		if out[gv], err = openapi.Parse(raw); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// kind returns the schema of a kind, nil if the server has none.
func (ts types) kind(gvk runtimeschema.GroupVersionKind) *schemas {
	document := ts[gvk.GroupVersion()]
	if gvk.Kind == "Scale" {
		// Scale has no resource of its own, and is in the documents of its parents.
		document = ts[runtimeschema.GroupVersion{Group: "apps", Version: "v1"}]
	}
	if root := document.Kind(gvk); root != nil {
		return &schemas{Document: document, root: root}
	}
	return nil
}

// schemas are the types of one document, with the root of one kind.
type schemas struct {
	openapi.Document
	root *openapi.Type
}

// step is a step of a path: a field, or any item of a list or key of a map.
type step struct {
	field string
	any   bool
}

type path []step

func (p path) String() string {
	var b strings.Builder
	for _, s := range p {
		if s.any {
			b.WriteString("[*]")
		} else {
			b.WriteString("." + s.field)
		}
	}
	return b.String()
}

func (p path) then(s step) path { return append(p[:len(p):len(p)], s) }

// name is the name of the last field.
func (p path) name() string {
	for i := len(p) - 1; i >= 0; i-- {
		if !p[i].any {
			return p[i].field
		}
	}
	return ""
}

// walk visits every field below m, parents first. It does not enter a component again within itself.
func (s *schemas) walk(at path, m *openapi.Type, within []string, visit func(path, *openapi.Type) bool) {
	m = s.Resolve(m)
	if m.Name != "" {
		if slices.Contains(within, m.Name) {
			return
		}
		within = append(within[:len(within):len(within)], m.Name)
	}
	enter := func(p path, child *openapi.Type) {
		if visit(p, s.Resolve(child)) {
			s.walk(p, child, within, visit)
		}
	}
	for _, name := range sorted(m.Properties) {
		enter(at.then(step{field: name}), m.Properties[name])
	}
	if m.Items != nil {
		enter(at.then(step{any: true}), m.Items)
	}
	if m.Values != nil {
		enter(at.then(step{any: true}), m.Values)
	}
}
