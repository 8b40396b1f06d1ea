package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Keg is a keg of beer.
//
// +kubebuilder:object:root=true
type Keg struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   KegSpec   `json:"spec,omitempty"`
	Status KegStatus `json:"status,omitempty"`
}

// KegSpec is what a Keg should be.
type KegSpec struct {
	// Beer is what the keg contains.
	// +k8s:openapi-gen=x-kubernetes-permission-verb:brewery.example.com/beer
	Beer string `json:"beer,omitempty"`

	// Taps is how many taps the keg has. The subresource scale writes it too.
	// +k8s:openapi-gen=x-kubernetes-permission-verb:scale
	Taps int32 `json:"taps,omitempty"`

	// Prices has the price of each size.
	// +k8s:openapi-gen=x-kubernetes-permission-verb:brewery.example.com/prices
	// +k8s:openapi-gen=x-kubernetes-permission-parameter-source:size
	Prices map[string]Price `json:"prices,omitempty"`

	// Recalled takes the keg off the market. Users with update may not change it.
	// +k8s:openapi-gen=x-kubernetes-permission-verb:brewery.example.com/recall
	// +k8s:openapi-gen=x-kubernetes-permission-excluded:true
	Recalled bool `json:"recalled,omitempty"`

	// Pressure is in bar.
	// +k8s:openapi-gen=x-kubernetes-permission-verb:brewery.example.com/pressure
	// +k8s:openapi-gen=x-kubernetes-permission-excluded-when:self >= 3 || [1, 2].exists(p, p == self && p == 2 ? 'a:b' != 'a,b' : false)
	Pressure int32 `json:"pressure,omitempty"`

	// Note has no verb of its own.
	Note string `json:"note,omitempty"`
}

// Price is the price of one size.
// +k8s:openapi-gen=x-kubernetes-permission-verb:brewery.example.com/price
// +k8s:openapi-gen=x-kubernetes-permission-parameterized-by:size
type Price struct {
	// Cents is the price in cents.
	Cents int32 `json:"cents,omitempty"`
}

// KegStatus is what a Keg is.
type KegStatus struct {
	// Level is in percent.
	// +k8s:openapi-gen=x-kubernetes-permission-verb:brewery.example.com/level
	Level int32 `json:"level,omitempty"`

	// Sealed is the name of the seal.
	Sealed string `json:"sealed,omitempty"`
}

// KegList is a list of Kegs.
//
// +kubebuilder:object:root=true
type KegList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Keg `json:"items"`
}

// Formula is what a beer is made of.
//
// +kubebuilder:object:root=true
type Formula struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec FormulaSpec `json:"spec,omitempty"`
}

// FormulaSpec has the fields of a Formula. It lacks the secret of v1.
type FormulaSpec struct {
	// Hops is the name of a sort of hops.
	// +k8s:openapi-gen=x-kubernetes-permission-verb:brewery.example.com/hops
	Hops string `json:"hops,omitempty"`
}

// FormulaList is a list of Formulas.
//
// +kubebuilder:object:root=true
type FormulaList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Formula `json:"items"`
}
