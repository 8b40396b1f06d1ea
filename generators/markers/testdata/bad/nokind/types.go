// +groupName=example.com
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type Spec struct {
	// +permission-verb:"example.com/color"
	Color string `json:"color"`
	// +optional
	Time metav1.Time `json:"time,omitempty"`
}
