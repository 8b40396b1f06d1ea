// Package rolemarkers reads the markers about roles in Go packages: +kubebuilder:rbac, as controller-gen reads them, and +fieldperm:rbac, which
// name the fields that a controller writes.
//
// Start at Read. It uses controller-tools' loader and generator, so that the plain role is controller-gen's, byte for byte. A comment that
// looks like a marker +fieldperm:rbac and is none is a fault: a marker that is silently ignored leaves update in the role. Every fault has
// its position. The package knows no kinds and no schema, and must not import these.
package rolemarkers
