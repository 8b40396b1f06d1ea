// Command demo plays stories on a local control plane: they show which changes users with granular verbs can make, and which not, with the
// real kubectl. The stories are data, in stories/: each has the objects that an administrator applies, then the steps.
//
// Start reading at play in main.go, or at stories/01-marker.yaml. It must not import fieldperm's own packages: it uses the built commands,
// as a user does.
package main
