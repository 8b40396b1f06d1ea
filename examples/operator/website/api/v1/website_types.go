package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// WebsiteSpec is the website that its developers want. A marker gives a field its verb: granular:image, granular:scale.
type WebsiteSpec struct {
	// image is the image of the server.
	// +permission-verb:"image"
	// +kubebuilder:validation:MinLength=1
	Image string `json:"image"`

	// replicas is the number of servers.
	// +permission-verb:"scale"
	// +kubebuilder:default=1
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// budgets are the budgets of the teams that share the website.
	// +optional
	Budgets Budgets `json:"budgets,omitempty"`

	// public exposes the website to the internet. Setting it needs its own verb, whatever else the user holds.
	// +permission-verb:"web.example.com/exposure"
	// +permission-excluded-when:"self == true"
	// +optional
	Public bool `json:"public,omitempty"`
}

// Budgets are budgets by team. The key of the map is a parameter, so that each team has a verb: granular:web.example.com/budget(red).
// +permission-verb:"web.example.com/budgets"
// +permission-parameter-source:"team"
type Budgets map[string]Budget

// Budget is what a team may spend.
// +permission-verb:"web.example.com/budget"
// +permission-parameterized-by:"team"
type Budget int32

// WebsiteStatus is what the operator reports. Every kind has verbs for it: granular:status, granular:condition(Ready).
type WebsiteStatus struct {
	// replicas is the number of servers.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`

	// conditions has Ready.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Website is a website.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas
type Website struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   WebsiteSpec   `json:"spec,omitempty"`
	Status WebsiteStatus `json:"status,omitempty"`
}

// WebsiteList is a list of websites.
// +kubebuilder:object:root=true
type WebsiteList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Website `json:"items"`
}
