// Package config holds what is applied to a cluster, for kustomize, and what is put on a control plane.
//
//	base                   fieldperm in the cluster, without a certificate: use one of the overlays
//	self-managed           overlay: fieldperm makes and renews its certificate
//	cert-manager           overlay: cert-manager does
//	certificates-by-file   overlay: a Secret of yours, and its CA in the file ca.crt
//	managed                overlay: self-managed, for control planes that only take admission webhooks
//	static                 fieldperm beside each kube-apiserver: kubeadm, kind, k3s
//	crd                    PermissionSchema and UncoveredPermissionSet
//
// charts/fieldperm renders the same objects, which a test holds. What the generators write is copied
// into both.
package config

//go:generate go run ./generate
