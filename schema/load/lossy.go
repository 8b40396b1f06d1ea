package load

import (
	"fmt"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
)

// An API server does the following on a write through version V of an object that is stored in version X, while S is the storage version
// (apiextensions-apiserver, pkg/apiserver/customresource_handler.go).
//
//  1. It reads the object, prunes it by X and applies the defaults of X. It converts the result to V, and prunes it by V.
//  2. It applies the request, prunes the result by V and applies the defaults of V. Admission sees the objects of 1 and 2.
//  3. It converts the result to S, prunes it by S, and stores it.
//
// So admission sees every change of the write only if V keeps every object of X, and S keeps every object of V. Other versions have no
// effect, whether they are served or not. X is the storage version, or one of status.storedVersions, which the API server maintains. A
// definition without a status is new: no object is stored in another version than S.

// structural returns the structural schemas by version, without the parts that do not affect stored objects: validations and
// documentation. It leaves out schemas that are not structural. A version without a schema has nil.
func (d *definition) structural() map[string]*structuralschema.Structural {
	out := map[string]*structuralschema.Structural{}
	for i := range d.crd.Spec.Versions {
		v := &d.crd.Spec.Versions[i]
		s, err := structural(v)
		if err != nil {
			continue
		}
		if s != nil {
			s = s.StripValueValidations()
			visitor := structuralschema.Visitor{Structural: func(s *structuralschema.Structural) bool {
				s.Description, s.Title, s.ExternalDocs, s.Example, s.XValidations = "", "", nil, structuralschema.JSON{}, nil
				return true
			}}
			visitor.Visit(s)
		}
		out[v.Name] = s
	}
	return out
}

// structural returns the structural schema of one version, nil if it has no schema.
func structural(v *apiextensionsv1.CustomResourceDefinitionVersion) (*structuralschema.Structural, error) {
	if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
		return nil, nil
	}
	var internal apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(v.Schema.OpenAPIV3Schema, &internal, nil); err != nil {
		return nil, err
	}
	return structuralschema.NewStructural(&internal)
}

// storage returns the name of the storage version.
func (d *definition) storage() string {
	for i := range d.crd.Spec.Versions {
		if d.crd.Spec.Versions[i].Storage {
			return d.crd.Spec.Versions[i].Name
		}
	}
	return ""
}

// stored reports whether objects may be stored in the version.
func (d *definition) stored(version string) bool {
	return version == d.storage() || slices.Contains(d.crd.Status.StoredVersions, version)
}

// losses returns the versions through which a write may change fields that the version does not show, with advice.
func (d *definition) losses() map[string]string {
	storage := d.storage()
	storedIn := append([]string{storage}, d.crd.Status.StoredVersions...)
	keeps := d.keeps()
	lossless := func(version string) bool {
		return storage != "" && keeps(storage, version) && !slices.ContainsFunc(storedIn, func(in string) bool { return !keeps(version, in) })
	}
	out := map[string]string{}
	for i := range d.crd.Spec.Versions {
		if name := d.crd.Spec.Versions[i].Name; !lossless(name) {
			out[name] = d.instead(name, lossless)
		}
	}
	return out
}

// keeps returns a function that reports whether one version keeps every object of another. Nothing is known about a conversion webhook:
// it may drop or move any field except those that identify an object, unless the definition declares that it is lossless. A value that one version
// has by default and the other does not is not kept: who leaves it out there has set it here.
func (d *definition) keeps() func(by, of string) bool {
	if d.convertsByWebhook() && !d.isVouched() {
		return func(by, of string) bool { return by == of }
	}
	schemas := d.structural()
	if d.convertsByWebhook() {
		return func(by, of string) bool { return by == of || sameDefaults(schemas[by], schemas[of]) }
	}
	return func(by, of string) bool {
		keeper, known := schemas[by]
		kept, alsoKnown := schemas[of]
		return by == of || known && alsoKnown && keepsNode(keeper, kept, true, false)
	}
}

// isVouched reports whether the definition declares that its conversion is lossless.
func (d *definition) isVouched() bool {
	return d.crd.Annotations[v1alpha1.LosslessConversionAnnotation] == "true"
}

// sameDefaults reports whether the fields at the same paths of two schemas have the same defaults. A version that keeps fields without declaring them
// has them without a default.
func sameDefaults(a, b *structuralschema.Structural) bool {
	if a == nil || b == nil || a == b {
		return true
	}
	if !apiequality.Semantic.DeepEqual(a.Default, b.Default) || !sameDefaults(itemsOf(a), itemsOf(b)) || !sameDefaults(valuesOf(a), valuesOf(b)) {
		return false
	}
	for name, one := range a.Properties {
		if !sameDefaults(&one, propertyOf(b, name)) {
			return false
		}
	}
	for name, other := range b.Properties {
		if _, compared := a.Properties[name]; !compared && !sameDefaults(valuesOf(a), &other) {
			return false
		}
	}
	return true
}

