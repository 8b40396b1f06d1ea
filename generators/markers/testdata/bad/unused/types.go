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
	// +permission-verb:"example.com/color"
	Color string `json:"color"`
}

type Unused struct {
	// +permission-verb:"example.com/unused"
	// +permission-excluded
	A string `json:"a"`
}

// +kubebuilder:object:root=true

// +permission-verb:"example.com/list"
type GadgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Gadget `json:"items"`
}
