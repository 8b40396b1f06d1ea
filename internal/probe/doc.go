// Package probe finds out whether barriers hold: for each endpoint that writes a field behind one it sends a dry-run
// write to every kube-apiserver, and sees that fieldperm's webhook for barriers refuses it by that barrier.
//
// Start at Probes, which says when a probe is due and what came of it, then write.go (what is written) and Objects (the
// objects that are known to exist, because the webhooks were asked about them). Of fieldperm the package imports
// interlock, discovery, refresh, sample and schema/endpoint; what is to be probed and who is told is the server's.
package probe
