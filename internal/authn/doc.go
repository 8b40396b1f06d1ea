// Package authn says who sends a bearer token, by an AuthenticationConfiguration (KEP-3331): the file
// that kube-apiserver reads by its flag of the same name, with the same meaning. Who presents a client
// certificate is not its matter.
//
// Verifying a token and mapping its claims is k8s.io/apiserver's. What is here is how a configuration
// comes into force and goes: Start at Authenticator, then generation for what is swapped when the file
// changes, and Probe for whether an issuer is there and is who the file says.
//
// A user or group of the system (system:masters, a controller's name) that a token carries is taken as
// kube-apiserver takes it: it counts. Whoever may write such a name into a token could do the same at
// kube-apiserver; the file keeps them out by a prefix or by userValidationRules, and reading it warns
// where it has neither. Refusing them here would give one file two meanings.
//
// No token, and of its claims only the issuer, is ever in an error or in the log.
//
// The package must not import admission, fieldperm or a client of the cluster.
package authn
