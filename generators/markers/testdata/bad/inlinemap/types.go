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

// +permission-verb:"example.com/value"
type Value string

type Spec struct {
	A     string           `json:"a"`
	Extra map[string]Value `json:",inline"`
}
