// Package authn authenticates bearer tokens by an AuthenticationConfiguration (KEP-3331): the file that kube-apiserver reads with
// its flag of the same name. The file has the same meaning here. The package does not authenticate client certificates.
//
// k8s.io/apiserver verifies tokens and maps their claims. This package puts a configuration in force and replaces it. Start at
// Authenticator, then read generation (which a reload replaces) and Probe (whether an issuer answers with the name in the file).
//
// A token may carry a user or group of the system (system:masters, the name of a controller). fieldperm accepts it, as
// kube-apiserver does. An issuer that can write such a name into a token can do the same at kube-apiserver. A prefix or
// userValidationRules in the file exclude such names, and reading the file warns if it has neither. If fieldperm refused these
// names here, the same file would have two meanings.
//
// Errors and the log never contain a token, and of its claims only the issuer.
//
// The package must not import admission, fieldperm or a client of the cluster.
package authn
