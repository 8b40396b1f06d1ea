// Package issuer is an OpenID Connect issuer in process, for tests and for the demo: TLS by a CA of its
// own, a discovery document, a set of keys that rotates, an endpoint for distributed claims, and
// tokens with any claims at all. It can lie, be slow, be broken, be stopped, and be started again on
// its port.
//
// Nobody logs in here: Sign makes a token of whatever claims it is given. Start at Start. Nothing of
// this package must be reachable from a program that is shipped.
package issuer
