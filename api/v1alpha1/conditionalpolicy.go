package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ConditionalPolicy allows or denies writes of some users under a condition on the objects (KEP-5681). fieldperm asks its policies before
// it asks RBAC.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=condpolicy,categories=fieldperm
// +kubebuilder:printcolumn:name="Effect",type=string,JSONPath=`.spec.effect`
// +kubebuilder:printcolumn:name="Verbs",type=string,JSONPath=`.spec.verbs`
// +kubebuilder:printcolumn:name="Compiled",type=string,JSONPath=`.status.conditions[?(@.type=="Compiled")].status`
// +kubebuilder:printcolumn:name="Enforced",type=string,JSONPath=`.status.conditions[?(@.type=="Enforced")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Description",type=string,priority=1,JSONPath=`.spec.description`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Enforced")].message`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63",message="the name is longer than 63 characters: shorten it, because it is part of the id of the condition"
type ConditionalPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says what is allowed or denied, for whom, and under which condition.
	// +required
	Spec ConditionalPolicySpec `json:"spec"`
	// status is written by fieldperm.
	// +optional
	Status Status `json:"status,omitzero"`
}

// ConditionalPolicySpec says what is allowed or denied, for whom, and under which condition.
type ConditionalPolicySpec struct {
	// subjects are the users that the policy is about. It is about a request if one of them matches.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Subjects []Subject `json:"subjects"`
	// verbs are create, update, patch, delete, deletecollection, granular, and granular verbs such as granular:scale. Admission cannot tell
	// update and patch apart, so a policy has both or none.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=1408
	// +kubebuilder:validation:items:XValidation:rule="self in ['create', 'update', 'patch', 'delete', 'deletecollection', 'granular'] || self.startsWith('granular:')",message="is no verb of a write: use create, update, patch, delete, deletecollection, granular or a verb such as granular:scale"
	// +kubebuilder:validation:XValidation:rule="('update' in self) == ('patch' in self)",message="admission cannot tell update and patch apart: name both or none"
	Verbs []string `json:"verbs"`
	// resources that the policy is about. As in RBAC, a resource does not stand for its subresources.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Resources []PolicyResource `json:"resources"`
	// effect is what follows if the condition is true: Allow allows the verb. Deny denies it, whatever other policies and authorizers
	// allow. NoOpinion takes away what other policies allow, and leaves the decision to the other authorizers.
	// +required
	// +kubebuilder:validation:Enum=Allow;NoOpinion;Deny
	Effect PolicyEffect `json:"effect"`
	// condition is CEL over object, oldObject, request, options and changes, and yields a boolean. An error counts as true for Deny and
	// NoOpinion, and as false for Allow.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=10240
	Condition string `json:"condition"`
	// description tells users what the condition is. Denials quote it.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Description string `json:"description,omitempty"`
}

// PolicyEffect is what follows from a true condition.
type PolicyEffect string

// These are the effects. Any other text counts as Deny.
const (
	PolicyAllow     PolicyEffect = "Allow"
	PolicyNoOpinion PolicyEffect = "NoOpinion"
	PolicyDeny      PolicyEffect = "Deny"
)

// PolicyResource names resources and the versions in which the condition reads their objects.
type PolicyResource struct {
	// apiGroups are the groups of the resources: "" for the core group, "*" for all.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:Pattern=`^([*]|[a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$`
	APIGroups []string `json:"apiGroups"`
	// apiVersions are the versions for which the condition is written. If the request has another version, an Allow does not allow, and a
	// Deny denies. If they are left out, the condition must fit all versions that the API server serves.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	APIVersions []string `json:"apiVersions,omitempty"`
	// resources in these groups: "deployments", "deployments/scale", "*/scale", or "*" for all, subresources included.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:Pattern=`^([*]|[a-z0-9]([-a-z0-9.]*[a-z0-9])?)(/[a-z0-9]([-a-z0-9]*[a-z0-9])?)?$`
	Resources []string `json:"resources"`
}

// ConditionalPolicyList is a list of them.
//
// +kubebuilder:object:root=true
type ConditionalPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ConditionalPolicy `json:"items"`
}
