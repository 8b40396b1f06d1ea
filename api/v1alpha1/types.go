package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is that of the kinds in this package.
var GroupVersion = schema.GroupVersion{Group: "fieldperm.dev", Version: "v1alpha1"}

// PermissionVerbsAnnotation is the annotation of a CustomResourceDefinition that carries its
// permission verbs, because an API server drops or refuses unknown keys inside a CRD's schema. Its
// value is JSON: version → list of FieldPermission.
const PermissionVerbsAnnotation = "fieldperm.dev/permission-verbs"

// TreatmentSlashDelimitedPrefix is the parameter treatment that takes the part of the value before
// the first slash, or the whole value if there is none.
const TreatmentSlashDelimitedPrefix = "slash-delimited-prefix"

// FieldPermission says how one node of a schema is guarded. All but the path correspond to the
// schema keys x-kubernetes-permission-….
type FieldPermission struct {
	// Path is a pattern such as .spec.replicas, .spec.containers[*].image or
	// .metadata.annotations["example.com/key"]; [*] stands for any item or value.
	Path string `json:"path"`
	// Verb is the name of the granular verb, without "granular:".
	Verb string `json:"verb,omitempty"`
	// ParameterSource is the name under which this node's key (of a map's entries) or value (of a
	// scalar or a list-map's key property) is emitted as a parameter.
	ParameterSource string `json:"parameterSource,omitempty"`
	// ParameterizedBy is the name of the parameter that the verb takes. Something on the path must
	// emit it.
	ParameterizedBy string `json:"parameterizedBy,omitempty"`
	// ParameterTreatment is empty (verbatim) or slash-delimited-prefix.
	ParameterTreatment string `json:"parameterTreatment,omitempty"`
	// ParameterExpression is CEL over self (string) that yields the parameter, in place of a
	// treatment.
	ParameterExpression string `json:"parameterExpression,omitempty"`
	// Excluded makes the verb a barrier: nothing above it counts for what it guards, the generic
	// permission included.
	Excluded bool `json:"excluded,omitempty"`
	// ExcludedWhen is CEL over self (the new value, null when removed) and oldSelf (the old value,
	// null when added): the verb is a barrier only where it is true. An error counts as true.
	ExcludedWhen string `json:"excludedWhen,omitempty"`
}

// PermissionSchema gives the fields of one kind permission verbs.
type PermissionSchema struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec PermissionSchemaSpec `json:"spec"`
}

// PermissionSchemaSpec names the kind and guards its fields.
type PermissionSchemaSpec struct {
	Group string `json:"group,omitempty"`
	// Versions that the permissions hold for; empty means every version.
	Versions    []string          `json:"versions,omitempty"`
	Kind        string            `json:"kind"`
	Permissions []FieldPermission `json:"permissions"`
}

// UncoveredPermissionSet names granular verbs that the generic permission and more general granular
// verbs do not cover.
type UncoveredPermissionSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec UncoveredPermissionSetSpec `json:"spec"`
}

// UncoveredPermissionSetSpec says which verbs are uncovered, where, and for whom.
type UncoveredPermissionSetSpec struct {
	// UncoveredPermissions are whole verbs, such as granular:label(example.com). granular:* puts
	// the barrier at the root of the object.
	UncoveredPermissions []string `json:"uncoveredPermissions"`
	// Resources limits the set to these; empty means every resource.
	Resources []ResourceRule `json:"resources,omitempty"`
	// MatchConditions limit the set to the requests for which all are true. An error counts as true.
	MatchConditions []MatchCondition `json:"matchConditions,omitempty"`
}

// ResourceRule names resources. A resource stands for its subresources too, because they write the
// same object; "deployments/scale" is one subresource, "*/scale" that of every resource, "*" is all.
type ResourceRule struct {
	APIGroups []string `json:"apiGroups"`
	Resources []string `json:"resources"`
}

// MatchCondition is CEL over request (the admission request), object and oldObject.
type MatchCondition struct {
	Name       string `json:"name"`
	Expression string `json:"expression"`
}
