package v1alpha1

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// UncoveredPermissionSet names granular verbs that the generic permission and more general granular
// verbs do not cover.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=uncovered,categories=fieldperm
// +kubebuilder:printcolumn:name="Verbs",type=string,JSONPath=`.spec.uncoveredPermissions`
// +kubebuilder:printcolumn:name="Compiled",type=string,JSONPath=`.status.conditions[?(@.type=="Compiled")].status`
// +kubebuilder:printcolumn:name="Enforced",type=string,JSONPath=`.status.conditions[?(@.type=="Enforced")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Enforced")].message`
type UncoveredPermissionSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says which verbs are uncovered, where, and for whom.
	// +required
	Spec UncoveredPermissionSetSpec `json:"spec"`
	// status is written by fieldperm.
	// +optional
	Status Status `json:"status,omitzero"`
}

// UncoveredPermissionSetSpec says which verbs are uncovered, where, and for whom.
//
// +kubebuilder:validation:XValidation:rule="!has(self.fragment) || !has(self.resources)",message="name resources or a fragment"
type UncoveredPermissionSetSpec struct {
	// uncoveredPermissions are whole verbs, such as granular:label(example.com). granular:* puts
	// the barrier at the root of the object.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=1408
	// +kubebuilder:validation:items:XValidation:rule="self.startsWith('granular:')",message="write the whole verb, such as granular:scale"
	UncoveredPermissions []string `json:"uncoveredPermissions"`
	// resources limits the set to these; it is about every resource if it is left out.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Resources []ResourceRule `json:"resources,omitempty"`
	// fragment of the built-in catalogue, in place of resources: the set is about every resource that
	// contains it, wherever in the object.
	// +optional
	// +kubebuilder:validation:Enum=conditions;jobSpec;metadata;podSpec;podTemplate
	Fragment string `json:"fragment,omitempty"`
	// matchConditions limit the set to the requests for which all are true. An error counts as true.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	MatchConditions []MatchCondition `json:"matchConditions,omitempty"`
	// validationActions say what happens to a write that needs one of the verbs from a user without it. Deny refuses the write. Warn lets
	// it pass and sends the client a warning. Audit lets it pass and adds an annotation to the audit event. Deny and Warn exclude each
	// other. If it is left out, the action is Deny.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:XValidation:rule="!('Deny' in self && 'Warn' in self)",message="Deny and Warn exclude each other, because a refused write needs no warning: keep one of them"
	ValidationActions []ValidationAction `json:"validationActions,omitempty"`
}

// ValidationAction is what happens to a write that a set forbids, as in a ValidatingAdmissionPolicyBinding.
//
// +kubebuilder:validation:Enum=Deny;Warn;Audit
type ValidationAction string

// These are the actions.
const (
	ValidationDeny  ValidationAction = "Deny"
	ValidationWarn  ValidationAction = "Warn"
	ValidationAudit ValidationAction = "Audit"
)

// Denies reports whether the set refuses writes: if it has no actions, and if it has any that is not Warn or Audit.
func (s *UncoveredPermissionSetSpec) Denies() bool {
	return len(s.ValidationActions) == 0 || slices.ContainsFunc(s.ValidationActions, func(a ValidationAction) bool {
		return a != ValidationWarn && a != ValidationAudit
	})
}

// ResourceRule names resources. A resource stands for its subresources too, because they write the
// same object; "deployments/scale" is one subresource, "*/scale" that of every resource, "*" is all.
type ResourceRule struct {
	// apiGroups are the groups of the resources: "" for the core group, "*" for all.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=253
	APIGroups []string `json:"apiGroups"`
	// resources in these groups.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	Resources []string `json:"resources"`
}

// MatchCondition is CEL over request, the admission request without its objects. What depends on objects is a ConditionalPolicy of effect Deny.
type MatchCondition struct {
	// name of the condition.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// expression yields a boolean.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=8192
	Expression string `json:"expression"`
}

// UncoveredPermissionSetList is a list of them.
//
// +kubebuilder:object:root=true
type UncoveredPermissionSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []UncoveredPermissionSet `json:"items"`
}
