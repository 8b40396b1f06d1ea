package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Widget is a kind.
//
// +kubebuilder:object:root=true
type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec WidgetSpec `json:"spec,omitempty"`
}

// WidgetSpec is what a widget should be.
type WidgetSpec struct {
	// Size is how large it is.
	// +permission-verb:"example.com/size"
	Size int32 `json:"size,omitempty"`

	// Color has no verb of its own.
	// +kubebuilder:validation:Enum=red;blue
	Color string `json:"color,omitempty"`

	// Limit is a field with a barrier for some values.
	// +permission-verb:example.com/limit
	// +permission-excluded-when:"self > 5 || self == 0"
	Limit int32 `json:"limit,omitempty"`

	// Danger has the verb of its type.
	Danger Danger `json:"danger,omitempty"`

	// Safe has a verb in place of that of its type.
	// +permission-verb:"example.com/safe"
	Safe Danger `json:"safe,omitempty"`
}

// Danger is a type with a verb.
//
// +permission-verb:"example.com/danger"
type Danger struct {
	// On turns it on.
	On bool `json:"on,omitempty"`
}
