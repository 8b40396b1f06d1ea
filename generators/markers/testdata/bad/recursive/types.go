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
	Tree Node `json:"tree"`
}

type Node struct {
	// +permission-verb:"example.com/weight"
	Weight int64 `json:"weight"`
	// +optional
	Children []Node `json:"children,omitempty"`
}
