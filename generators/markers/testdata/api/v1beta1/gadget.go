// Package v1beta1 is an older version of an API, in a package with another name.
// +groupName=example.com
// +versionName=v1beta2
package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +kubebuilder:object:root=true

// Gadget is a kind.
type Gadget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec GadgetSpec `json:"spec"`
}

// GadgetSpec is what the user wants.
type GadgetSpec struct {
	// +permission-verb:"example.com/color"
	Color string `json:"color"`
	// Hue is in this version only.
	// +permission-verb:"example.com/color"
	// +optional
	Hue string `json:"hue,omitempty"`
}
