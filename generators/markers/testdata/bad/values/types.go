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

// +permission-verb:"example.com/shared"
// +permission-parameterized-by:"nobody"
type Shared string

type Spec struct {
	// +permission-excluded-when:"self =="
	// +permission-verb:"example.com/cel"
	CEL bool `json:"cel"`
	// +permission-excluded
	NoVerb bool `json:"noVerb"`
	// +permission-verb:"example.com/both"
	// +permission-excluded
	// +permission-excluded-when:"self == true"
	Both bool   `json:"both"`
	One  Shared `json:"one"`
	Two  Shared `json:"two"`
	// +permission-verb:"example.com/treatment"
	// +permission-parameter-treatment:slash-delimited-prefix
	Treatment string `json:"treatment"`
	// +permission-parameter-source:"struct"
	Struct Struct `json:"struct"`
}

type Struct struct {
	A string `json:"a"`
}
