// Package chain holds the tests of the whole system that concern two files: the AuthorizationConfiguration, which decides fieldperm's own
// checks (KEP-3221), and the AuthenticationConfiguration, which decides about the tokens of fieldperm's callers (KEP-3331). kube-apiserver
// itself is started with both. The tests have the build tag integration; start reading at scene.
//
// The webhook authorizers and the issuer of tokens run in process: they represent software of third parties.
package chain
