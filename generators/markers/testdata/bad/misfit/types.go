// Package misfit includes a fragment that does not fit the type.
// +groupName=misfit.example.com
// +versionName=v1
package misfit

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +kubebuilder:object:root=true

// Misfit is a kind.
type Misfit struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +permission-include:"podTemplate"
	Template Template `json:"template"`
}

// Template is no template of a Pod.
type Template struct {
	Color string `json:"color"`
}
