package main

import (
	"encoding/json"
	"net/http"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// teams is an authorizer of a third party that returns conditions, in the form of the merged text of KEP-5681: settings may be created if they
// have the label of a team. It is asked before the authorizers that return none.
const teams = `- type: Webhook
  name: teams
  webhook:
    authorizedTTL: 10s
    unauthorizedTTL: 10s
    timeout: 3s
    subjectAccessReviewVersion: v1
    matchConditionSubjectAccessReviewVersion: v1
    failurePolicy: NoOpinion
    connectionInfo: {type: KubeConfigFile, kubeConfigFile: %q}
    conditionsEndpointKubeConfigContext: conditions
    authorizationConditionsReviewVersion: v1alpha1
    conditionsDialect: conditionSetChain
    matchConditions:
    - expression: has(request.resourceAttributes) && request.resourceAttributes.namespace == 'conditions'
    - expression: request.resourceAttributes.verb == 'create' && request.resourceAttributes.resource == 'configmaps' && request.user == 'vera'
`

// writeTeams writes the kubeconfig of the authorizer, with a context for each of its endpoints.
func writeTeams(file, address string, ca []byte) error {
	config := clientcmdapi.NewConfig()
	for _, name := range []string{"authorize", "conditions"} {
		config.Clusters[name] = &clientcmdapi.Cluster{Server: "https://" + address + "/teams/" + name, CertificateAuthorityData: ca}
		config.Contexts[name] = &clientcmdapi.Context{Cluster: name}
	}
	config.CurrentContext = "authorize"
	return clientcmd.WriteToFile(*config, file)
}

// team is a condition of the authorizer.
type team struct {
	ID          string `json:"id"`
	Effect      string `json:"effect"`
	Condition   string `json:"condition"`
	Description string `json:"description,omitempty"`
}

type teamSet struct {
	AuthorizerName string `json:"authorizerName"`
	ConditionsType string `json:"conditionsType"`
	Conditions     []team `json:"conditions"`
}

// authorizeTeams answers a SubjectAccessReview with a condition, if the caller handles conditions.
func authorizeTeams(w http.ResponseWriter, r *http.Request) {
	var review struct {
		authorizationv1.SubjectAccessReview
		Spec struct {
			authorizationv1.SubjectAccessReviewSpec
			ConditionalAuthorization *struct{ Mode string } `json:"conditionalAuthorization"`
		} `json:"spec"`
	}
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, "no SubjectAccessReview", http.StatusBadRequest)
		return
	}
	status := map[string]any{"allowed": false}
	if review.Spec.ConditionalAuthorization != nil {
		red := team{ID: "team-red", Effect: "Allow", Condition: "red", Description: "settings of the team red"}
		status["conditionSetChain"] = []teamSet{{AuthorizerName: "teams", ConditionsType: "demo.example.com/team", Conditions: []team{red}}}
	}
	respond(w, map[string]any{"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "status": status})
}

// evaluateTeams answers an AuthorizationConditionsReview: is one of the conditions the team of the object?
func evaluateTeams(w http.ResponseWriter, r *http.Request) {
	var review struct {
		Request struct {
			ConditionSetChain []teamSet `json:"conditionSetChain"`
			Object            struct {
				Metadata struct {
					Labels map[string]string `json:"labels"`
				} `json:"metadata"`
			} `json:"object"`
		} `json:"request"`
	}
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, "no AuthorizationConditionsReview", http.StatusBadRequest)
		return
	}
	allowed := false
	for _, set := range review.Request.ConditionSetChain {
		for _, c := range set.Conditions {
			allowed = allowed || c.Condition == review.Request.Object.Metadata.Labels["team"]
		}
	}
	respond(w, map[string]any{
		"apiVersion": "authorization.k8s.io/v1alpha1", "kind": "AuthorizationConditionsReview", "response": map[string]any{"allowed": allowed},
	})
}

func respond(w http.ResponseWriter, review any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review) // The client may have closed the connection.
}
