package sources

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/openapi"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/pager"
	"k8s.io/klog/v2"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/internal/allowlist"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/compile"
)

// pageSize bounds the objects in one response of the API server.
const pageSize = 250

// Snapshot is the permission schema of an API server at one time. It must not be changed.
type Snapshot struct {
	Schema *schema.Schema
	// Documents are the documents that Schema was compiled from.
	Documents compile.Documents
	// Warnings are about documents of which a part is not in force, and about unknown kinds. Kind returns an error for the kinds
	// whose decisions may depend on them.
	Warnings []error
	// unknown are the kinds with unknown barriers.
	unknown map[runtimeschema.GroupKind]bool
	// unread are the reasons why documents of other servers could not be read, by group.
	unread map[string]error
}

// Once reads an API server like a Live, but only once. It returns the schema that a Live would have in force if it started now. Documents of
// files replace those of the API server with the same kind and name.
//
// It returns an error if it cannot read a source on which every decision may depend. The error names the source and the cure. The
// API of an aggregated server is not such a source: a Live does not know its kinds either, and Kind returns an error for all kinds
// of its group. A faulty UncoveredPermissionSet is an error: a Live that has run for longer may have an earlier generation of it in
// force.
//
// Once needs get on the paths /openapi/v3 and /openapi/v3/*, and list on apiservices, customresourcedefinitions, and, if they are
// installed, permissionschemas and uncoveredpermissionsets.
func Once(ctx context.Context, config *rest.Config, files []string) (*Snapshot, error) {
	server, _, err := readerOf(ctx, config)
	if err != nil {
		return nil, err
	}
	server.Files = files
	return once(ctx, server)
}

// readerOf returns a Config that reads an API server once, with the client that it reads objects with.
func readerOf(ctx context.Context, config *rest.Config) (Config, dynamic.Interface, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return Config{}, nil, fmt.Errorf("client of the API server: %w", err)
	}
	disco, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return Config{}, nil, fmt.Errorf("client of the API server: %w", err)
	}
	definitions := sync.OnceValues(func() ([]*Definition, error) {
		out, err := list(ctx, client.Resource(CustomResourceDefinitions()))
		if err != nil {
			return nil, unreadable(err, "list on "+CustomResourceDefinitions().GroupResource().String())
		}
		return NewDefinitions(out)
	})
	return Config{
		OpenAPI: index{openapi.NewClientWithContext(disco.RESTClient())},
		Services: func(ctx context.Context) (allowlist.Services, error) {
			out, err := allowlist.ListServices(ctx, client)
			if err != nil {
				return out, fmt.Errorf("API services: %w", unreadable(err, "list on "+allowlist.APIServices().GroupResource().String()))
			}
			return out, nil
		},
		Definitions: definitions,
		Objects: func(ctx context.Context) ([]*unstructured.Unstructured, error) {
			defined, err := definitions()
			if err != nil {
				return nil, nil // the reader of definitions reports the error
			}
			return listOwn(ctx, client, defined)
		},
	}, client, nil
}

