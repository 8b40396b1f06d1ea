// Package v1 is an API.
// +kubebuilder:object:generate=true
// +groupName=example.com
package v1
