package v1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/fieldperm/fieldperm/generators/markers/testdata/api/shared"
)

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas
// +kubebuilder:storageversion
// +kubebuilder:resource:shortName=gg

// Gadget is a kind.
type Gadget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   GadgetSpec   `json:"spec"`
	Status GadgetStatus `json:"status,omitempty"`
}

// GadgetSpec is what the user wants.
type GadgetSpec struct {
	// Color is the color.
	// +permission-verb:"example.com/color"
	Color string `json:"color"`
	// Replicas has the verb scale already, from the scale subresource.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`
	// Dangerous needs its own verb to be set.
	// +permission-verb=example.com/danger
	// +permission-excluded-when=self == true
	// +optional
	Dangerous *bool `json:"dangerous,omitempty"`
	// Labels are those of KEP-3617.
	// +permission-verb:"example.com/labels"
	// +optional
	Labels map[LabelKey]LabelValue `json:"labels,omitempty"`
	// MoreLabels has the same keys and values, below a type of its own.
	// +optional
	MoreLabels LabelMap `json:"moreLabels,omitempty"`
	// LabelSets has maps as items.
	// +listType=atomic
	// +optional
	LabelSets []LabelMap `json:"labelSets,omitempty"`
	// Shelves has maps in a map.
	// +optional
	Shelves map[string]map[LabelKey]Shelf `json:"shelves,omitempty"`
	// Budgets has types of another package.
	// +permission-verb:"example.com/budget"
	// +optional
	Budgets map[shared.Team]shared.Budget `json:"budgets,omitempty"`
	// Parts are a list-map.
	// +permission-verb:"example.com/parts"
	// +listType=map
	// +listMapKey=name
	// +optional
	Parts []Part `json:"parts,omitempty"`
	// Own wins over its type, key by key.
	// +permission-verb:"example.com/ownVerb"
	// +optional
	Own Level2 `json:"own,omitempty"`
	// Type has the verb of its type.
	// +optional
	Type *Level2 `json:"type,omitempty"`
	// Level3 has what the types have on which it is based.
	// +optional
	Level3 Level3 `json:"level3,omitempty"`
	// Inlined is inline.
	Inlined `json:",inline"`
	// Approval is of another package.
	// +optional
	Approval shared.Approval `json:"approval,omitempty"`
	// Unmarked is of another package.
	// +optional
	Unmarked shared.Unmarked `json:"unmarked,omitempty"`
	// Anything is not pruned.
	// +permission-verb:"example.com/anything"
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Anything Anything `json:"anything,omitempty"`
	// Raw has a schema that controller-gen knows.
	// +permission-verb:"example.com/raw"
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Raw runtime.RawExtension `json:"raw,omitempty"`
	// Free has a schema of the author.
	// +permission-verb:"example.com/free"
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Free Anything `json:"free,omitempty"`
	// Size and Port are no structs in JSON.
	// +permission-verb:"example.com/size"
	// +optional
	Size resource.Quantity `json:"size,omitempty"`
	// +permission-verb:"example.com/port"
	// +optional
	Port intstr.IntOrString `json:"port,omitempty"`
	// Data is a string in JSON.
	// +permission-verb:"example.com/data"
	// +optional
	Data []byte `json:"data,omitempty"`
	// +permission-verb:"example.com/dotted"
	// +optional
	Dotted string `json:"dotted.name,omitempty"`
}

// LabelKey is a key for a label; it is a string.
// +permission-parameter-source:"label-key"
type LabelKey string

// LabelValue is a value in a label; it is a string.
// +permission-verb:"label"
// +permission-parameterized-by:"label-key"
// +permission-parameter-treatment:slash-delimited-prefix
type LabelValue string

// LabelMap is a map with a name.
type LabelMap map[LabelKey]LabelValue

// Shelf is a value of a map in a map.
// +permission-verb:"example.com/shelf"
// +permission-parameterized-by:"label-key"
// +permission-parameter-expression:"self.lowerAscii()"
type Shelf struct {
	// +optional
	Width int64 `json:"width,omitempty"`
}

// Part is an item.
// +permission-verb:"example.com/part"
// +permission-parameterized-by:"part"
type Part struct {
	// +permission-parameter-source:"part"
	Name PartName `json:"name"`
	// +k8s:openapi-gen=x-kubernetes-permission-verb:image
	// +k8s:openapi-gen=x-kubernetes-permission-parameterized-by:part
	// +optional
	Image string `json:"image,omitempty"`
}

// PartName is a name.
type PartName string

// Level2 has a verb and a barrier.
// +permission-verb:"example.com/level"
// +permission-excluded-when:"self == 'x'"
type Level2 string

// Level3 is declared as another type, and its own markers win.
// +permission-excluded
type Level3 Level2

// Inlined has a field with a marker.
type Inlined struct {
	// +permission-verb:"example.com/depth"
	// +optional
	Depth  int64 `json:"depth,omitempty"`
	Deeper `json:",inline"`
}

// Deeper is inline in an inlined type.
type Deeper struct {
	// +permission-verb:"example.com/height"
	// +optional
	Height int64 `json:"height,omitempty"`
}

// Anything is an object of any form.
type Anything struct{}

// GadgetStatus is what is.
type GadgetStatus struct {
	// +optional
	Replicas int32 `json:"replicas,omitempty"`
	// +permission-verb:"example.com/progress"
	// +optional
	Progress string `json:"progress,omitempty"`
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// +kubebuilder:object:root=true

// GadgetList is a list.
type GadgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Gadget `json:"items"`
}
