// Command demo plays stories on a local control plane: what users who hold granular verbs may change, and what not, with
// the real kubectl. The stories are data, in stories/: each has what an administrator applies, then the steps.
//
// Start reading at play in main.go, or at stories/01-marker.yaml. It must not import fieldperm's own packages: it uses
// what is built, as a user does.
package main
