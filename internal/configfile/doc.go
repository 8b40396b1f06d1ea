// Package configfile reads AuthorizationConfiguration and AuthenticationConfiguration files and says
// of everything that is wrong with one where it stands and what to write instead.
//
// The judging is k8s.io/apiserver's: its types, defaults, strict decoder and validation. What is here
// is the place of each fault in the file, the cure, and the rules that hold for fieldperm's own chain
// and that kube-apiserver has elsewhere or not at all. Start at LoadAuthorization and
// LoadAuthentication. Nothing is asked over the network, and of files only those are read that the
// configuration names. The package imports none of ours.
package configfile
