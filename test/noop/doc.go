// Package noop is the least webhook that Go serves: the floor that the cost of fieldperm-webhook is compared with. The command cmd serves
// it in a process of its own. It decides nothing, so only tests and benchmarks may use it.
//
// What it does: net/http with HTTP/2 and its defaults, TLS with the certificate that it is given, and a request for the certificate of the
// client, as k8s.io/apiserver makes it. It reads the whole body into one buffer of the announced length. To an AdmissionReview it answers an
// allowed one with the UID, to a SubjectAccessReview an allowed one, both as long as those of fieldperm-webhook are.
//
// What it does not do: verify the certificate of the client, limit requests, bodies, memory or time, decode anything, log, count, trace, or
// follow anything in the background. A webhook that does any of this costs more.
package noop
