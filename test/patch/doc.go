// Package patch measures what fieldperm adds to a PATCH of a Deployment through a real kube-apiserver, next to no webhook, a
// ValidatingAdmissionPolicy and a webhook that does nothing (noop).
//
// All variants run at the same time on control planes with equal Deployments, and take turns in short slices of a random order, so that a
// machine that is busy with something else slows them alike. The ratio of two variants is the median of their ratios within a round. The
// test checks each answer, and counts the requests that one write causes between kube-apiserver and fieldperm. Start reading at
// TestW1W2P8P9_APatchCausesTheRequestsThatItNeeds; variants_test.go lists the variants and what each of them must answer.
//
//	go test -tags integration -v ./test/patch -args -rounds=200
package patch
