// Package v1alpha1 holds fieldperm's own kinds, group fieldperm.dev: PermissionSchema, an
// administrator's permission verbs for the fields of a kind, and UncoveredPermissionSet, the verbs
// that generic permissions do not cover (KEP-3617, final revision). Both are file formats as well.
// Their CustomResourceDefinitions in config/crd and the copying here are generated from the types.
// The package has types only and imports nothing of fieldperm.
//
// +groupName=fieldperm.dev
// +kubebuilder:object:generate=true
package v1alpha1
