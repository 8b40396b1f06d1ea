package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// PermissionSchema gives the fields of one kind permission verbs, or those of a fragment of the built-in catalogue in every kind that contains it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=permschema,categories=fieldperm
// +kubebuilder:printcolumn:name="Group",type=string,JSONPath=`.spec.group`
// +kubebuilder:printcolumn:name="Kind",type=string,JSONPath=`.spec.kind`
// +kubebuilder:printcolumn:name="Fragment",type=string,JSONPath=`.spec.fragment`
// +kubebuilder:printcolumn:name="Compiled",type=string,JSONPath=`.status.conditions[?(@.type=="Compiled")].status`
// +kubebuilder:printcolumn:name="Enforced",type=string,JSONPath=`.status.conditions[?(@.type=="Enforced")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Enforced")].message`
type PermissionSchema struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec names the kind or the fragment, and guards its fields.
	// +required
	Spec PermissionSchemaSpec `json:"spec"`
	// status is written by fieldperm.
	// +optional
	Status Status `json:"status,omitzero"`
}

// PermissionSchemaSpec names the kind or the fragment, and guards its fields.
//
// +kubebuilder:validation:XValidation:rule="has(self.fragment) != has(self.kind)",message="name a kind or a fragment"
// +kubebuilder:validation:XValidation:rule="!has(self.fragment) || self.permissions.all(p, !has(p.include))",message="a fragment is included in a kind, not in another fragment"
// +kubebuilder:validation:XValidation:rule="!has(self.fragment) || !has(self.group) && !has(self.versions)",message="a fragment is in many kinds: leave out group and versions"
type PermissionSchemaSpec struct {
	// group of the kind; the core group if it is left out.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self != '*'",message="name one group, or leave it out for the core group"
	Group string `json:"group,omitempty"`
	// versions that the permissions hold for; every version if it is left out.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z]([-a-z0-9]*[a-z0-9])?$`
	Versions []string `json:"versions,omitempty"`
	// kind that is guarded.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self != '*'",message="name one kind"
	Kind string `json:"kind,omitempty"`
	// fragment of the built-in catalogue that is guarded, in every kind that contains it, in place of a
	// kind. Paths begin at the fragment: podSpec has .hostNetwork, podTemplate has .spec.hostNetwork.
	// +optional
	// +kubebuilder:validation:Enum=conditions;jobSpec;metadata;podSpec;podTemplate
	Fragment string `json:"fragment,omitempty"`
	// permissions guard the kind's fields, one entry for each path.
	// +required
	// +listType=map
	// +listMapKey=path
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=512
	Permissions []FieldPermission `json:"permissions"`
}

// Fragments returns the fragments that a PermissionSchema or an UncoveredPermissionSet may be about, sorted.
func Fragments() []string {
	return []string{"conditions", "jobSpec", "metadata", "podSpec", "podTemplate"}
}

// PermissionSchemaList is a list of them.
//
// +kubebuilder:object:root=true
type PermissionSchemaList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []PermissionSchema `json:"items"`
}
