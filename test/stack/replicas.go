package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/fieldperm/fieldperm/test/cluster"
)

// replica is one place for a fieldperm-webhook: an address, and its process.
type replica struct {
	// name is the name of its log and of its note for the watchdog.
	name string
	port int
	// run is nil if no process is running.
	run *process
}

// process is a run of fieldperm-webhook.
type process struct {
	cmd *exec.Cmd
	// done is closed when the process has ended for any reason.
	done chan struct{}
}

func (r *replica) url() string { return fmt.Sprintf("https://127.0.0.1:%d", r.port) }

// LaunchReplica starts one fieldperm-webhook and does not wait until it is ready. The first one is number 0.
func (s *Stack) LaunchReplica(number int) error {
	r := s.replicas[number]
	if r.run != nil {
		return fmt.Errorf("%s: runs already: stop it first", r.name)
	}
	kubeconfig, err := s.ownKubeconfig()
	if err != nil {
		return err
	}
	args := []string{
		"serve", "--kubeconfig", kubeconfig,
		"--bind-address", "127.0.0.1", "--secure-port", strconv.Itoa(r.port),
		"--tls-cert-file", s.configuration(servingCert), "--tls-private-key-file", s.configuration(servingKey),
		"--client-ca-file", s.configuration(caFile),
		// The balancer notices a stopped replica by itself, and without a balancer there is no other replica.
		"--shutdown-delay-duration", "0s",
	}
	for _, source := range s.config.Schemas {
		args = append(args, "--permission-schemas", source)
	}
	args = append(args, "--uncovered-configuration", UncoveredConfiguration)
	if s.config.Topology == REST {
		args = append(args, "--webhook-configuration", Configuration)
	} else {
		args = append(args, "--webhook-url", s.url, "--webhook-ca-file", s.configuration(caFile))
		args = append(args, "--static-manifests", s.configuration("admission"), "--kube-apiserver-authorization-config", s.configuration("authorization-configuration.yaml"))
	}
	// Without an address that endpoints may have, fieldperm cannot find all API servers.
	if s.config.Address == "" {
		args = append(args, "--api-servers", "own")
	}
	log, err := os.OpenFile(s.replicaLog(r), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("%s: %w", r.name, err)
	}
	defer log.Close()                                                                                             //nolint:errcheck // Never written to by this process.
	cmd := exec.Command(filepath.Join(s.config.Bin, "fieldperm-webhook"), append(args, s.config.Arguments...)...) //nolint:gosec // Our own binary.
	cmd.Stdout, cmd.Stderr = log, log
	// The process is not in the terminal's foreground group: Ctrl-C ends this program, which then ends fieldperm.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%s: %w", r.name, err)
	}
	p := &process{cmd: cmd, done: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // The log has the reason.
		close(p.done)
	}()
	r.run = p
	if err := os.WriteFile(filepath.Join(s.dir, "pids", r.name), []byte(strconv.Itoa(cmd.Process.Pid)+"\n"), 0o600); err != nil {
		return fmt.Errorf("%s: %w", r.name, err)
	}
	return nil
}

// AwaitReplica waits until /readyz answers 200, or until the process ends.
func (s *Stack) AwaitReplica(ctx context.Context, number int) error {
	r := s.replicas[number]
	if r.run == nil {
		return fmt.Errorf("%s: does not run: start it first", r.name)
	}
	client, err := s.WebhookClient()
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	var last error
	err = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, readyTimeout, true, func(ctx context.Context) (bool, error) {
		select {
		case <-r.run.done:
			return false, errors.New("it has ended")
		default:
		}
		last = expectOK(ctx, client, r.url()+"/readyz")
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("%s: is not ready: %w; its log ends in:\n%s", r.name, errors.Join(err, last), s.ReplicaLogTail(number))
	}
	return nil
}

// StopReplica ends one fieldperm-webhook, which may be frozen or already killed.
func (s *Stack) StopReplica(number int) error {
	r := s.replicas[number]
	if r.run == nil {
		return nil
	}
	p := r.run
	r.run = nil
	// Both calls fail if the process has ended.
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	_ = p.cmd.Process.Signal(syscall.SIGCONT)
	select {
	case <-p.done:
		return nil
	case <-time.After(stopTimeout):
	}
	// The Go runtime answers this signal with the stacks of all goroutines.
	_ = p.cmd.Process.Signal(syscall.SIGQUIT)
	select {
	case <-p.done:
	case <-time.After(stopTimeout):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
	return fmt.Errorf("%s: did not end within %s and was killed: %s", r.name, stopTimeout, cluster.StacksOf(s.replicaLog(r)))
}

// SignalReplica sends a signal to one fieldperm-webhook: SIGKILL, SIGSTOP, SIGCONT.
func (s *Stack) SignalReplica(number int, signal syscall.Signal) error {
	r := s.replicas[number]
	if r.run == nil {
		return fmt.Errorf("%s: does not run: start it first", r.name)
	}
	if err := r.run.cmd.Process.Signal(signal); err != nil {
		return fmt.Errorf("%s: %w", r.name, err)
	}
	return nil
}

// ReplicaURL is the address of one fieldperm-webhook itself, also with a balancer.
func (s *Stack) ReplicaURL(number int) string { return s.replicas[number].url() }

// Running reports whether one fieldperm-webhook was started and has not ended.
func (s *Stack) Running(number int) bool {
	r := s.replicas[number]
	if r.run == nil {
		return false
	}
	select {
	case <-r.run.done:
		return false
	default:
		return true
	}
}

// Replicas returns the number of replicas.
func (s *Stack) Replicas() int { return len(s.replicas) }

func (s *Stack) replicaLog(r *replica) string { return filepath.Join(s.dir, r.name+".log") }

// replicaName is the name of a replica. The first replica has the name of a single one.
func replicaName(number int) string {
	if number == 0 {
		return "fieldperm-webhook"
	}
	return strings.Join([]string{"fieldperm-webhook", strconv.Itoa(number + 1)}, "-")
}
