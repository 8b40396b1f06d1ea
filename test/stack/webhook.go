package stack

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/cert"
)

const (
	// readyTimeout bounds fieldperm's start.
	readyTimeout = 60 * time.Second
	// stopTimeout is how long fieldperm may take to end by itself before it is killed.
	stopTimeout = 10 * time.Second
	// logTailLines is how much of a log an error shows.
	logTailLines = 20
)

// process is a run of fieldperm-webhook.
type process struct {
	cmd *exec.Cmd
	// done is closed when it has ended, for whatever reason.
	done chan struct{}
}

// StartWebhook starts fieldperm-webhook, after StopWebhook, and returns when it is ready.
func (s *Stack) StartWebhook(ctx context.Context) error {
	if s.webhook != nil {
		return errors.New("fieldperm-webhook: runs already: stop it first")
	}
	own, err := s.User(User)
	if err != nil {
		return err
	}
	args := []string{
		"serve", "--kubeconfig", own.Kubeconfig,
		"--bind-address", "127.0.0.1", "--secure-port", s.url[strings.LastIndex(s.url, ":")+1:],
		"--tls-cert-file", s.configuration(servingCert), "--tls-private-key-file", s.configuration(servingKey),
		"--client-ca-file", s.configuration(caFile),
		// Nobody has to learn to go elsewhere: there is one.
		"--shutdown-delay-duration", "0s",
	}
	for _, source := range s.config.Schemas {
		args = append(args, "--permission-schemas", source)
	}
	log, err := os.OpenFile(s.webhookLog(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("fieldperm-webhook: %w", err)
	}
	defer log.Close()                                                                                             //nolint:errcheck // Never written to by this process.
	cmd := exec.Command(filepath.Join(s.config.Bin, "fieldperm-webhook"), append(args, s.config.Arguments...)...) //nolint:gosec // Our own binary.
	cmd.Stdout, cmd.Stderr = log, log
	// Out of the terminal's foreground group: Ctrl-C ends this program, which then ends fieldperm.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("fieldperm-webhook: %w", err)
	}
	p := &process{cmd: cmd, done: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // What it says is in the log.
		close(p.done)
	}()
	s.webhook = p
	if err := os.WriteFile(filepath.Join(s.dir, "pids", "fieldperm-webhook"), []byte(strconv.Itoa(cmd.Process.Pid)+"\n"), 0o600); err != nil {
		return fmt.Errorf("fieldperm-webhook: %w", err)
	}
	if err := s.ready(ctx); err != nil {
		return fmt.Errorf("fieldperm-webhook: is not ready: %w; its log ends in:\n%s", err, s.WebhookLogTail())
	}
	return nil
}

// StopWebhook ends fieldperm-webhook. Nothing happens if it does not run.
func (s *Stack) StopWebhook() error {
	if s.webhook == nil {
		return nil
	}
	p := s.webhook
	s.webhook = nil
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // It may have ended.
	select {
	case <-p.done:
		return nil
	case <-time.After(stopTimeout):
	}
	_ = p.cmd.Process.Kill()
	<-p.done
	return fmt.Errorf("fieldperm-webhook: did not end within %s and was killed", stopTimeout)
}

// WebhookLogTail returns the last lines of fieldperm-webhook's log.
func (s *Stack) WebhookLogTail() string { return tail(s.webhookLog()) }

// APIServerLogTail returns the last lines of kube-apiserver's log.
func (s *Stack) APIServerLogTail() string {
	return tail(filepath.Join(s.Cluster.Dir(), "kube-apiserver.log"))
}

func tail(file string) string {
	content, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	return strings.Join(lines[max(0, len(lines)-logTailLines):], "\n")
}

func (s *Stack) webhookLog() string { return filepath.Join(s.dir, "fieldperm-webhook.log") }

// ready waits until /readyz says so, and not longer than fieldperm lives.
func (s *Stack) ready(ctx context.Context) error {
	client, err := s.WebhookClient()
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	var last error
	err = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, readyTimeout, true, func(ctx context.Context) (bool, error) {
		select {
		case <-s.webhook.done:
			return false, errors.New("it has ended")
		default:
		}
		last = expectOK(ctx, client, s.url+"/readyz")
		return last == nil, nil
	})
	if err != nil {
		return errors.Join(err, last)
	}
	return nil
}

func expectOK(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, 4096))
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s: %s", url, response.Status, strings.TrimSpace(string(body)))
	}
	return nil
}

// WebhookURL is where fieldperm listens, without a slash at the end.
func (s *Stack) WebhookURL() string { return s.url }

// WebhookClient returns a client that fieldperm takes for the kube-apiserver.
func (s *Stack) WebhookClient() (*http.Client, error) {
	roots, err := cert.NewPool(s.configuration(caFile))
	if err != nil {
		return nil, fmt.Errorf("stack: %w", err)
	}
	own, err := tls.LoadX509KeyPair(s.configuration(clientCert), s.configuration(clientKey))
	if err != nil {
		return nil, fmt.Errorf("stack: %w", err)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, Certificates: []tls.Certificate{own}}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}, Timeout: 30 * time.Second}, nil
}
