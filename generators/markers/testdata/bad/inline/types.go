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

// +permission-verb:"example.com/common"
// +permission-excluded
type Common struct {
	A string `json:"a"`
}

// +permission-parameter-source:"key"
type Key string

// +permission-verb:"example.com/based"
type Based Common

type Spec struct {
	Common `json:",inline"`
	*Based `json:",inline"`
	Extra  map[Key]string `json:",inline"`
}
