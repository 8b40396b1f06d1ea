package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// The types of conditions, and the reasons that fieldperm gives.
const (
	// ConditionCompiled is True if the object of that generation has no fault. While it is False, the
	// last good form is in force, and if there is none, what is guarded is refused.
	ConditionCompiled = "Compiled"
	// ReasonCompiled: without a fault.
	ReasonCompiled = "Compiled"
	// ReasonUnmatched: it names what is not known yet, and holds once that is installed.
	ReasonUnmatched = "Unmatched"
	// ReasonFaulty: the message has the compiler's errors. Of Enforced: Compiled is False, so nothing is claimed.
	ReasonFaulty = "Faulty"

	// ConditionEnforced is never True while Compiled is False. It is True if every barrier of the object holds, also for holders of the generic permission: the
	// webhook has the rules, and each kube-apiserver has answered that it has loaded them.
	ConditionEnforced = "Enforced"
	// ReasonEnforced: all have.
	ReasonEnforced = "Enforced"
	// ReasonNotLoaded: a kube-apiserver has not. The message names it.
	ReasonNotLoaded = "NotLoaded"
	// ReasonNotProven: the webhook has the rules, but of some servers it is not known whether they have.
	ReasonNotProven = "NotProven"
	// ReasonNoBarriers: there is nothing to enforce on holders of the generic permission.
	ReasonNoBarriers = "NoBarriers"
	// ReasonNotDenying: the validationActions of the set let writes pass.
	ReasonNotDenying = "NotDenying"
	// ReasonNothingGuarded: no field of a known kind has one of the verbs of the set.
	ReasonNothingGuarded = "NothingGuarded"
	// ReasonNotApplied: the webhook lacks rules.
	ReasonNotApplied = "NotApplied"
	// ReasonNotKept: this fieldperm keeps no webhook configuration for barriers.
	ReasonNotKept = "NotKept"
	// ReasonOutOfReach: it names a resource that no barrier reaches.
	ReasonOutOfReach = "OutOfReach"
	// ReasonNewerVersion: a newer fieldperm wrote the webhook configuration, and says so itself.
	ReasonNewerVersion = "NewerVersion"

	// ConditionObserving is True if the webhook for observations has the rules of the object, and the last write of the status had the
	// counts of all verbs.
	ConditionObserving = "Observing"
	// ReasonObserving: kube-apiserver is to ask about the writes.
	ReasonObserving = "Observing"
	// ReasonIncomplete: kube-apiserver is to ask about the writes, but some were missed since the observation began. The message says how many or when.
	ReasonIncomplete = "Incomplete"
	// ReasonNotWritten: the API server refused the latest counts. They are in omitted.
	ReasonNotWritten = "NotWritten"
	// ReasonNotAuthenticated: the callers of fieldperm's webhooks are not authenticated, so that nothing is counted.
	ReasonNotAuthenticated = "NotAuthenticated"
)

// Status is what fieldperm says of an object.
type Status struct {
	// observedGeneration is the generation that the conditions are about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions are Compiled and Enforced.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// guardedFields says, for an UncoveredPermissionSet, how many fields of each resource its verbs guard: of the first
	// 64 resources that have any.
	// +optional
	// +listType=map
	// +listMapKey=group
	// +listMapKey=resource
	// +kubebuilder:validation:MaxItems=64
	GuardedFields []GuardedFields `json:"guardedFields,omitempty"`
}

// MaxGuardedFields is how many resources a status lists.
const MaxGuardedFields = 64

// GuardedFields counts the fields of one resource that are behind a barrier.
type GuardedFields struct {
	// group of the resource, empty for the core group.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Group string `json:"group"`
	// resource as the set names it: with its subresource, if it names that alone.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Resource string `json:"resource"`
	// fields that bear one of the verbs, in the version that has most. Fields below them are guarded as well.
	// +required
	// +kubebuilder:validation:Minimum=1
	Fields int32 `json:"fields"`
}
