// Package load checks the rate of fieldperm-webhook: a number of reviews per second over HTTPS, with no wrong answer and bounded memory.
//
// The load is open: each request is sent when it is due, even if earlier ones have no answer yet, so that a webhook that stalls shows in
// the latencies. Only the limit of requests in flight, which a kube-apiserver also has, holds it back. The reviews are the reviews of the
// scenarios in testdata, in their original size and enlarged to 16 KB, and questions to /authorize. The correct answer of each request is
// known before it is sent. A real control plane answers the checks, but the webhook has most decisions in its cache. Start at TestLoad. TestFloor compares
// the cost of a call with that of a webhook that does nothing.
//
//	go test -tags integration ./test/load -args -duration=60s
package load
