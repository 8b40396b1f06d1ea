package diagnosis

import "time"

// State is a state of the proof of enforcement.
type State string

// The states. The zero State is not one of them, and counts as Unknown.
const (
	Proven       State = "proven"
	NotProven    State = "notProven"
	Unknown      State = "unknown"
	NotInstalled State = "notInstalled"
)

// Status is the answer. As JSON its names are a contract: they do not change, and lists that may be empty are [] or left out.
type Status struct {
	State State `json:"state"`
	// Reason says why the state is what it is.
	Reason string `json:"reason"`
	// Since is the time of the last Event about the state, if the Event agrees with it.
	Since *time.Time `json:"since,omitempty"`

	Versions Versions `json:"versions"`
	// Servers are the addresses of the kube-apiservers.
	Servers []string `json:"kubeAPIServers"`
	// Proofs are what replicas of fieldperm-webhook say now.
	Proofs []Proof `json:"proofs"`
	// Answer is what the replica says now that one kube-apiserver asks who may write, nil if that is not known.
	Answer *Answer `json:"answer,omitempty"`
	// Events are the last Event of each replica.
	Events   []Event   `json:"events"`
	Webhooks []Webhook `json:"webhooks"`
	Replicas []Replica `json:"replicas"`
	Sources  []Source  `json:"sources"`
	// Causes are the most likely causes, if enforcement is not proven: three at most.
	Causes []Cause `json:"causes,omitempty"`
	// Missing is what could not be read.
	Missing []Missing `json:"missing,omitempty"`
}

// Versions are the versions of the programs, "" for one that is not known.
type Versions struct {
	Client string `json:"client"`
	// Webhook is that of the fieldperm-webhook that last wrote the webhook configuration for barriers.
	Webhook    string `json:"webhook,omitempty"`
	Kubernetes string `json:"kubernetes,omitempty"`
}

// Proof is what a replica of fieldperm-webhook says at /readyz/enforcement.
type Proof struct {
	// Replica is the namespace and the name of its Pod.
	Replica string `json:"replica"`
	State   State  `json:"state"`
	// Message is the cause of a state that is not Proven.
	Message string `json:"message,omitempty"`
}

// Answer is what kube-apiserver passes on of fieldperm's proof.
type Answer struct {
	State State `json:"state"`
	// Servers is how many kube-apiservers the proof covers.
	Servers int `json:"kubeAPIServers,omitempty"`
	// Barriers means that each of them has loaded the rules of all barriers.
	Barriers bool `json:"barriers,omitempty"`
	// Message is the cause of a state that is not Proven.
	Message string `json:"message,omitempty"`
}

// Event is an Event of fieldperm-webhook about the proof.
type Event struct {
	Replica string    `json:"replica"`
	Time    time.Time `json:"time"`
	State   State     `json:"state"`
	// Cause is a reason as in the metric fieldperm_enforcement_not_proven_reason.
	Cause   string `json:"cause"`
	Message string `json:"message"`
}

// Webhook is a webhook of a ValidatingWebhookConfiguration of fieldperm.
type Webhook struct {
	Configuration string `json:"configuration"`
	Name          string `json:"name"`
	FailurePolicy string `json:"failurePolicy"`
	// Calls is the Service or the URL.
	Calls string `json:"calls"`
	// Namespace is that of the Service, "" for a URL.
	Namespace string `json:"-"`
	// CA says until when the CA bundle is valid.
	CA string `json:"ca"`
	// Fault says why it does not enforce, "" if it does as far as the object shows.
	Fault string `json:"fault,omitempty"`
}

// Replica is a Pod of fieldperm-webhook.
type Replica struct {
	Name  string `json:"name"`
	Node  string `json:"node,omitempty"`
	Ready bool   `json:"ready"`
	Image string `json:"image"`
	// Restarts are those of its container.
	Restarts int32 `json:"restarts"`
	// OwnServerOnly means that it proves the kube-apiserver of its own connection only (--api-servers=own).
	OwnServerOnly bool `json:"ownServerOnly,omitempty"`
	// Message says why it is not ready.
	Message string `json:"message,omitempty"`
}

// Source is an object or an annotation that verbs, barriers or conditions come from.
type Source struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	// Compiled and Enforced are the conditions: True, False or Unknown.
	Compiled string `json:"compiled"`
	Enforced string `json:"enforced"`
	// Reason is that of Enforced, or of Compiled if it is not True.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// InForce says which form decides.
	InForce string `json:"inForce"`
}

// Cause is a cause that enforcement is not proven, and a command that shows or corrects it.
type Cause struct {
	Cause   string `json:"cause"`
	Command string `json:"command"`
}

// Missing is what could not be read.
type Missing struct {
	What  string `json:"what"`
	Error string `json:"error"`
}