// anything is the schema of what a version keeps without declaring it.
var anything = &structuralschema.Structural{Extensions: structuralschema.Extensions{XPreserveUnknownFields: true}}

// itemsOf, valuesOf and propertyOf return the schema of the items of a list, the undeclared fields of an object, and one field. It is nil for what the
// version surely prunes. A list that keeps unknown fields keeps those of its items.
func itemsOf(s *structuralschema.Structural) *structuralschema.Structural {
	switch {
	case !s.XPreserveUnknownFields:
		return s.Items
	case s.Items == nil:
		return anything
	}
	open := *s.Items
	open.XPreserveUnknownFields = true
	return &open
}

func valuesOf(s *structuralschema.Structural) *structuralschema.Structural {
	switch {
	case s.AdditionalProperties != nil && s.AdditionalProperties.Structural != nil:
		return s.AdditionalProperties.Structural
	case s.AdditionalProperties != nil, s.XPreserveUnknownFields, s.XEmbeddedResource:
		return anything
	}
	return nil
}

func propertyOf(s *structuralschema.Structural, name string) *structuralschema.Structural {
	if out, declared := s.Properties[name]; declared {
		return &out
	}
	return valuesOf(s)
}

// convertsByWebhook reports whether conversion between versions changes more than the apiVersion.
func (d *definition) convertsByWebhook() bool {
	c := d.crd.Spec.Conversion
	return c != nil && c.Strategy != "" && c.Strategy != apiextensionsv1.NoneConverter
}

// instead returns the advice in a denial of a write through the version.
func (d *definition) instead(version string, lossless func(string) bool) string {
	for i := range d.crd.Spec.Versions {
		v := &d.crd.Spec.Versions[i]
		if !v.Served || !lossless(v.Name) {
			continue
		}
		switch {
		case d.convertsByWebhook() && d.isVouched():
			return fmt.Sprintf("version %q has other defaults than version %q: write through that version, or give both the same", version, v.Name)
		case d.convertsByWebhook():
			return fmt.Sprintf("version %q is converted by a webhook, which may change any field: write through version %q", version, v.Name)
		}
		return fmt.Sprintf("version %q does not keep every field: write through version %q", version, v.Name)
	}
	storage := d.storage()
	if lossless(storage) {
		return fmt.Sprintf("version %q does not keep every field, and the storage version is not served: serve version %q", version, storage)
	}
	return fmt.Sprintf("objects may be stored in a version that version %q does not keep: migrate them to version %q, then leave no other in status.storedVersions of CustomResourceDefinition %q", version, storage, d.crd.Name)
}

// keepsNode reports whether every value of one schema passes through the other unchanged by pruning, removal of nulls and defaulting.
// This requires equal schemas, except for properties that a value of the one cannot have and to which the other gives no default. root
// objects always have apiVersion, kind and metadata. open nodes keep unknown fields without declaring it, such as items of a list that
// declares it.
func keepsNode(by, of *structuralschema.Structural, root, open bool) bool {
	if by == nil || of == nil {
		return by == nil && of == nil
	}
	if !apiequality.Semantic.DeepEqual(by.Generic, of.Generic) || !apiequality.Semantic.DeepEqual(by.Extensions, of.Extensions) {
		return false
	}
	open = open || of.XPreserveUnknownFields
	if !keepsNode(by.Items, of.Items, false, open) {
		return false
	}
	if (by.AdditionalProperties == nil) != (of.AdditionalProperties == nil) {
		return false
	}
	if of.AdditionalProperties != nil && (by.AdditionalProperties.Bool != of.AdditionalProperties.Bool ||
		!keepsNode(by.AdditionalProperties.Structural, of.AdditionalProperties.Structural, false, false)) {
		return false
	}
	for name, theirs := range of.Properties {
		ours, declared := by.Properties[name]
		if !declared || !keepsNode(&ours, &theirs, false, false) {
			return false
		}
	}
	closed := !open && of.AdditionalProperties == nil && !of.XEmbeddedResource
	for name, ours := range by.Properties {
		if _, declared := of.Properties[name]; declared {
			continue
		}
		isMeta := root && (name == "apiVersion" || name == "kind" || name == "metadata")
		if !closed || isMeta || ours.Default.Object != nil {
			return false
		}
	}
	return true
}
