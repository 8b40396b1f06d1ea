package plugin

import (
	"errors"
	"fmt"
	"os"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/fieldperm/fieldperm/internal/manifest"
	"github.com/fieldperm/fieldperm/internal/sources"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/load"
)

// resourceOf returns the resource for objects of the kind: the one of --resource, else the one of a CustomResourceDefinition, else
// the cluster's, else the usual plural.
func (o *options) resourceOf(known *sources.Snapshot, gvk runtimeschema.GroupVersionKind) (runtimeschema.GroupVersionResource, error) {
	if o.resource != "" {
		return parseResource(o.resource)
	}
	none := runtimeschema.GroupVersionResource{}
	switch gvk.Kind {
	case "Scale", "Eviction", "TokenRequest":
		return none, fmt.Errorf("kind %q is of a subresource: give --resource, such as apps/v1/deployments, and --subresource", gvk.Kind)
	}
	if plural, err := o.pluralOf(gvk); err != nil || plural != "" {
		return gvk.GroupVersion().WithResource(plural), err
	}
	if !o.offline() {
		mapper, err := o.cluster.ToRESTMapper()
		if err != nil {
			return none, fmt.Errorf("cluster: %w: correct --kubeconfig and --context, or give --resource", err)
		}
		mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		if err != nil {
			return none, fmt.Errorf("cluster: %w: install the kind, or give --resource", err)
		}
		return mapping.Resource, nil
	}
	if err := knownKind(known, gvk); err != nil {
		return none, err
	}
	resource, _ := meta.UnsafeGuessKindToResource(gvk)
	return resource, nil
}

// parseResource parses group/version/resource, or version/resource for the core group.
func parseResource(text string) (runtimeschema.GroupVersionResource, error) {
	parts := strings.Split(text, "/")
	if len(parts) == 2 {
		parts = append([]string{""}, parts...)
	}
	if len(parts) != 3 || parts[1] == "" || parts[2] == "" {
		return runtimeschema.GroupVersionResource{}, fmt.Errorf("--resource %q is no resource: write group/version/resource, such as apps/v1/deployments, or version/resource, such as v1/pods", text)
	}
	return runtimeschema.GroupVersionResource{Group: parts[0], Version: parts[1], Resource: parts[2]}, nil
}

// pluralOf returns the resource of the kind in a CustomResourceDefinition among the files, "" if there is none. It does not report
// other faults of the files; load does.
func (o *options) pluralOf(gvk runtimeschema.GroupVersionKind) (string, error) {
	plural := ""
	err := o.definitions(func(d *apiextensionsv1.CustomResourceDefinition) bool {
		if d.Spec.Group == gvk.Group && d.Spec.Names.Kind == gvk.Kind {
			plural = d.Spec.Names.Plural
		}
		return plural == ""
	})
	return plural, err
}

// definitions visits the CustomResourceDefinitions among the files until visit returns false.
func (o *options) definitions(visit func(*apiextensionsv1.CustomResourceDefinition) bool) error {
	for _, path := range o.files() {
		files, err := load.Paths(path)
		if err != nil {
			return fmt.Errorf("--crd: %w: name files or directories that can be read", err)
		}
		for _, file := range files {
			raw, err := os.ReadFile(file)
			if err != nil {
				return fmt.Errorf("--crd: %w: name files or directories that can be read", err)
			}
			documents, err := manifest.Documents(raw)
			if err != nil {
				return fmt.Errorf("--crd: %q: %w", file, err)
			}
			for _, document := range documents {
				var d apiextensionsv1.CustomResourceDefinition
				if err := utiljson.Unmarshal(document, &d); err == nil && d.Kind == "CustomResourceDefinition" && !visit(&d) {
					return nil
				}
			}
		}
	}
	return nil
}

// decidable returns an error that says how to make a kind known on the command line. Admission could only say "try again".
func decidable(known *sources.Snapshot, request *admissionv1.AdmissionRequest) error {
	if request.Operation == admissionv1.Delete || request.Operation == admissionv1.Connect {
		return nil
	}
	if request.Kind.Kind == "" {
		return errors.New("admission request: names no kind: give .request.kind")
	}
	if err := knownKind(known, runtimeschema.GroupVersionKind(request.Kind)); err != nil || request.RequestKind == nil {
		return err
	}
	return knownKind(known, runtimeschema.GroupVersionKind(*request.RequestKind))
}

func knownKind(known *sources.Snapshot, gvk runtimeschema.GroupVersionKind) error {
	err := known.Kind(gvk)
	if errors.Is(err, schema.ErrUnknownKind) {
		return fmt.Errorf("kind %q of %q is not known: give its CustomResourceDefinition with --crd, or correct the object's apiVersion and kind", gvk.Kind, gvk.GroupVersion())
	}
	return err
}
