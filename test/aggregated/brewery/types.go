package brewery

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
	Beer     string           `json:"beer,omitempty"`
	Taps     int32            `json:"taps,omitempty"`
	Prices   map[string]Price `json:"prices,omitempty"`
	Recalled bool             `json:"recalled,omitempty"`
	Pressure int32            `json:"pressure,omitempty"`
	Note     string           `json:"note,omitempty"`
}

// Price is the price of one size.
type Price struct {
	// Cents is the price in cents.
	Cents int32 `json:"cents,omitempty"`
}

// KegStatus is what a Keg is.
type KegStatus struct {
	Level  int32  `json:"level,omitempty"`
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

// Formula is what a beer is made of. Its resource is called recipes, which cannot be guessed from the kind.
//
// +kubebuilder:object:root=true
type Formula struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec FormulaSpec `json:"spec,omitempty"`
}

// FormulaSpec has all fields of all versions.
type FormulaSpec struct {
	Hops   string `json:"hops,omitempty"`
	Secret string `json:"secret,omitempty"`
}

// FormulaList is a list of Formulas.
//
// +kubebuilder:object:root=true
type FormulaList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Formula `json:"items"`
}
