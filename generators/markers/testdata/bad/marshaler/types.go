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

// +kubebuilder:validation:Type=object
type Custom struct {
	// +permission-verb:"example.com/a"
	A string `json:"a"`
}

func (Custom) MarshalJSON() ([]byte, error) { return nil, nil }

type Spec struct {
	Custom Custom `json:"custom"`
}
