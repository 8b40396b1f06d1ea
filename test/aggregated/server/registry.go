package server

import (
	"context"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/storage/names"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/fieldperm/fieldperm/test/aggregated/brewery"
	v1 "github.com/fieldperm/fieldperm/test/aggregated/brewery/v1"
	"github.com/fieldperm/fieldperm/test/aggregated/brewery/v1beta1"
)

// group returns the resources of the group, the same in both versions.
func (c *Config) group(scheme *runtime.Scheme, codecs serializer.CodecFactory, options generic.RESTOptionsGetter) (*genericapiserver.APIGroupInfo, error) {
	kegs, err := c.store(options, "kegs", strategy{ObjectTyper: scheme, namespaced: true}, func() runtime.Object { return &brewery.Keg{} }, func() runtime.Object { return &brewery.KegList{} })
	if err != nil {
		return nil, err
	}
	recipes, err := c.store(options, "recipes", strategy{ObjectTyper: scheme}, func() runtime.Object { return &brewery.Formula{} }, func() runtime.Object { return &brewery.FormulaList{} })
	if err != nil {
		return nil, err
	}
	ofStatus := *kegs
	ofStatus.UpdateStrategy = strategy{ObjectTyper: scheme, namespaced: true, status: true}
	storage := map[string]rest.Storage{
		"kegs": c.forgetful(kegs), "kegs/status": &status{store: &ofStatus}, "kegs/scale": &scale{kegs}, "recipes": c.forgetful(recipes),
	}
	out := genericapiserver.NewDefaultAPIGroupInfo(brewery.Group, scheme, runtime.NewParameterCodec(scheme), codecs)
	out.VersionedResourcesStorageMap = map[string]map[string]rest.Storage{
		v1.GroupVersion.Version: storage, v1beta1.GroupVersion.Version: maps.Clone(storage),
	}
	return &out, nil
}

func (c *Config) store(options generic.RESTOptionsGetter, resource string, s strategy, object, list func() runtime.Object) (*genericregistry.Store, error) {
	of := runtimeschema.GroupResource{Group: brewery.Group, Resource: resource}
	store := &genericregistry.Store{
		NewFunc: object, NewListFunc: list, DefaultQualifiedResource: of, SingularQualifiedResource: of,
		CreateStrategy: s, UpdateStrategy: s, DeleteStrategy: s,
		TableConvertor: rest.NewDefaultTableConvertor(of),
	}
	return store, store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: options})
}

// strategy is the behaviour of a kind: nothing is set, and nothing is validated.
type strategy struct {
	runtime.ObjectTyper
	names.NameGenerator
	namespaced, status bool
}

var (
	_ rest.RESTCreateStrategy   = strategy{}
	_ rest.RESTUpdateStrategy   = strategy{}
	_ rest.ResetFieldsStrategy  = strategy{}
	_ rest.RESTDeleteStrategy   = strategy{}
	_ rest.SingularNameProvider = &genericregistry.Store{}
)

func (s strategy) NamespaceScoped() bool { return s.namespaced }

// GenerateName implements names.NameGenerator.
func (s strategy) GenerateName(base string) string {
	return names.SimpleNameGenerator.GenerateName(base)
}

// PrepareForCreate implements rest.RESTCreateStrategy.
func (s strategy) PrepareForCreate(_ context.Context, object runtime.Object) {
	if keg, ok := object.(*brewery.Keg); ok {
		keg.Status = brewery.KegStatus{}
	}
}

// PrepareForUpdate implements rest.RESTUpdateStrategy.
func (s strategy) PrepareForUpdate(_ context.Context, object, old runtime.Object) {
	keg, ok := object.(*brewery.Keg)
	before, wasOne := old.(*brewery.Keg)
	switch {
	case !ok || !wasOne:
	case s.status:
		keg.Spec = before.Spec
		metav1.ResetObjectMetaForStatus(&keg.ObjectMeta, &before.ObjectMeta)
	default:
		keg.Status = before.Status
	}
}

// GetResetFields implements rest.ResetFieldsStrategy.
func (s strategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	if !s.namespaced {
		return nil
	}
	reset := fieldpath.NewSet(fieldpath.MakePathOrDie("status"))
	if s.status {
		reset = fieldpath.NewSet(fieldpath.MakePathOrDie("spec"))
	}
	return map[fieldpath.APIVersion]*fieldpath.Set{
		fieldpath.APIVersion(v1.GroupVersion.String()): reset, fieldpath.APIVersion(v1beta1.GroupVersion.String()): reset,
	}
}

func (s strategy) Validate(context.Context, runtime.Object) field.ErrorList { return nil }

// ValidateUpdate implements rest.RESTUpdateStrategy.
func (s strategy) ValidateUpdate(context.Context, runtime.Object, runtime.Object) field.ErrorList {
	return nil
}

// WarningsOnCreate implements rest.RESTCreateStrategy.
func (s strategy) WarningsOnCreate(context.Context, runtime.Object) []string { return nil }

// WarningsOnUpdate implements rest.RESTUpdateStrategy.
func (s strategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}

// Canonicalize implements rest.RESTUpdateStrategy.
func (s strategy) Canonicalize(runtime.Object) {}

// AllowCreateOnUpdate implements rest.RESTUpdateStrategy: a PUT creates an object that does not exist.
func (s strategy) AllowCreateOnUpdate(context.Context) bool { return true }

// AllowUnconditionalUpdate implements rest.RESTUpdateStrategy.
func (s strategy) AllowUnconditionalUpdate(context.Context) bool { return true }
