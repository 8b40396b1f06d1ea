package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// PermissionObservation records the granular verbs that the writes of some users need, although these users hold the generic permission.
// It never refuses a write.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=observation,categories=fieldperm
// +kubebuilder:printcolumn:name="Actions",type=string,JSONPath=`.spec.actions`
// +kubebuilder:printcolumn:name="Observing",type=string,JSONPath=`.status.conditions[?(@.type=="Observing")].status`
// +kubebuilder:printcolumn:name="Writes",type=integer,JSONPath=`.status.writes`
// +kubebuilder:printcolumn:name="Refused",type=integer,JSONPath=`.status.refused`
// +kubebuilder:printcolumn:name="Since",type=date,JSONPath=`.status.since`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Observing")].message`
type PermissionObservation struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says whose writes are observed, and on which resources.
	// +required
	Spec PermissionObservationSpec `json:"spec"`
	// status is written by fieldperm.
	// +optional
	Status PermissionObservationStatus `json:"status,omitzero"`
}

// PermissionObservationSpec says whose writes are observed, and on which resources.
type PermissionObservationSpec struct {
	// subjects are the users whose writes are observed. A write is observed if one of them matches.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Subjects []Subject `json:"subjects"`
	// resources are the resources on which writes are observed; apiGroups ["*"] with resources ["*"] are all.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Resources []ResourceRule `json:"resources"`
	// actions say what else follows from an observed write. Audit adds the verbs to the audit event. Warn sends the client a warning if
	// the user could not make the write without the generic permission. The status is written in both cases.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:default={Audit}
	Actions []ObservationAction `json:"actions,omitempty"`
}

// ObservationAction is what follows from an observed write.
//
// +kubebuilder:validation:Enum=Audit;Warn
type ObservationAction string

// These are the actions.
const (
	ObservationAudit ObservationAction = "Audit"
	ObservationWarn  ObservationAction = "Warn"
)

// These are the limits of a status. What is above them is counted in omitted. The markers of the fields repeat the numbers.
const (
	MaxObservedResources  = 256
	MaxObservedVerbs      = 1024
	MaxObservedNamespaces = 16
	MaxObservationGaps    = 16
)

// These are the limits of the texts of a status, in characters. An API server refuses the whole status for one longer text.
const (
	MaxObservedUserLength      = 1024
	MaxObservedGroupLength     = 253
	MaxObservedResourceLength  = 253
	MaxObservedVerbLength      = 1408
	MaxObservedNamespaceLength = 63
	MaxObservedNameLength      = 253
	MaxGapReasonLength         = 256
)

// PermissionObservationStatus is what fieldperm has seen since it began to observe the specification in force. All replicas of fieldperm
// add to it. It is written at most every 30 seconds, and when a replica stops.
type PermissionObservationStatus struct {
	// observedGeneration is the generation that the status is about. A new generation starts the status anew.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions are Observing.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// since is the time since when kube-apiserver was to ask about these writes.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
	// updated is the time of the last write of the status.
	// +optional
	Updated *metav1.Time `json:"updated,omitempty"`
	// writes is the number of updates that were observed, dry runs included.
	// +optional
	Writes int64 `json:"writes,omitempty"`
	// refused is the number of observed updates that would have been refused without the generic permission. It is counted with the
	// action Warn only.
	// +optional
	Refused int64 `json:"refused,omitempty"`
	// denied is the number of updates that fieldperm refused, by a barrier or because the user held neither the generic permission nor the
	// verbs. They are not in writes, and their verbs are not counted: they do not show what a user may do.
	// +optional
	Denied int64 `json:"denied,omitempty"`
	// failed is the number of updates whose verbs could not be determined, for example because their kind has no valid schema.
	// +optional
	Failed int64 `json:"failed,omitempty"`
	// omitted is the number of uses of verbs that no row counts: the status is full, the name of the user is too long, or the rows could
	// not be written.
	// +optional
	Omitted int64 `json:"omitted,omitempty"`
	// gaps are the latest periods in which updates may have been missed.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Gaps []ObservationGap `json:"gaps,omitempty"`
	// resources are the users and resources of the observed updates, with the verbs that the updates need.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Resources []ObservedResource `json:"resources,omitempty"`
}

// ObservationGap is a period in which updates may have been missed.
type ObservationGap struct {
	// from is the begin of the period.
	// +required
	From metav1.Time `json:"from"`
	// to is the end of the period.
	// +required
	To metav1.Time `json:"to"`
	// reason says why updates may have been missed.
	// +required
	// +kubebuilder:validation:MaxLength=256
	Reason string `json:"reason"`
}

// ObservedResource is what one user wrote of one resource.
type ObservedResource struct {
	// user is the name of the user.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	User string `json:"user"`
	// group of the resource, empty for the core group.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Group string `json:"group"`
	// resource, with its subresource: deployments or deployments/scale.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Resource string `json:"resource"`
	// writes is the number of updates.
	// +required
	Writes int64 `json:"writes"`
	// verbs are the verbs that the updates need. Updates that change nothing need none.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1024
	Verbs []ObservedVerb `json:"verbs,omitempty"`
}

// ObservedVerb is the use of one verb.
type ObservedVerb struct {
	// verb is the most specific granular verb of a changed field.
	// +required
	// +kubebuilder:validation:MaxLength=1408
	Verb string `json:"verb"`
	// count is the number of updates that need the verb.
	// +required
	Count int64 `json:"count"`
	// firstTime is the time of the first of these updates.
	// +required
	FirstTime metav1.Time `json:"firstTime"`
	// lastTime is the time of the last of these updates.
	// +required
	LastTime metav1.Time `json:"lastTime"`
	// example is an object that one of the updates changed. Its name is empty if no changed object has a name short enough.
	// +required
	Example ObservedObject `json:"example"`
	// namespaces are those of the changed objects, at most 16.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=63
	Namespaces []string `json:"namespaces,omitempty"`
	// moreNamespaces says that there are namespaces which are not listed.
	// +optional
	MoreNamespaces bool `json:"moreNamespaces,omitempty"`
}

// ObservedObject names an object.
type ObservedObject struct {
	// namespace of the object, empty if it has none.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
	// name of the object, never shortened.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// PermissionObservationList is a list of them.
//
// +kubebuilder:object:root=true
type PermissionObservationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []PermissionObservation `json:"items"`
}
