// Package load holds fieldperm-webhook to its rate: so many reviews a second over HTTPS, with no wrong
// answer and bounded memory.
//
// The load is open: requests are sent when they are due, whatever became of those before, so that a
// webhook that stalls shows in the latencies. Only a kube-apiserver's own limit of requests in flight holds it back. The reviews are those of the scenarios in testdata, as they
// are and grown to 16 KB, and questions to /authorize; what is right is known of each beforehand. A
// real control plane answers the checks, most of which the webhook remembers. Start at TestLoad.
//
//	go test -tags integration ./test/load -args -duration=60s
package load
