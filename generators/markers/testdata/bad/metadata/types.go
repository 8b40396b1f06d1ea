// +groupName=example.com
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +kubebuilder:object:root=true

type Gadget struct {
	metav1.TypeMeta `json:",inline"`
	// +permission-verb:"example.com/metadata"
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Color string `json:"color,omitempty"`
}
