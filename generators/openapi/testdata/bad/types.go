// Package bad has markers that can be in no definition.
//
// +k8s:openapi-gen=true
package bad

import (
	"github.com/fieldperm/fieldperm/generators/openapi/testdata/bad/other"
	"github.com/fieldperm/fieldperm/generators/openapi/testdata/typos"
)

// House has fields of other types.
type House struct {
	Base  `json:",inline"`
	Door  other.Door    `json:"door"`
	Paint other.Colors  `json:"paint"`
	Tree  Tree          `json:"tree"`
	Key   Box[string]   `json:"key"`
	Cat   Holder[Name]  `json:"cat"`
	Dog   Holder[int32] `json:"dog"`
	Roof  roof          `json:"roof"`
	Wheel other.Wheel   `json:"wheel"`
	Sign  other.Sign    `json:"sign"`
	Rent  typos.Amount  `json:"rent"`
	Costs typos.Budget  `json:"costs"`
}

// Base is inline.
// +permission-verb:"example.com/base"
type Base struct {
	// +permission-verb:"example.com/size"
	Size int32 `json:"size"`
}

// Tree contains itself.
type Tree map[string]Tree

// Box is generic and has a marker.
type Box[T any] struct {
	// +permission-verb:"example.com/content"
	Content T `json:"content"`
}

// Holder is generic.
type Holder[T any] struct {
	Held T `json:"held"`
}

// Name has a marker.
// +permission-verb:"example.com/name"
type Name string

// Lonely is the type of no field.
// +permission-excluded
// +permission-verb:"example.com/lonely"
type Lonely string

type roof struct {
	// +permission-verb:"example.com/tiles"
	Tiles int32 `json:"tiles"`
}

// Hidden has no definition.
//
// +k8s:openapi-gen=false
type Hidden struct {
	// +permission-verb:"example.com/treasure"
	Treasure string `json:"treasure"`
}
