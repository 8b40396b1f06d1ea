// Package chain holds the tests of the whole system that are about two files: the AuthorizationConfiguration that
// fieldperm's own checks go through (KEP-3221), and the AuthenticationConfiguration of whoever calls it (KEP-3331).
// kube-apiserver itself is started with both. They have the build tag integration; start reading at scene.
//
// The webhook authorizers and the issuer of tokens are in process: they stand for other people's software.
package chain
