// Package server is fieldperm-webhook: options (flags), completed into a Server, which runs until its
// context ends.
//
// Start at Options, then Server.Run. Serving, TLS reload and health checks are k8s.io/apiserver's;
// what is decided is admission's. The package puts the parts together and decides nothing itself.
package server
