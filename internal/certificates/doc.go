// Package certificates maintains the serving certificate of a fieldperm that runs in the cluster. A Secret, shared by all replicas,
// has a CA and a certificate signed by it. Both are renewed long before they expire. The webhook configuration trusts a CA before
// it is used.
//
// Start at Keeper. material.renew is a pure function that decides which certificates must be renewed. Keeper.reconcile does it in this order:
// Secret, then caBundle, then the listeners.
//
// The client certificate that kube-apiserver presents to fieldperm does not come from here. It is a file on the control plane,
// signed by a CA whose key fieldperm does not have.
package certificates
