// Package issuer is an OpenID Connect issuer in process, for tests and for the demo: TLS with a CA of its own, a discovery document, a set
// of keys that rotates, an endpoint for distributed claims, and tokens with any claims. It can give wrong, slow or broken answers, and it
// can be stopped and started again on its port.
//
// The issuer has no login: Sign makes a token of the claims that it is given. Start at Start. A program that is shipped must not import
// this package.
package issuer
