// Package gadgets has one finding of each rule.
//
// +groupName=example.com
package gadgets

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

type Gadget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   GadgetSpec   `json:"spec"`
	Status GadgetStatus `json:"status,omitempty"`
}

type GadgetSpec struct {
	// Good names a concept.
	// +permission-verb:"example.com/brightness"
	Good string `json:"good"`

	/* want `verb "example.com/Paint-color" is not lowerCamelCase: use "example.com/paintColor" \[verb-spelling\]` */ // +permission-verb:"example.com/Paint-color"
	Spelling string `json:"spelling"`

	/* want `verb "Bare" is not lowerCamelCase: use "bare" \[verb-spelling\]` */ // +permission-verb=Bare
	Bare string `json:"bare"`

	/* want `verb "example.com/enable" is an action: .* \[verb-not-a-noun\]` */ // +permission-verb:"example.com/enable"
	Action bool `json:"action"`

	/* want `verb "example.com/gadgetSize" is the path of its field ".size": .* \[verb-names-path\]` */ // +permission-verb:"example.com/gadgetSize"
	Size int `json:"size"`

	/* want `verb "example.com/gadgetTone" repeats the kind "Gadget" above its field: .* \[verb-repeats-ancestor\]` */ // +permission-verb:"example.com/gadgetTone"
	Tint int `json:"tint"`

	/* want `verb "frobnication" has no domain and is no well-known verb: give it a domain that you own, such as "example.com/frobnication", .* \[verb-not-registered\]` */ // +permission-verb:"frobnication"
	Unregistered int `json:"unregistered"`

	/* want `verb "storage.k8s.io/speed": domain "storage.k8s.io" is reserved: .* \[reserved-domain\]` */ // +permission-verb:"storage.k8s.io/speed"
	Reserved int `json:"reserved"`

	/* want `verb "example.org/speed": domain "example.org" is not of the API group "example.com": .* \[domain-not-of-group\]` */ // +permission-verb:"example.org/speed"
	Foreign int `json:"foreign"`

	/* want `verb "example.com/scale" is nearly the well-known "scale": .* \[verb-near-duplicate\]` */ // +permission-verb:"example.com/scale"
	Repeated int `json:"repeated"`

	Image string `json:"image"` // want `field "image" has no verb of its own: .* such as the well-known "image" \[power-by-name\]`

	Images int `json:"images"`

	Guarded Command `json:"command"`

	//fieldperm:lint disable=power-by-name a label of the user interface
	Script string `json:"script"`

	TokenSecretRef string `json:"tokenSecretRef"` //fieldperm:lint disable=power-by-name the controller checks it

	/* want `the suppression has no reason: .* \[suppression-invalid\]` */ //fieldperm:lint disable=power-by-name
	URL string `json:"url"` // want `field "url" has no verb of its own: .* \[power-by-name\]`

	/* want `the suppression: rule "power-by-nam" does not exist: use "power-by-name" \[suppression-invalid\]` */ //fieldperm:lint disable=power-by-nam a typo
	A int `json:"a"`

	/* want `the suppression: rule "verb-spelling" cannot be disabled: .* \[suppression-invalid\]` */ //fieldperm:lint disable=verb-spelling no
	B int `json:"b"`

	// Steps have verbs inside.
	// +permission-verb:"example.com/procedure"
	Steps []Step `json:"steps"` // want `list "steps" is atomic, so verb "example.com/delay" of its items has no effect: .* \[atomic-list-with-item-verb\]`

	// Members are a map by name.
	// +listType=map
	// +listMapKey=name
	// +permission-verb:"example.com/membership"
	Members []Step `json:"members"`

	// +permission-verb:"example.com/budget"
	/* want `parameter treatment "slash-delimited-prefx" is unknown: .* \[treatment-unknown\]` */ // +permission-parameter-treatment:slash-delimited-prefx
	/* want `no type or field of this package emits parameter "team": .* \[parameter-without-source\]` */ // +permission-parameterized-by:"team"
	Budget map[string]int `json:"budget"`

	// +permission-verb:"example.com/crew"
	/* want `parameter "person" is emitted, and no verb of this package takes it: .* \[source-without-user\]` */ // +permission-parameter-source:"person"
	Crew map[string]int `json:"crew"`

	/* want `marker "\+permission-excluded": neither the field "lonely" nor its type has a verb: .* \[marker-without-verb\]` */ // +permission-excluded
	Lonely bool `json:"lonely"`

	// The verb is that of the type.
	// +permission-excluded
	Barred Command `json:"barred"`

	/* want `marker "\+permision-verb" is unknown: write \+permission-verb \[marker-invalid\]` */ // +permision-verb:"example.com/wattage"
	Typo int `json:"typo"`

	/* want `marker "\+permission-verb" has no value: .* \[marker-invalid\]` */ // +permission-verb
	Empty int `json:"empty"`

	// +permission-verb:"example.com/twice"
	/* want `marker "\+permission-verb" is there twice: .* \[marker-twice\]` */ // +permission-verb:"example.com/twice"
	Twice int `json:"twice"`

	/* want `marker "\+permission-verb" is above a field of GadgetSpec that is not exported, .* \[marker-misplaced\]` */ // +permission-verb:"example.com/hidden"
	hidden int

	/* want `marker "\+permission-verb" is above a field of GadgetSpec that has the json tag "-", .* \[marker-misplaced\]` */ // +permission-verb:"example.com/gone"
	Gone int `json:"-"`

	/* want `marker "\+permission-verb" is above an inline field of GadgetSpec, .* \[marker-misplaced\]` */ // +permission-verb:"example.com/common"
	Common `json:",inline"`

	Last int `json:"last"` // +permission-verb:"example.com/last" // want `.* \[marker-invalid\]`
}

type Common struct {
	// +permission-verb:"example.com/shade"
	Shade string `json:"shade"`
}

// Command is what runs.
// +permission-verb:"command"
type Command string

// Step is one step.
type Step struct {
	Name string `json:"name"`
	// +permission-verb:"example.com/delay"
	Delay int `json:"delay"`
	// +permission-verb:"example.com/urgency"
	// +permission-excluded
	Force bool `json:"force"`
}

// Box is generic.
type Box[T any] struct {
	// +permission-verb:"example.com/content"
	Content T `json:"content"`
	// It contains itself.
	Inner *Box[T] `json:"inner"`
}

type GadgetStatus struct {
	Image string `json:"image"`
}

/* want `marker "\+permission-verb" is not above a type or a field, .* \[marker-misplaced\]` */ // +permission-verb:"example.com/nowhere"

func (Gadget) DeepCopy() {}
