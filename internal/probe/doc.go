// Package probe finds out whether barriers are enforced. For each endpoint that writes a field behind a barrier, it sends a dry-run
// write to every kube-apiserver, and checks that fieldperm's webhook for barriers refuses the write by that barrier.
//
// Start at Probes, which decides when a probe is due and stores the results. Then read write.go (the write that is sent) and
// Objects (the objects that are known to exist, because the webhooks received requests about them). Of fieldperm the package
// imports interlock, allowlist, refresh, sampleobject and schema/endpoint. The server decides which barriers to probe and reports the
// results.
package probe
