package plugin

import (
	"encoding/json"
	"errors"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	kjson "sigs.k8s.io/json"

	"github.com/fieldperm/fieldperm/internal/manifest"
	"github.com/fieldperm/fieldperm/internal/rbac"
	"github.com/fieldperm/fieldperm/internal/sources"
)

// reviewRequest reads the request from the AdmissionReview of -f.
func (o *options) reviewRequest() (*admissionv1.AdmissionRequest, error) {
	document, err := o.document("-f", o.file)
	if err != nil {
		return nil, err
	}
	const cure = `give one with apiVersion "admission.k8s.io/v1" and kind "AdmissionReview"`
	if document[0] != '{' {
		return nil, fmt.Errorf("-f %q: is no AdmissionReview: %s", o.file, cure)
	}
	var meta metav1.TypeMeta
	if err := kjson.UnmarshalCaseSensitivePreserveInts(document, &meta); err != nil {
		return nil, fmt.Errorf("-f %q: is no AdmissionReview: %w: %s", o.file, err, cure)
	}
	wanted := admissionv1.SchemeGroupVersion.WithKind("AdmissionReview")
	if gvk := runtimeschema.FromAPIVersionAndKind(meta.APIVersion, meta.Kind); gvk != wanted {
		return nil, fmt.Errorf("-f %q: is of apiVersion %q and kind %q, no AdmissionReview: %s", o.file, meta.APIVersion, meta.Kind, cure)
	}
	var review admissionv1.AdmissionReview
	faults, err := kjson.UnmarshalStrict(document, &review, kjson.DisallowDuplicateFields)
	if err == nil {
		err = errors.Join(faults...)
	}
	if err != nil {
		return nil, fmt.Errorf("-f %q: is no AdmissionReview: %w: correct it", o.file, err)
	}
	if review.Request == nil {
		return nil, fmt.Errorf("-f %q: AdmissionReview has no request: give one with .request", o.file)
	}
	return review.Request, nil
}

// object is the object of --old or --new.
type object struct {
	raw             json.RawMessage
	gvk             runtimeschema.GroupVersionKind
	name, namespace string
}

// change is the objects of --old and --new; at most one of the two is nil.
type change struct {
	before, after *object
}

// objects reads --old and --new.
func (o *options) objects() (change, error) {
	before, err := o.object("--old", o.oldFile)
	if err != nil {
		return change{}, err
	}
	after, err := o.object("--new", o.newFile)
	switch {
	case err != nil:
		return change{}, err
	case before == nil || after == nil:
	case before.gvk != after.gvk:
		return change{}, fmt.Errorf("--old is a %q of %q, --new a %q of %q: give two states of one object", before.gvk.Kind, before.gvk.GroupVersion(), after.gvk.Kind, after.gvk.GroupVersion())
	case before.name != after.name || before.namespace != after.namespace:
		return change{}, fmt.Errorf("--old is %q in namespace %q, --new %q in %q: give two states of one object", before.name, before.namespace, after.name, after.namespace)
	}
	return change{before, after}, nil
}

// objectRequest returns the request that an API server would have sent for the change.
func (o *options) objectRequest(c change, known *sources.Snapshot) (*admissionv1.AdmissionRequest, error) {
	operation, about := admissionv1.Update, c.after
	switch {
	case c.before == nil:
		operation = admissionv1.Create
	case c.after == nil:
		operation, about = admissionv1.Delete, c.before
	}
	resource, err := o.resourceOf(known, about.gvk)
	if err != nil {
		return nil, err
	}
	gvk := metav1.GroupVersionKind{Group: about.gvk.Group, Version: about.gvk.Version, Kind: about.gvk.Kind}
	gvr := metav1.GroupVersionResource{Group: resource.Group, Version: resource.Version, Resource: resource.Resource}
	request := &admissionv1.AdmissionRequest{
		Kind: gvk, Resource: gvr, SubResource: o.subresource,
		RequestKind: &gvk, RequestResource: &gvr, RequestSubResource: o.subresource,
		Name: about.name, Namespace: o.namespaceOf(about, resource), Operation: operation,
		UserInfo: o.userInfo(),
	}
	if c.before != nil {
		request.OldObject = runtime.RawExtension{Raw: c.before.raw}
	}
	if c.after != nil {
		request.Object = runtime.RawExtension{Raw: c.after.raw}
	}
	return request, nil
}

// object reads an object. It returns nil if no file is given.
func (o *options) object(flag, file string) (*object, error) {
	if file == "" {
		return nil, nil
	}
	document, err := o.document(flag, file)
	if err != nil {
		return nil, err
	}
	if document[0] != '{' {
		return nil, fmt.Errorf("%s %q: is no Kubernetes object: give it an apiVersion and a kind", flag, file)
	}
	var meta struct {
		metav1.TypeMeta `json:",inline"`
		Metadata        struct {
			Name      string `json:"name"`
			Namespace string `json:"namespace"`
		} `json:"metadata"`
	}
	faults, err := kjson.UnmarshalStrict(document, &meta, kjson.DisallowDuplicateFields)
	if err == nil {
		err = errors.Join(faults...)
	}
	if err != nil {
		return nil, fmt.Errorf("%s %q: is no Kubernetes object: %w: correct it", flag, file, err)
	}
	if meta.APIVersion == "" || meta.Kind == "" {
		return nil, fmt.Errorf("%s %q: is no Kubernetes object: give it an apiVersion and a kind", flag, file)
	}
	return &object{
		raw: document, gvk: runtimeschema.FromAPIVersionAndKind(meta.APIVersion, meta.Kind),
		name: meta.Metadata.Name, namespace: meta.Metadata.Namespace,
	}, nil
}

// document returns the only document of a file as JSON.
func (o *options) document(flag, file string) (json.RawMessage, error) {
	raw, err := o.read(flag, file)
	if err != nil {
		return nil, err
	}
	documents, err := manifest.Documents(raw)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s %q: %w", flag, file, err)
	case len(documents) != 1:
		return nil, fmt.Errorf("%s %q: has %d documents: give one", flag, file, len(documents))
	}
	return documents[0], nil
}

// namespaceOf returns the namespace of the request. For a request about a Namespace, an API server uses the Namespace's own name,
// so that a RoleBinding in it can grant changes of it.
func (o *options) namespaceOf(about *object, resource runtimeschema.GroupVersionResource) string {
	if resource.Group == "" && resource.Resource == "namespaces" {
		return about.name
	}
	if about.namespace == "" && o.cluster.Namespace != nil {
		return *o.cluster.Namespace
	}
	return about.namespace
}

// userInfo returns the user of --as with the groups that it would have when impersonated.
func (o *options) userInfo() authenticationv1.UserInfo {
	groups := o.asGroups
	if namespace, _, err := serviceaccount.SplitUsername(o.as); err == nil && len(groups) == 0 {
		groups = serviceaccount.MakeGroupNames(namespace)
	}
	if o.as == user.Anonymous && len(groups) == 0 {
		groups = []string{user.AllUnauthenticated}
	}
	u := rbac.Authenticated(&user.DefaultInfo{Name: o.as, Groups: groups})
	return authenticationv1.UserInfo{Username: u.GetName(), Groups: u.GetGroups()}
}
