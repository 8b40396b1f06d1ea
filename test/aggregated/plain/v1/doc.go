// Package v1 has the types of brewery's v1 with markers of fieldperm's own form.
//
// +k8s:openapi-gen=true
package v1
