// +groupName=example.com
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +kubebuilder:object:root=true

type Gadget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec Spec `json:"spec"`
}

type Spec struct {
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Free Guarded `json:"free"`
	Type Guarded `json:"type"`
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	Keys map[Key]string `json:"keys"`
}

// +permission-verb:"example.com/guarded"
// +permission-excluded
type Guarded struct {
	// +permission-verb:"example.com/a"
	A string `json:"a"`
}

// +permission-parameter-source:"key"
type Key string
