// Package v1 has a kind with a template of Pods.
// +groupName=workload.example.com
package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +kubebuilder:object:root=true

// Workload is a kind.
type Workload struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec WorkloadSpec `json:"spec"`
}

// WorkloadSpec is what the user wants.
type WorkloadSpec struct {
	// Template has types of another module, without markers.
	// +permission-verb:"template"
	// +permission-include:"podTemplate"
	Template corev1.PodTemplateSpec `json:"template"`
	// +permission-verb:"frobnication"
	Speed string `json:"speed"`
	// +permission-verb:"example.org/stage"
	Stage string `json:"stage"`
}
