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
)

// replica is one place for a fieldperm-webhook: an address, and what runs there.
type replica struct {
	// name is that of its log and of the note for the watchdog.
	name string
	port int
	// run is nil where nothing runs.
	run *process
}

// process is a run of fieldperm-webhook.
type process struct {
	cmd *exec.Cmd
	// done is closed when it has ended, for whatever reason.
	done chan struct{}
}

func (r *replica) url() string { return fmt.Sprintf("https://127.0.0.1:%d", r.port) }

// LaunchReplica starts one fieldperm-webhook and does not wait for it. The first one is number 0.
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
		// The balancer goes elsewhere by itself, and without one there is nowhere to go.
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
	// Without an address that endpoints may hold, nothing says where all API servers are.
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
	// Out of the terminal's foreground group: Ctrl-C ends this program, which then ends fieldperm.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%s: %w", r.name, err)
	}
	p := &process{cmd: cmd, done: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // What it says is in the log.
		close(p.done)
	}()
	r.run = p
	if err := os.WriteFile(filepath.Join(s.dir, "pids", r.name), []byte(strconv.Itoa(cmd.Process.Pid)+"\n"), 0o600); err != nil {
		return fmt.Errorf("%s: %w", r.name, err)
	}
	return nil
}

// AwaitReplica waits until /readyz says so, and not longer than it lives.
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

// StopReplica ends one fieldperm-webhook, which may be frozen or may have been killed before.
func (s *Stack) StopReplica(number int) error {
	r := s.replicas[number]
	if r.run == nil {
		return nil
	}
	p := r.run
	r.run = nil
	// Both fail where it has ended.
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	_ = p.cmd.Process.Signal(syscall.SIGCONT)
	select {
	case <-p.done:
		return nil
	case <-time.After(stopTimeout):
	}
	_ = p.cmd.Process.Kill()
	<-p.done
	return fmt.Errorf("%s: did not end within %s and was killed", r.name, stopTimeout)
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

// ReplicaURL is where one fieldperm-webhook listens, balancer or not.
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

// Replicas returns how many there are.
func (s *Stack) Replicas() int { return len(s.replicas) }

func (s *Stack) replicaLog(r *replica) string { return filepath.Join(s.dir, r.name+".log") }

// replicaName is that of the only one where there is one.
func replicaName(number int) string {
	if number == 0 {
		return "fieldperm-webhook"
	}
	return strings.Join([]string{"fieldperm-webhook", strconv.Itoa(number + 1)}, "-")
}
