// Package configfile reads AuthorizationConfiguration and AuthenticationConfiguration files. It reports every fault with its
// position and a cure.
//
// k8s.io/apiserver decides what is valid: its types, defaults, strict decoder and validation. This package adds the position of
// each fault, the cure, and the rules for fieldperm's own chain that kube-apiserver has in another place or not at all. Start at
// LoadAuthorization and LoadAuthentication. The package sends no request, and reads only the files that the configuration names. It
// imports no other package of fieldperm.
package configfile
