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

type Box[T any] struct {
	// +permission-verb:"example.com/value"
	Value T `json:"value"`
}

// +permission-verb:"example.com/color"
type Color string

type Plain[T any] struct {
	Value T `json:"value"`
}

type Spec struct {
	Field       Box[string] `json:"field"`
	Box[string] `json:",inline"`
	Argument    Plain[Color]           `json:"argument"`
	Items       map[string]Box[string] `json:"items"`
}
