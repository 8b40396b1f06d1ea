package refusal

// Origin is the component that refused.
type Origin string

// The origins.
const (
	// FromFieldperm is a decision of fieldperm: 403.
	FromFieldperm Origin = "fieldperm"
	// FromAuthorization is a decision of kube-apiserver's authorizers: 403, before fieldperm looks at the object.
	FromAuthorization Origin = "authorization"
	// FromFailure is an error of fieldperm, or of its call: 500, 503 or 429. It is no decision.
	FromFailure Origin = "failure"
)

// Refusal is what a refused write was told. A field that the text does not say is zero.
type Refusal struct {
	Origin Origin `json:"origin"`
	// Webhook is the webhook that refused, as granular.fieldperm.dev.
	Webhook string `json:"webhook,omitempty"`
	// Resource is the resource as an API server writes it: deployments.apps, deployments.apps/scale.
	Resource  string `json:"resource,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	// Namespaced is false for a request at the cluster scope, and nil if the text does not say.
	Namespaced *bool    `json:"namespaced,omitempty"`
	Name       string   `json:"name,omitempty"`
	User       string   `json:"user,omitempty"`
	Groups     []string `json:"groups,omitempty"`
	// Verb is the action: "update", "connect to", or the verb of the request at kube-apiserver.
	Verb string `json:"verb,omitempty"`
	// Field is the path of the first change that is not covered. FieldCut means that only its beginning is known.
	Field    string `json:"field,omitempty"`
	FieldCut bool   `json:"fieldCut,omitempty"`
	// Change says what of the field changes: "order", "owners", "existence" for a new object, whose Field is ".", or "" for its value.
	Change string `json:"change,omitempty"`
	// Entry is the entry of managedFields that is the reason of changed owners.
	Entry string `json:"entry,omitempty"`
	// Needs are the verbs of which one would cover the change, from specific to general, or the generic verbs if the user was not let in.
	Needs []string `json:"needs,omitempty"`
	// OrGranular means that the marker with granular verbs would do as well as Needs.
	OrGranular bool `json:"orGranular,omitempty"`
	// NoVerb means that no verb covers the change.
	NoVerb bool `json:"noVerb,omitempty"`
	// MaxChecks is the number of checks after which the review ended.
	MaxChecks int `json:"maxChecks,omitempty"`
	// Advice is what to do instead.
	Advice string `json:"advice,omitempty"`
	Deny   *Deny  `json:"deny,omitempty"`
	// Unmet are conditions under which a verb would have been allowed. MoreUnmet counts those that are not named.
	Unmet     []Unmet `json:"unmet,omitempty"`
	MoreUnmet int     `json:"moreUnmet,omitempty"`
	// Unattributed means that a default of the API server, a mutating webhook or a policy made the change.
	Unattributed bool `json:"unattributed,omitempty"`
	// MoreChanges is the number of changes that were not looked at.
	MoreChanges int `json:"moreChanges,omitempty"`
	// NotProven means that fieldperm would let the user through if enforcement were proven.
	NotProven bool `json:"notProven,omitempty"`
	// LacksGet means that fieldperm would let the user through if the user held get.
	LacksGet bool `json:"lacksGet,omitempty"`
	// Reason is the rest of a message of kube-apiserver, or the text of a failure.
	Reason string `json:"reason,omitempty"`
	// Unclear means that the text after the names is not what fieldperm writes. Nothing is claimed of it.
	Unclear bool `json:"unclear,omitempty"`
}

// Deny is an explicit Deny of an authorizer.
type Deny struct {
	Authorizer string `json:"authorizer"`
	Verb       string `json:"verb"`
	Reason     string `json:"reason,omitempty"`
}

// Unmet is a condition that is not met: of the policy Name, or of an authorizer.
type Unmet struct {
	Name        string `json:"name"`
	Authorizer  string `json:"authorizer,omitempty"`
	Description string `json:"description,omitempty"`
}
