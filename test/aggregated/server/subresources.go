package server

import (
	"context"
	"errors"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/fieldperm/fieldperm/test/aggregated/brewery"
)

// status is the subresource status.
type status struct{ store *genericregistry.Store }

var _ = rest.Patcher(&status{})

func (s *status) New() runtime.Object { return s.store.New() }

// Destroy implements rest.Storage. The resource itself owns the store.
func (s *status) Destroy() {}

func (s *status) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	return s.store.Get(ctx, name, options)
}

func (s *status) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, create rest.ValidateObjectFunc, update rest.ValidateObjectUpdateFunc, _ bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	return s.store.Update(ctx, name, info, create, update, false, options)
}

// GetResetFields implements rest.ResetFieldsStrategy.
func (s *status) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return s.store.GetResetFields()
}

// scale is the subresource scale: its replicas are the taps of a Keg. Validating admission sees the two Scales, as in kube-apiserver.
type scale struct{ kegs *genericregistry.Store }

var (
	_ = rest.Patcher(&scale{})
	_ = rest.GroupVersionKindProvider(&scale{})
)

func (s *scale) New() runtime.Object { return &autoscalingv1.Scale{} }

// Destroy implements rest.Storage. The resource itself owns the store.
func (s *scale) Destroy() {}

// GroupVersionKind implements rest.GroupVersionKindProvider.
func (s *scale) GroupVersionKind(runtimeschema.GroupVersion) runtimeschema.GroupVersionKind {
	return autoscalingv1.SchemeGroupVersion.WithKind("Scale")
}

func (s *scale) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	object, err := s.kegs.Get(ctx, name, options)
	if err != nil {
		return nil, err
	}
	return scaleOf(object)
}

func scaleOf(object runtime.Object) (*autoscalingv1.Scale, error) {
	keg, ok := object.(*brewery.Keg)
	if !ok {
		return nil, errors.New("is no Keg")
	}
	return &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{
			Name: keg.Name, Namespace: keg.Namespace, UID: keg.UID, ResourceVersion: keg.ResourceVersion, CreationTimestamp: keg.CreationTimestamp,
		},
		// A status that follows the specification at once would be a change of the status too.
		Spec: autoscalingv1.ScaleSpec{Replicas: keg.Spec.Taps},
	}, nil
}

func (s *scale) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, _ rest.ValidateObjectFunc, update rest.ValidateObjectUpdateFunc, _ bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	through := &scaled{info: info}
	object, _, err := s.kegs.Update(ctx, name, through, nil, func(ctx context.Context, object, old runtime.Object) error {
		after, err := scaleOf(object)
		if err != nil {
			return err
		}
		before, err := scaleOf(old)
		if err != nil {
			return err
		}
		return update(ctx, after, before)
	}, false, options)
	if err != nil {
		return nil, false, err
	}
	out, err := scaleOf(object)
	return out, false, err
}

// scaled turns a changed Scale into a changed Keg.
type scaled struct{ info rest.UpdatedObjectInfo }

func (s *scaled) Preconditions() *metav1.Preconditions { return s.info.Preconditions() }

func (s *scaled) UpdatedObject(ctx context.Context, old runtime.Object) (runtime.Object, error) {
	before, err := scaleOf(old)
	if err != nil {
		return nil, err
	}
	object, err := s.info.UpdatedObject(ctx, before)
	if err != nil {
		return nil, err
	}
	after, ok := object.(*autoscalingv1.Scale)
	keg, isKeg := old.DeepCopyObject().(*brewery.Keg)
	if !ok || !isKeg {
		return nil, errors.New("is no Scale of a Keg")
	}
	keg.Spec.Taps, keg.ResourceVersion = after.Spec.Replicas, after.ResourceVersion
	return keg, nil
}

// forgetful returns the storage, without validating admission if the configuration says so.
func (c *Config) forgetful(store *genericregistry.Store) rest.Storage {
	if !c.WithoutValidation {
		return store
	}
	return &unvalidated{store}
}

// unvalidated is a storage whose author forgot the validation functions.
type unvalidated struct{ *genericregistry.Store }

func (u *unvalidated) Create(ctx context.Context, object runtime.Object, _ rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	return u.Store.Create(ctx, object, rest.ValidateAllObjectFunc, options)
}

func (u *unvalidated) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, _ rest.ValidateObjectFunc, _ rest.ValidateObjectUpdateFunc, force bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	return u.Store.Update(ctx, name, info, rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, force, options)
}
