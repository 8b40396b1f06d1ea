// Package reserved has a verb in a domain of Kubernetes.
// +groupName=reserved.example.com
// +versionName=v1
package reserved

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +kubebuilder:object:root=true

// Reserved is a kind.
type Reserved struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +permission-verb:"apps.kubernetes.io/color"
	Color string `json:"color"`
}
