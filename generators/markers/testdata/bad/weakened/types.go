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
	A Always `json:"a"`
	// +permission-excluded-when:"self == 'x'"
	B Always `json:"b"`
	// +permission-excluded-when:"self == 'x'"
	C Other     `json:"c"`
	D Sometimes `json:"d"`
	// +permission-excluded
	E Sometimes `json:"e"`
}

// +permission-verb:"example.com/always"
// +permission-excluded
type Always string

// Other is declared as a type with a barrier.
type Other Always

// +permission-verb:"example.com/sometimes"
// +permission-excluded-when:"self == 'y'"
type Sometimes string
