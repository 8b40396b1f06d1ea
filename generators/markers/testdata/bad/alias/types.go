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

// +permission-verb:"example.com/alias"
type Alias = Named

type Named struct {
	A string `json:"a"`
}

type Spec struct {
	Alias Alias `json:"alias"`
}
