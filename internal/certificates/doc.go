// Package certificates keeps the serving certificate of a fieldperm that runs in the cluster: a CA and
// a certificate of it in a Secret, shared by all replicas, renewed long before they expire, and
// trusted by the webhook configuration before they are used.
//
// Start at Keeper. What is due is decided by material.renew, which is pure; Keeper.reconcile is the
// order in which it happens: Secret, then caBundle, then the listeners.
//
// The certificate that kube-apiserver shows to fieldperm does not come from here: it is a file on the
// control plane, of a CA that fieldperm has no key of.
package certificates
