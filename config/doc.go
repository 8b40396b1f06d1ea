// Package config has the objects to apply to a cluster with kustomize, and the files for a control plane.
//
//	base                   fieldperm in the cluster, without a certificate: use one of the overlays
//	self-managed           overlay: fieldperm makes and renews its certificate
//	cert-manager           overlay: cert-manager makes and renews the certificate
//	certificates-by-file   overlay: a Secret of yours, and its CA in the file ca.crt
//	managed                overlay: self-managed, for control planes that only accept admission webhooks
//	static                 fieldperm beside each kube-apiserver: kubeadm, kind, k3s
//	crd                    PermissionSchema and UncoveredPermissionSet
//
// charts/fieldperm renders the same objects; a test compares them. The output of the generators is copied to both.
package config

//go:generate go run ./generate
