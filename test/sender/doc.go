// Package sender acts as the kube-apiservers that call fieldperm-webhook: it sends reviews and questions at a rate, over a few connections, with a
// limit of requests under way, and reads the answers. A request is sent once.
//
// The load is open: a request is sent when it is due, even if earlier ones have no answer yet, so that a webhook that stalls shows in the
// latencies. Start at Sender.Run. The package knows no test: what an answer means for a request is up to its caller, or to Result.
package sender
