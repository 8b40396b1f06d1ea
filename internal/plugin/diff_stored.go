package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/jonboulle/clockwork"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/openapi3"
	"k8s.io/kubectl/pkg/cmd/apply"
	"k8s.io/kubectl/pkg/util"

	"github.com/fieldperm/fieldperm/internal/applied"
)

// published is what the API server publishes about kinds.
type published struct {
	discovery discovery.CachedDiscoveryInterface
	types     openapi3.Root
	// converters are the types by version, nil for a version without.
	converters map[runtimeschema.GroupVersion]managedfields.TypeConverter
}

func (o *difference) newServer() (*published, error) {
	client, err := o.cluster.ToDiscoveryClient()
	if err != nil {
		return nil, fmt.Errorf("cluster: %w: correct --kubeconfig and --context", err)
	}
	return &published{client, openapi3.NewRoot(client.OpenAPIV3()), map[runtimeschema.GroupVersion]managedfields.TypeConverter{}}, nil
}

// stored returns the object that an apply would store: the result of a dry run. If the API server refuses it, the result is computed here.
func (o *difference) stored(ctx context.Context, a *written, live, wanted *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	result, err := o.dryRun(a, live, wanted.DeepCopy())
	if err == nil || !apierrors.IsForbidden(err) && !(live == nil && apierrors.IsNotFound(err)) {
		return result, withCure(err)
	}
	o.refused(a, err)
	a.computed = true
	merger, err := o.server.merger(a.info.Mapping.GroupVersionKind, a.info.Mapping.Resource)
	if err != nil {
		return nil, err
	}
	computed, err := o.compute(merger, a, live, wanted.DeepCopy())
	if err != nil {
		return nil, withCure(err)
	}
	note := "the API server does not let the dry run in, so that its defaults and mutating webhooks are not in the changes: ask again when the role is in force"
	if a.byFieldperm {
		note = "the API server refuses the dry run: of its defaults and mutating webhooks, the changes have those that fieldperm-webhook names"
	}
	a.notes = append(append(a.notes, note), computed.Notes...)
	return computed.Object, nil
}

// withCure adds the cure of a conflict with other field managers.
func withCure(err error) error {
	if apierrors.IsConflict(err) {
		return fmt.Errorf("%w: take the fields out of the manifest, or give --force-conflicts", err)
	}
	return err
}

// dryRun asks the API server for the result, as kubectl apply does. It sets a.unchanged if kubectl apply sends no request.
func (o *difference) dryRun(a *written, live, wanted *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	info := a.info
	helper := resource.NewHelper(info.Client, info.Mapping).DryRun(true).WithFieldManager(o.manager)
	var out runtime.Object
	var err error
	switch {
	case o.serverSide:
		var data []byte
		if data, err = runtime.Encode(unstructured.UnstructuredJSONScheme, wanted); err == nil {
			out, err = helper.Patch(info.Namespace, info.Name, types.ApplyPatchType, data, &metav1.PatchOptions{Force: &o.forceConflicts})
		}
	case live == nil:
		if err = configured(wanted); err == nil {
			out, err = helper.Create(info.Namespace, true, wanted)
		}
	default:
		var modified, patch []byte
		if modified, err = util.GetModifiedConfiguration(wanted, true, unstructured.UnstructuredJSONScheme); err == nil {
			patch, out, err = o.patcher(info, helper).Patch(live.DeepCopy(), modified, info.Source, info.Namespace, info.Name, o.streams.ErrOut)
			a.unchanged = err == nil && string(patch) == "{}"
		}
	}
	if err != nil {
		return nil, err
	}
	return unstructuredOf(out)
}

// compute computes the result without the API server.
func (o *difference) compute(merger *applied.Merger, a *written, live, wanted *unstructured.Unstructured) (*applied.Result, error) {
	switch {
	case o.serverSide:
		return merger.Apply(live, wanted, o.manager, o.forceConflicts)
	case live == nil:
		if err := configured(wanted); err != nil {
			return nil, err
		}
		return merger.Update(nil, wanted, o.manager)
	}
	modified, err := util.GetModifiedConfiguration(wanted, true, unstructured.UnstructuredJSONScheme)
	if err != nil {
		return nil, err
	}
	_, out, err := o.patcher(a.info, nil).PatchLocal(live.DeepCopy(), modified, o.streams.ErrOut)
	if err != nil {
		return nil, err
	}
	patched, err := unstructuredOf(out)
	if err != nil {
		return nil, err
	}
	return merger.Update(live, patched, o.manager)
}

// configured writes the annotation of client-side apply into an object that it creates.
func configured(wanted *unstructured.Unstructured) error {
	if err := util.CreateApplyAnnotation(wanted, unstructured.UnstructuredJSONScheme); err != nil {
		return err
	}
	applied.PruneNulls(wanted.Object)
	return nil
}

// patcher is that of kubectl apply.
func (o *difference) patcher(info *resource.Info, helper *resource.Helper) *apply.Patcher {
	return &apply.Patcher{Mapping: info.Mapping, Helper: helper, Overwrite: true, BackOff: clockwork.NewRealClock(), OpenAPIV3Root: o.server.types}
}

func unstructuredOf(in runtime.Object) (*unstructured.Unstructured, error) {
	if out, ok := in.(*unstructured.Unstructured); ok {
		return out, nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(in)
	return &unstructured.Unstructured{Object: content}, err
}

// merger returns what computes objects of a kind.
func (s *published) merger(kind runtimeschema.GroupVersionKind, resource runtimeschema.GroupVersionResource) (*applied.Merger, error) {
	types, err := s.converter(kind)
	if err != nil {
		return nil, err
	}
	list, err := s.discovery.ServerResourcesForGroupVersion(kind.GroupVersion().String())
	if err != nil {
		return nil, fmt.Errorf("resources of %s: %w: try again", kind.GroupVersion(), err)
	}
	status := slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == resource.Resource+"/status" })
	return &applied.Merger{Types: types, Kind: kind, Status: status}, nil
}

// converter returns the types of a version, nil if the API server publishes none of the kind.
func (s *published) converter(kind runtimeschema.GroupVersionKind) (managedfields.TypeConverter, error) {
	of := kind.GroupVersion()
	out, ok := s.converters[of]
	if !ok {
		document, err := s.types.GVSpec(of)
		var none *openapi3.GroupVersionNotFoundError
		switch {
		case errors.As(err, &none):
		case err != nil:
			return nil, fmt.Errorf("types of %s: %w: try again", of, err)
		case document.Components != nil:
			if out, err = managedfields.NewTypeConverter(document.Components.Schemas, false); err != nil {
				return nil, fmt.Errorf("types of %s: %w: correct the schema of the kind", of, err)
			}
		}
		s.converters[of] = out
	}
	if out == nil {
		return nil, nil
	}
	probe := &unstructured.Unstructured{}
	probe.SetGroupVersionKind(kind)
	if _, err := out.ObjectToTyped(probe); err == nil {
		return out, nil
	}
	return nil, nil
}

// encodedObject returns the JSON of an object, nil for none.
func encodedObject(object *unstructured.Unstructured) ([]byte, error) {
	if object == nil {
		return nil, nil
	}
	return json.Marshal(object.Object)
}
