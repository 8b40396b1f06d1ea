package load

import (
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/fieldperm/fieldperm/schema"
)

// waysAround reports served versions that would prune what is behind a barrier of another version.
func (d *definition) waysAround(entries map[string][]schema.Entry) []error {
	var errs []error
	for i := range d.crd.Spec.Versions {
		v := &d.crd.Spec.Versions[i]
		if !v.Served || !d.prunes() {
			continue
		}
		for j := range d.crd.Spec.Versions {
			other := &d.crd.Spec.Versions[j]
			for _, e := range entries[other.Name] {
				if p, err := schema.ParsePattern(e.Path); err == nil && isBarrier(e) && other != v && prunedAt(schemaOf(v), schemaOf(other), p.Steps()) {
					errs = append(errs, fault(d.source, e.Pointer, "version %q prunes what is at %q of version %q, a way around the barrier: declare it there too, or convert by a webhook", v.Name, e.Path, other.Name))
				}
			}
		}
	}
	return errs
}

// prunedAt follows a path; "" stands for any item or value.
func prunedAt(kept, other *apiextensionsv1.JSONSchemaProps, steps []string) bool {
	if len(steps) == 0 || other == nil {
		return pruned(kept, other, "") != ""
	}
	if kept == nil || kept.XPreserveUnknownFields != nil && *kept.XPreserveUnknownFields {
		return false
	}
	theirs, ours := below(other, steps[0]), below(kept, steps[0])
	if ours == nil {
		return theirs != nil
	}
	return prunedAt(ours, theirs, steps[1:])
}

func below(s *apiextensionsv1.JSONSchemaProps, step string) *apiextensionsv1.JSONSchemaProps {
	if p, ok := s.Properties[step]; ok && step != "" {
		return &p
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		return s.AdditionalProperties.Schema
	}
	if s.Items != nil && step == "" {
		return s.Items.Schema
	}
	return nil
}

// prunes reports whether the API server converts by dropping what the other version does not have. A
// conversion webhook is expected to keep it elsewhere.
func (d *definition) prunes() bool {
	conversion := d.crd.Spec.Conversion
	return !d.crd.Spec.PreserveUnknownFields && (conversion == nil || conversion.Strategy == "" || conversion.Strategy == apiextensionsv1.NoneConverter)
}

// lossy returns a path of another version that this one does not have, so that an API server prunes it
// from whatever is written through this version; "" if there is none.
func (d *definition) lossy(v *apiextensionsv1.CustomResourceDefinitionVersion) string {
	if !d.prunes() {
		return ""
	}
	for i := range d.crd.Spec.Versions {
		other := &d.crd.Spec.Versions[i]
		if other.Name == v.Name {
			continue
		}
		if path := pruned(schemaOf(v), schemaOf(other), ""); path != "" {
			return path + " of version " + other.Name
		}
	}
	return ""
}

func schemaOf(v *apiextensionsv1.CustomResourceDefinitionVersion) *apiextensionsv1.JSONSchemaProps {
	if v.Schema == nil {
		return nil
	}
	return v.Schema.OpenAPIV3Schema
}

// pruned returns a path that other has and kept does not let through.
func pruned(kept, other *apiextensionsv1.JSONSchemaProps, at string) string {
	switch {
	case kept == nil || kept.XPreserveUnknownFields != nil && *kept.XPreserveUnknownFields:
		return ""
	case other == nil || other.XPreserveUnknownFields != nil && *other.XPreserveUnknownFields:
		return at + "[*]"
	}
	for _, name := range slices.Sorted(maps.Keys(other.Properties)) {
		// Every object has these, and so has every embedded resource.
		if (at == "" || other.XEmbeddedResource) && (name == "metadata" || name == "apiVersion" || name == "kind") {
			continue
		}
		theirs, below := other.Properties[name], at+"."+name
		ours, declared := kept.Properties[name]
		switch values := kept.AdditionalProperties; {
		case declared:
			if path := pruned(&ours, &theirs, below); path != "" {
				return path
			}
		case values == nil || values.Schema == nil && !values.Allows:
			return below
		case values.Schema != nil:
			if path := pruned(values.Schema, &theirs, below); path != "" {
				return path
			}
		}
	}
	if theirs := other.AdditionalProperties; theirs != nil && (theirs.Schema != nil || theirs.Allows) {
		ours := kept.AdditionalProperties
		if ours == nil || ours.Schema == nil && !ours.Allows {
			return at + "[*]"
		}
		if ours.Schema != nil {
			if path := pruned(ours.Schema, theirs.Schema, at+"[*]"); path != "" {
				return path
			}
		}
	}
	if kept.Items != nil && other.Items != nil {
		return pruned(kept.Items.Schema, other.Items.Schema, at+"[*]")
	}
	return ""
}
