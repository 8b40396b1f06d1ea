package v1alpha1

// PermissionVerbsAnnotation is the annotation of a CustomResourceDefinition that carries its
// permission verbs, because an API server drops or refuses unknown keys inside a CRD's schema. Its
// value is JSON: version → list of FieldPermission.
const PermissionVerbsAnnotation = "fieldperm.dev/permission-verbs"

// LosslessConversionAnnotation is the annotation of a CustomResourceDefinition by which its author vouches for
// the conversion webhook, with the value "true": it keeps every field of every version, and no field of one
// version changes a field of another that has a different verb. Without it, or if the verbs of renamed fields
// contradict it, a write through any version but the storage version takes granular:* and every barrier of the
// kind.
const LosslessConversionAnnotation = "fieldperm.dev/lossless-conversion"

// TreatmentSlashDelimitedPrefix is the parameter treatment that takes the part of the value before
// the first slash, or the whole value if there is none.
const TreatmentSlashDelimitedPrefix = "slash-delimited-prefix"

// MaxExpandedPermissions is how many entries a document may have, with those that its includes stand for. A
// compile takes up to 2 KB of memory for each.
const MaxExpandedPermissions = 20000

// MaxPathLength is how many characters a path may have, in every document: the MaxLength of FieldPermission.Path.
const MaxPathLength = 1024

// FieldPermission says how one node of a schema is guarded. All but the path correspond to the
// schema keys x-kubernetes-permission-….
//
// +kubebuilder:validation:XValidation:rule="has(self.verb) || has(self.parameterSource) || has(self.include)",message="says nothing: add a verb, a parameterSource or an include"
// +kubebuilder:validation:XValidation:rule="has(self.verb) || !(has(self.parameterizedBy) || has(self.excluded) && self.excluded || has(self.excludedWhen))",message="has no verb to parameterize or exclude: add a verb"
// +kubebuilder:validation:XValidation:rule="has(self.parameterizedBy) || !(has(self.parameterTreatment) || has(self.parameterExpression))",message="treats a parameter that the verb does not take: add parameterizedBy"
// +kubebuilder:validation:XValidation:rule="!(has(self.parameterTreatment) && has(self.parameterExpression))",message="has a parameter treatment and an expression: keep one of parameterTreatment and parameterExpression"
// +kubebuilder:validation:XValidation:rule="!(has(self.excluded) && self.excluded && has(self.excludedWhen))",message="is excluded always and under a condition: keep one of excluded and excludedWhen"
type FieldPermission struct {
	// path is a pattern such as .spec.replicas, .spec.containers[*].image or
	// .metadata.annotations["example.com/key"]; [*] stands for any item or value.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.startsWith('.') || self.startsWith('[')",message="a path is made of .field, [*] and [\"name\"]: begin it with a dot"
	Path string `json:"path"`
	// verb is the name of the granular verb, without "granular:": a noun in lowerCamelCase, with a domain
	// before it if it is not one of the well-known verbs.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[a-z][a-zA-Z0-9]*$')",message="a verb is a noun in lowerCamelCase, with or without a domain before it: write scale or example.com/budget"
	Verb string `json:"verb,omitempty"`
	// parameterSource is the name under which this node's key (of a map's entries) or value (of a
	// scalar or a list-map's key property) is emitted as a parameter.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ParameterSource string `json:"parameterSource,omitempty"`
	// parameterizedBy is the name of the parameter that the verb takes. Something on the path must
	// emit it.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ParameterizedBy string `json:"parameterizedBy,omitempty"`
	// parameterTreatment is slash-delimited-prefix, or is left out: verbatim.
	// +optional
	// +kubebuilder:validation:Enum=slash-delimited-prefix
	ParameterTreatment string `json:"parameterTreatment,omitempty"`
	// parameterExpression is CEL over self (string) that yields the parameter, in place of a
	// treatment.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	ParameterExpression string `json:"parameterExpression,omitempty"`
	// excluded makes the verb a barrier: nothing above it counts for what it guards, the generic
	// permission included.
	// +optional
	Excluded bool `json:"excluded,omitempty"`
	// excludedWhen is CEL over self (the new value, null when removed) and oldSelf (the old value,
	// null when added): the verb is a barrier only where it is true. An error counts as true. It is for
	// fields that are declared as a string, a number or a boolean.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	ExcludedWhen string `json:"excludedWhen,omitempty"`
	// include is the name of a fragment of the built-in catalogue. Its entries hold at this node and below
	// it. The other entries of the document take precedence over them. A document has at most 20000
	// entries, with those of its includes. podTemplate has about 300.
	// +optional
	// +kubebuilder:validation:Enum=conditions;jobSpec;podSpec;podTemplate;templateMetadata
	Include string `json:"include,omitempty"`
}
