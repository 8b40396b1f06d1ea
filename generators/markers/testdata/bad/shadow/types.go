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

type Common struct {
	// +permission-verb:"example.com/common"
	// +permission-excluded
	A string `json:"a"`
}

type Spec struct {
	Common `json:",inline"`
	// +permission-verb:"example.com/a"
	A string `json:"a"`
}
