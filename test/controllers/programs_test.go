//go:build controllers

package controllers

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"

	"github.com/fieldperm/fieldperm/test/cluster"
)

// binaries has fieldperm's commands, and controllers has kube-controller-manager and kube-scheduler. make test-controllers builds both.
const (
	binaries    = "../../bin"
	controllers = "../../bin/controllers"
)

// program is a running process.
type program struct {
	cmd  *exec.Cmd
	done chan struct{}
}

func (p *program) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(10 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

// startControllers starts kube-controller-manager and kube-scheduler and waits until both are healthy.
func (r *run) startControllers() {
	r.t.Helper()
	dir, plane := r.stack.Dir(), filepath.Join(r.stack.Cluster.Dir(), "kube-apiserver")
	must(r.t, signer(dir))
	must(r.t, os.WriteFile(filepath.Join(dir, "root-ca.crt"), r.stack.Admin().CAData, 0o600))
	r.launch("kube-controller-manager", "system:kube-controller-manager",
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
	r.launch("kube-scheduler", scheduler, "--kube-api-qps=500", "--kube-api-burst=1000", "--pod-max-in-unschedulable-pods-duration=10s")
}

// launch starts a program as a user, with the flags that both have.
func (r *run) launch(name, user string, arguments ...string) {
	r.t.Helper()
	identity, err := r.stack.User(user)
	must(r.t, err)
	port, err := cluster.FreePort()
	must(r.t, err)
	// The watchdog of the stack ends a noted process whose command line has the directory.
	arguments = append(arguments,
		"--kubeconfig="+identity.Kubeconfig, "--authentication-kubeconfig="+identity.Kubeconfig, "--authorization-kubeconfig="+identity.Kubeconfig,
		"--leader-elect=false", "--bind-address=127.0.0.1", "--secure-port="+strconv.Itoa(port),
		"--cert-dir="+filepath.Join(r.stack.Dir(), name), "--authorization-always-allow-paths=/healthz,/readyz,/livez", "--v=2",
	)
	log, err := os.Create(filepath.Join(r.dir, name+".log"))
	must(r.t, err)
	defer log.Close()
	cmd := exec.Command(filepath.Join(controllers, name), arguments...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append(os.Environ(), "GOGC=300")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	must(r.t, cmd.Start())
	p := &program{cmd: cmd, done: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // Its log has the reason.
		close(p.done)
	}()
	r.controllers = append(r.controllers, p)
	must(r.t, os.WriteFile(filepath.Join(r.stack.Dir(), "pids", name), []byte(fmt.Sprintln(cmd.Process.Pid)), 0o600))
	address := fmt.Sprintf("https://127.0.0.1:%d/healthz", port)
	await(r.t, name+" is healthy", patience, func(ctx context.Context) (bool, string) {
		select {
		case <-p.done:
			r.t.Fatalf("%s has ended:\n%s", name, cluster.LogTail(log.Name()))
		default:
		}
		err := healthy(ctx, address)
		return err == nil, fmt.Sprint(err)
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
