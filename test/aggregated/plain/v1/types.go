package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Keg is a keg of beer.
type Keg struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   KegSpec   `json:"spec,omitempty"`
	Status KegStatus `json:"status,omitempty"`
}

// KegSpec is what a Keg should be.
type KegSpec struct {
	// Beer is what the keg contains.
	// +permission-verb:"brewery.example.com/beer"
	Beer string `json:"beer,omitempty"`

	// Taps is how many taps the keg has. The subresource scale writes it too.
	// +permission-verb:"scale"
	Taps int32 `json:"taps,omitempty"`

	// Prices has the price of each size.
	// +permission-verb:"brewery.example.com/prices"
	// +permission-parameter-source:"size"
	Prices map[string]Price `json:"prices,omitempty"`

	// Recalled takes the keg off the market. Users with update may not change it.
	// +permission-verb:"brewery.example.com/recall"
	// +permission-excluded
	Recalled bool `json:"recalled,omitempty"`

	// Pressure is in bar.
	// +permission-verb:"brewery.example.com/pressure"
	// +permission-excluded-when:"self >= 3 || [1, 2].exists(p, p == self && p == 2 ? 'a:b' != 'a,b' : false)"
	Pressure int32 `json:"pressure,omitempty"`

	// Note has no verb of its own.
	Note string `json:"note,omitempty"`
}

// Price is the price of one size.
// +permission-verb:"brewery.example.com/price"
// +permission-parameterized-by:"size"
type Price struct {
	// Cents is the price in cents.
	Cents int32 `json:"cents,omitempty"`
}

// KegStatus is what a Keg is.
type KegStatus struct {
	// Level is in percent.
	// +permission-verb:"brewery.example.com/level"
	Level int32 `json:"level,omitempty"`

	// Sealed is the name of the seal.
	Sealed string `json:"sealed,omitempty"`
}

// KegList is a list of Kegs.
type KegList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Keg `json:"items"`
}

// Formula is what a beer is made of.
type Formula struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec FormulaSpec `json:"spec,omitempty"`
}

// FormulaSpec has the fields of a Formula.
type FormulaSpec struct {
	// Hops is the name of a sort of hops.
	// +permission-verb:"brewery.example.com/hops"
	Hops string `json:"hops,omitempty"`

	// Secret is the secret ingredient, which v1beta1 does not have.
	// +permission-verb:"brewery.example.com/secret"
	// +permission-excluded
	Secret string `json:"secret,omitempty"`
}

// FormulaList is a list of Formulas.
type FormulaList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Formula `json:"items"`
}

// Bottle has markers that only fieldperm-gen openapi can write.
type Bottle struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec BottleSpec `json:"spec,omitempty"`
}

// BottleSpec has fields of named types.
type BottleSpec struct {
	Shape `json:",inline"`

	// Stickers is a map of named types, as in KEP-3617.
	// +permission-verb:"bottles.example.com/stickers"
	Stickers map[StickerKey]StickerValue `json:"stickers,omitempty"`

	// Corks is a list of a named type that is a list.
	Corks Corks `json:"corks,omitempty"`

	// Cap has a condition with quotation marks and a backslash.
	// +permission-verb:"bottles.example.com/cap"
	// +permission-excluded-when:`self == "gold\\d"`
	Cap Metal `json:"cap,omitempty"`

	// Foil has the verb of its field, not that of its type.
	// +permission-verb:"bottles.example.com/foil"
	Foil *Metal `json:"foil,omitempty"`

	// Neck has the verb of its type.
	Neck Neck `json:"neck,omitempty"`
}

// Shape is inline in a BottleSpec.
type Shape struct {
	// +permission-verb:"bottles.example.com/height"
	Height int32 `json:"height,omitempty"`
}

// StickerKey names a sticker.
// +permission-parameter-source:"sticker"
type StickerKey string

// StickerValue is the text of a sticker.
// +permission-verb:"bottles.example.com/sticker"
// +permission-parameterized-by:"sticker"
// +permission-parameter-treatment:slash-delimited-prefix
type StickerValue string

// Corks is a list of corks.
// +permission-verb:"bottles.example.com/corks"
type Corks []Cork

// Cork is the name of a cork.
type Cork string

// Metal is the name of a metal.
// +permission-verb:"bottles.example.com/metal"
type Metal string

// Neck is the neck of a bottle.
// +permission-verb:"bottles.example.com/neck"
type Neck struct {
	Length int32 `json:"length,omitempty"`
}
