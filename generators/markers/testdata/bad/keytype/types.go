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

// +permission-verb:"example.com/key"
// +permission-excluded
// +permission-parameter-source:"key"
type Key string

type Spec struct {
	Map map[Key]string `json:"map"`
	// +listType=set
	List []Key `json:"list"`
}
