// Package fragments includes fragments of the catalogue that do not exist, or do not fit.
// +groupName=fragments.example.com
// +versionName=v1
package fragments

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +kubebuilder:object:root=true

// Fragments is a kind.
type Fragments struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +permission-include:"podTemplates"
	Template Template `json:"template"`
	// +permission-include:"wibble"
	Other Template `json:"other"`
}

// Template is no template of a Pod.
type Template struct {
	Color string `json:"color"`
}
