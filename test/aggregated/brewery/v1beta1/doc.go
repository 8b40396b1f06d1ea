// Package v1beta1 is the version v1beta1 of the group brewery.example.com. A Keg has the fields and the markers of v1. A Formula lacks a field,
// so that fieldperm cannot know what a write through either version loses.
//
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=com.example.brewery.v1beta1
// +kubebuilder:object:generate=true
package v1beta1
