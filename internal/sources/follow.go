package sources

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
)

// firstList is how long List waits for the first list of a kind. All other changes wait for it too.
const firstList = 2 * time.Second

// Objects follows the PermissionSchemas and UncoveredPermissionSets of an API server. An API server that never served a kind has no
// objects of it and is not asked for them. Objects follows a kind from the time when its CustomResourceDefinition has accepted
// names, until the definition is deleted or no longer serves the version. Users may write the status of a definition, so no change
// of the status ends this. While the API server fails to list a kind, its known objects stay.
type Objects struct {
	client      dynamic.Interface
	definitions func() ([]*Definition, error)
	changed     func()
	kinds       map[string]string
	running     sync.WaitGroup

	mu       sync.Mutex
	followed map[string]*followed
}

// followed is the informer of one kind.
type followed struct {
	informer cache.SharedIndexInformer
	context  context.Context
	stop     context.CancelFunc
	failure  atomic.Pointer[error]
}

// NewObjects returns an Objects for fieldperm's kinds, by resource, that follows nothing yet. definitions returns the CustomResourceDefinitions from an informer.
// changed is called when the specification of an object changes, and must not block.
func NewObjects(client dynamic.Interface, definitions func() ([]*Definition, error), kinds map[string]string, changed func()) *Objects {
	return &Objects{client: client, definitions: definitions, kinds: kinds, changed: changed, followed: map[string]*followed{}}
}

// List returns the objects of every kind that the API server serves. It starts to follow a kind when it finds it served, until the
// context ends or the definition is deleted. It returns an error if a served kind could not be listed.
func (o *Objects) List(ctx context.Context) ([]*unstructured.Unstructured, error) {
	definitions, err := o.definitions()
	if err != nil {
		return nil, fmt.Errorf("custom resource definitions: %w", err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	var fresh []cache.InformerSynced
	for resource, kind := range o.kinds {
		is, at := o.followed[resource], slices.IndexFunc(definitions, func(d *Definition) bool { return definesOwn(d, resource) })
		if is != nil && (at < 0 || is.context.Err() != nil) {
			is.stop()
			delete(o.followed, resource)
			is = nil
		}
		if is != nil || at < 0 || !isNamed(definitions[at]) {
			continue
		}
		begun, err := o.follow(ctx, resource, kind)
		if err != nil {
			return nil, err
		}
		fresh = append(fresh, begun.informer.HasSynced)
	}
	if len(fresh) > 0 {
		wait, cancel := context.WithTimeout(ctx, firstList)
		defer cancel()
		cache.WaitForCacheSync(wait.Done(), fresh...)
	}
	var errs []error
	for resource, is := range o.followed {
		if !is.informer.HasSynced() {
			errs = append(errs, is.unlisted(resource))
		}
	}
	return o.known(), errors.Join(errs...)
}

// Known returns the known objects without a request.
func (o *Objects) Known() []*unstructured.Unstructured {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.known()
}

// Wait waits until all informers have ended, after the context of List has ended.
func (o *Objects) Wait() { o.running.Wait() }

func (o *Objects) known() []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, is := range o.followed {
		for _, object := range is.informer.GetStore().List() {
			if u, ok := object.(*unstructured.Unstructured); ok {
				out = append(out, u)
			}
		}
	}
	return out
}

// Documents returns the kinds of objects with permission schemas, by resource.
func Documents() map[string]string {
	return map[string]string{
		v1alpha1.PermissionSchemaResource:       v1alpha1.PermissionSchemaKind,
		v1alpha1.UncoveredPermissionSetResource: v1alpha1.UncoveredPermissionSetKind,
	}
}

// definesOwn reports whether the definition is the one of the resource and its specification serves the version.
func definesOwn(definition *Definition, resource string) bool {
	own := v1alpha1.GroupVersion
	if definition.GetName() != resource+"."+own.Group {
		return false
	}
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	return slices.ContainsFunc(versions, func(item any) bool {
		version, ok := item.(map[string]any)
		return ok && version["name"] == own.Version && version["served"] == true
	})
}

// isNamed reports whether the API server has accepted a kind for the definition, which it does before it first serves it. From then
// on objects may exist, whatever the conditions say.
func isNamed(definition *Definition) bool {
	kind, _, _ := unstructured.NestedString(definition.Object, "status", "acceptedNames", "kind")
	return kind != ""
}

func (o *Objects) follow(ctx context.Context, resource, kind string) (*followed, error) {
	is := &followed{informer: dynamicinformer.NewFilteredDynamicInformer(o.client, v1alpha1.GroupVersion.WithResource(resource), metav1.NamespaceAll, 0, cache.Indexers{}, nil).Informer()}
	_, err := is.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { o.changed() },
		DeleteFunc: func(any) { o.changed() },
		UpdateFunc: func(before, after any) {
			if !sameSpecification(before, after) {
				o.changed()
			}
		},
	})
	if err != nil {
		return nil, fmt.Errorf("informer: %w", err)
	}
	err = is.informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) {
		is.failure.Store(&err)
		cache.DefaultWatchErrorHandler(ctx, r, err)
	})
	if err != nil {
		return nil, fmt.Errorf("informer: %w", err)
	}
	if err := is.informer.SetTransform(asKind(kind)); err != nil {
		return nil, fmt.Errorf("informer: %w", err)
	}
	is.context, is.stop = context.WithCancel(ctx)
	o.followed[resource] = is
	o.running.Go(func() { is.informer.RunWithContext(is.context) })
	return is, nil
}

// unlisted returns why a kind has not been listed.
func (f *followed) unlisted(resource string) error {
	name := resource + "." + v1alpha1.GroupVersion.Group
	failure := f.failure.Load()
	switch {
	case failure != nil && apierrors.IsNotFound(*failure):
		return fmt.Errorf("%s: cannot be listed: %w: see the conditions of this CustomResourceDefinition", name, *failure)
	case failure != nil:
		return fmt.Errorf("%s: cannot be listed: %w: grant fieldperm list and watch on them (rbac.yaml of fieldperm-gen manifests does)", name, *failure)
	}
	return fmt.Errorf("%s: are not listed yet: see that the API server answers", name)
}

// sameSpecification ignores changes of status, especially fieldperm's own.
func sameSpecification(before, after any) bool {
	old, ok := before.(*unstructured.Unstructured)
	if !ok {
		return false
	}
	now, ok := after.(*unstructured.Unstructured)
	// After a restore of etcd, a generation may occur a second time with another content.
	return ok && old.GetUID() == now.GetUID() && old.GetGeneration() == now.GetGeneration() && reflect.DeepEqual(old.Object["spec"], now.Object["spec"])
}

// asKind removes the managed fields of an object and sets the kind of its resource. The kind in the API server's response depends
// on the status of the definition, which users may write.
func asKind(kind string) cache.TransformFunc {
	return func(object any) (any, error) {
		if u, ok := object.(*unstructured.Unstructured); ok {
			u.SetManagedFields(nil)
			u.SetKind(kind)
		}
		return object, nil
	}
}
