// Package good has types whose markers are all in a definition.
//
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=com.example.good
package good

// Ship has every kind of field.
type Ship struct {
	*Hull `json:",inline"`

	// +permission-verb:"example.com/name"
	Name Name `json:"name"`
	// +k8s:openapi-gen=x-kubernetes-permission-verb:example.com/crew
	Crew []Sailor `json:"crew"`
	// Ports is a list of lists of a named type.
	Ports [][]Port `json:"ports"`
	// Next is another ship.
	Next *Ship `json:"next,omitempty"`
	Sail Sail  `json:"sail"`
	Flag Flag  `json:"flag"`
}

// Hull is inline, and a type of its own.
type Hull struct {
	// +permission-verb:"example.com/keel"
	// +permission-excluded
	Keel string `json:"keel"`
}

// Name is a name. A field replaces its verb and not its barrier.
// +permission-verb:"example.com/anyName"
// +permission-excluded-when:`self == ""`
type Name string

// Sailor is a struct with a verb.
// +permission-verb:"example.com/sailor"
type Sailor struct {
	Rank string `json:"rank"`
}

// Port is a name of a name.
// +permission-verb:"example.com/port"
type Port Harbour

// Harbour has a barrier.
// +permission-excluded
type Harbour string

// Sail is declared from another struct.
type Sail Sailor

// Flag is an alias.
// +permission-verb:"example.com/flag"
type Flag = string
