// Package v1 is the version v1 of the group brewery.example.com, in which objects are stored. It has the markers of permission verbs, which
// openapi-gen writes into the OpenAPI document of the server.
//
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=com.example.brewery.v1
// +kubebuilder:object:generate=true
package v1
