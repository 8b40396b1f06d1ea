//go:build controllers

package controllers

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"

	"github.com/fieldperm/fieldperm/test/controllers/trial"
)

// startControllers starts kube-controller-manager and kube-scheduler and waits until both are healthy.
func startControllers(r *trial.Run) {
	r.T.Helper()
	dir, plane := r.Stack.Dir(), filepath.Join(r.Stack.Cluster.Dir(), "kube-apiserver")
	trial.Must(r.T, signer(dir))
	trial.Must(r.T, os.WriteFile(filepath.Join(dir, "root-ca.crt"), r.Admin.CAData, 0o600))
	launch(r, "kube-controller-manager", "system:kube-controller-manager",
		"--use-service-account-credentials",
		"--controllers=*,bootstrap-signer-controller,token-cleaner-controller",
		"--service-account-private-key-file="+filepath.Join(plane, "sa-signer.key"),
		"--root-ca-file="+filepath.Join(dir, "root-ca.crt"),
		"--cluster-signing-cert-file="+filepath.Join(dir, "signer.crt"),
		"--cluster-signing-key-file="+filepath.Join(dir, "signer.key"),
		"--allocate-node-cidrs", "--cluster-cidr=10.244.0.0/16", "--service-cluster-ip-range=10.96.0.0/16",
		"--enable-hostpath-provisioner",
		// Each controller has a client of its own with this limit.
		"--kube-api-qps=500", "--kube-api-burst=1000",
		// What takes minutes takes seconds.
		"--node-monitor-period=1s", "--node-monitor-grace-period=40s", "--node-startup-grace-period=40s", "--node-eviction-rate=10",
		"--terminated-pod-gc-threshold=1000", "--horizontal-pod-autoscaler-sync-period=2s", "--pvclaimbinder-sync-period=3s",
		"--attach-detach-reconcile-sync-period=5s", "--resource-quota-sync-period=10s", "--min-resync-period=2m",
	)
	launch(r, "kube-scheduler", scheduler, "--kube-api-qps=500", "--kube-api-burst=1000", "--pod-max-in-unschedulable-pods-duration=10s")
}

// launch starts one of the two as a user, with the flags that both have. make test-controllers builds them.
func launch(r *trial.Run, name, user string, arguments ...string) {
	r.T.Helper()
	port, kubeconfig := r.Port(), r.User(user).Kubeconfig
	r.Launch(trial.Program{
		Name: name, Path: trial.Root(r.T, "bin", "controllers", name),
		Args: append(arguments,
			"--kubeconfig="+kubeconfig, "--authentication-kubeconfig="+kubeconfig, "--authorization-kubeconfig="+kubeconfig,
			"--leader-elect=false", "--bind-address=127.0.0.1", "--secure-port="+strconv.Itoa(port),
			"--cert-dir="+filepath.Join(r.Stack.Dir(), name), "--authorization-always-allow-paths=/healthz,/readyz,/livez", "--v=2",
		),
		Health: fmt.Sprintf("https://127.0.0.1:%d/healthz", port),
	})
}

// signer writes the authority with which kube-controller-manager signs certificates.
func signer(dir string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	certificate, err := cert.NewSelfSignedCACert(cert.Config{CommonName: "kubernetes-signer"}, key)
	if err != nil {
		return err
	}
	encoded, err := cert.EncodeCertificates(certificate)
	if err != nil {
		return err
	}
	private, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "signer.crt"), encoded, 0o600); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "signer.key"), private, 0o600)
}