// once is Once for a Config. The files in config.Files replace documents that the other fields return.
func once(ctx context.Context, config Config) (*Snapshot, error) {
	out, missing, err := read(ctx, config)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, m := range missing {
		errs = append(errs, m.Err)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return out, nil
}

// read makes a snapshot, and returns what a Live might have in force otherwise. The error is about sources that were not read.
func read(ctx context.Context, config Config) (*Snapshot, []Missing, error) {
	// The snapshot or the error contains everything that would be logged.
	ctx = klog.NewContext(ctx, klog.Logger{})
	proposed, err := propose(config.Files)
	if err != nil {
		return nil, nil, err
	}
	base, err := builtIn()
	if err != nil {
		return nil, nil, err
	}
	definitions, objects := config.Definitions, config.Objects
	config.Definitions = func() ([]*Definition, error) { return beside(proposed, definitions) }
	if objects != nil {
		config.Objects = func(ctx context.Context) ([]*unstructured.Unstructured, error) {
			return beside(proposed, func() ([]*unstructured.Unstructured, error) { return objects(ctx) })
		}
	}
	l := newLive(config, base)
	l.proposed = proposed
	if err := l.readOnce(ctx); err != nil {
		return nil, nil, err
	}
	out := &Snapshot{Schema: l.Schema(), Documents: *l.Documents(), unknown: l.Unknown(), unread: map[string]error{}}
	missing := out.addUnread(l.published.unread)
	for _, state := range l.Objects() {
		if state.Kind == v1alpha1.UncoveredPermissionSetKind && len(state.Faults) > 0 {
			err := fmt.Errorf("%s %s: is faulty, so that fieldperm may have an earlier generation of it in force: correct it: %w", state.Kind, state.Name, errors.Join(state.Faults...))
			missing = append(missing, Missing{"what an earlier generation of a set makes a barrier", err})
		}
	}
	for _, fault := range l.Faults() {
		if proposed.isOf(fault) {
			missing = append(missing, Missing{"a part of the files", fault})
		} else {
			out.Warnings = append(out.Warnings, fault)
		}
	}
	seen := map[string]bool{} // each trial compile reports the same faults
	for _, fault := range l.current.Load().unmatched {
		// Faults of the API server's own documents about kinds that may be installed later concern its administrator, not the caller.
		if proposed.isOf(fault) && !seen[fault.Error()] {
			out.Warnings = append(out.Warnings, fault)
		}
		seen[fault.Error()] = true
	}
	return out, missing, nil
}

// readOnce reads and compiles. The error is about everything that could not be read.
func (l *Live) readOnce(ctx context.Context) error {
	attempt, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	_, typesErr := l.readTypes(attempt)
	_, customErr := l.definitions.read(&l.services)
	_, objectsErr := l.objects.read(ctx)
	if err := errors.Join(typesErr, customErr, objectsErr); err != nil {
		return err
	}
	l.compile(ctx)
	return nil
}

// addUnread stores the documents of other servers that could not be read. It returns what is not known of the API server's own documents.
func (s *Snapshot) addUnread(documents map[string]unread) []Missing {
	var own []string
	for _, path := range slices.Sorted(maps.Keys(documents)) {
		one := documents[path]
		if !one.foreign {
			own = append(own, path)
			continue
		}
		err := fmt.Errorf("OpenAPI v3 of %s: %w", path, unreadable(one.why, "get on the path /openapi/v3/"+path))
		s.unread[one.groupVersion.Group] = err
		s.Warnings = append(s.Warnings, err)
	}
	if len(own) == 0 {
		return nil
	}
	// There are many documents, and the cause that prevents reading one usually prevents reading all. So one is reported.
	which := own[0]
	if len(own) > 1 {
		which = fmt.Sprintf("%s and %d more", which, len(own)-1)
	}
	return []Missing{{ownFields, fmt.Errorf("OpenAPI v3 of %s: %w", which, unreadable(documents[own[0]].why, "get on the path /openapi/v3/*"))}}
}

// Kind returns why writes of the kind cannot be decided, nil if they can. The error is an ErrUnknownKind if nothing is known of the
// kind.
func (s *Snapshot) Kind(gvk runtimeschema.GroupVersionKind) error {
	if err := s.unread[gvk.Group]; err != nil {
		return err
	}
	_, err := s.Schema.Kind(gvk)
	if errors.Is(err, schema.ErrUnknownKind) && s.unknown[gvk.GroupKind()] {
		return fmt.Errorf("kind %q of group %q: its barriers are not known, because a document about it is faulty: correct that document", gvk.Kind, gvk.Group)
	}
	return err
}

// index adds a cure to the error if the index of documents cannot be read.
type index struct{ openapi.ClientWithContext }

func (i index) PathsWithContext(ctx context.Context) (map[string]openapi.GroupVersionWithContext, error) {
	out, err := i.ClientWithContext.PathsWithContext(ctx)
	return out, unreadable(err, "get on the path /openapi/v3")
}

// unreadable adds a cure to the error for a source that cannot be read. needs is the permission that is needed.
func unreadable(err error, needs string) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsForbidden(err):
		return fmt.Errorf("cannot be read: %w: allow %s", err, needs)
	}
	return fmt.Errorf("cannot be read: %w: see that it is served, and that you may %s", err, needs)
}

// listOwn returns the objects of fieldperm's kinds. It ignores the conditions of a definition: users may write the status, and the
// kind may be served all the same.
func listOwn(ctx context.Context, client dynamic.Interface, definitions []*Definition) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	var errs []error
	kinds := Documents()
	for _, resource := range slices.Sorted(maps.Keys(kinds)) {
		at := slices.IndexFunc(definitions, func(d *Definition) bool { return definesOwn(d, resource) })
		if at < 0 {
			continue
		}
		objects, err := list(ctx, client.Resource(v1alpha1.GroupVersion.WithResource(resource)))
		if apierrors.IsNotFound(err) && !isNamed(definitions[at]) {
			continue
		}
		if err != nil {
			name := resource + "." + v1alpha1.GroupVersion.Group
			errs = append(errs, fmt.Errorf("%s: %w", name, unreadable(err, "list on "+name)))
		}
		as := asKind(kinds[resource])
		for _, object := range objects {
			if _, err := as(object); err != nil {
				errs = append(errs, err)
			}
		}
		out = append(out, objects...)
	}
	return out, errors.Join(errs...)
}

// list returns all objects of a resource, page by page.
func list(ctx context.Context, resource dynamic.ResourceInterface) ([]*unstructured.Unstructured, error) {
	pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return resource.List(ctx, options)
	})
	pages.PageSize = pageSize
	all, _, err := pages.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var out []*unstructured.Unstructured
	err = meta.EachListItem(all, func(object runtime.Object) error {
		u, ok := object.(*unstructured.Unstructured)
		if !ok {
			return fmt.Errorf("the list has a %T: check the address of the API server", object)
		}
		out = append(out, u)
		return nil
	})
	return out, err
}
