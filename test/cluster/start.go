package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

const (
	// startTimeout bounds the start of each of the two processes, beside the context of Start.
	startTimeout = 60 * time.Second

	// stopTimeout is how long each of them may take to end by itself before it is killed.
	stopTimeout = 15 * time.Second

	// logTailLines is how much of a log an error shows.
	logTailLines = 20
)

// start brings up what Stop takes down again.
func (c *Cluster) start(ctx context.Context, config Config) error {
	for _, name := range []string{"bin", "pids", "etcd", "kube-apiserver", "kubeconfigs", "home"} {
		if err := os.Mkdir(filepath.Join(c.dir, name), 0o700); err != nil {
			return fmt.Errorf("control plane: %w", err)
		}
	}
	plane, err := c.describe(config)
	if err != nil {
		return err
	}
	c.plane = plane
	if err := c.run(ctx); err != nil {
		return err
	}
	admin, err := c.User("admin", mastersGroup)
	if err != nil {
		return err
	}
	if err := ready(ctx, admin.Config); err != nil {
		return c.withLog(fmt.Errorf("control plane: kube-apiserver is not ready: %w", err))
	}
	c.admin = admin
	return nil
}

// describe tells envtest what to run. It does not use envtest.Environment, which tries five times to start what
// cannot start, and takes an existing cluster instead if a variable of the environment says so.
func (c *Cluster) describe(config Config) (*envtest.ControlPlane, error) {
	etcd := &envtest.Etcd{DataDir: filepath.Join(c.dir, "etcd"), StartTimeout: startTimeout, StopTimeout: stopTimeout}
	server := &envtest.APIServer{CertDir: filepath.Join(c.dir, "kube-apiserver"), StartTimeout: startTimeout, StopTimeout: stopTimeout}

	var err error
	if etcd.Path, err = wrap(c.dir, "etcd", filepath.Join(c.assets, "etcd")); err != nil {
		return nil, err
	}
	if server.Path, err = wrap(c.dir, "kube-apiserver", filepath.Join(c.assets, "kube-apiserver")); err != nil {
		return nil, err
	}

	etcdPort, err := FreePort()
	if err != nil {
		return nil, fmt.Errorf("control plane: etcd: %w", err)
	}
	serverPort, err := FreePort()
	if err != nil {
		return nil, fmt.Errorf("control plane: kube-apiserver: %w", err)
	}
	etcd.URL = &url.URL{Scheme: "http", Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(etcdPort))}
	server.SecureServing.ListenAddr = envtest.ListenAddr{Address: "127.0.0.1", Port: strconv.Itoa(serverPort)}

	// The data is thrown away: nothing is gained by waiting for the disk.
	etcd.Configure().Set("unsafe-no-fsync", "true").Set("log-level", "warn")
	if err := configureAPIServer(server.Configure(), config, c.dir); err != nil {
		return nil, err
	}
	return &envtest.ControlPlane{Etcd: etcd, APIServer: server, KubectlPath: filepath.Join(c.assets, "kubectl")}, nil
}

// run starts both processes and waits until they answer. envtest knows no context: when ctx ends, what it waits for
// is killed.
func (c *Cluster) run(ctx context.Context) error {
	// Files, not writers of ours: nothing here must be running for the processes to be able to log.
	etcdLog, err := os.Create(c.logFile("etcd"))
	if err != nil {
		return fmt.Errorf("control plane: %w", err)
	}
	defer etcdLog.Close() //nolint:errcheck // Never written to by this process.
	serverLog, err := os.Create(c.logFile("kube-apiserver"))
	if err != nil {
		return fmt.Errorf("control plane: %w", err)
	}
	defer serverLog.Close() //nolint:errcheck // Never written to by this process.
	c.plane.Etcd.Out, c.plane.Etcd.Err = etcdLog, etcdLog
	c.plane.APIServer.Out, c.plane.APIServer.Err = serverLog, serverLog

	done := make(chan error, 1)
	go func() { done <- c.plane.Start() }()
	select {
	case err := <-done:
		if err != nil {
			return c.withLog(fmt.Errorf("control plane: %w", err))
		}
		return nil
	case <-ctx.Done():
	}
	// One kill is not enough: kube-apiserver may be started after it.
	for {
		killNoted(c.dir)
		select {
		case <-done: //nolint:errcheck // Given up: how it ended does not matter.
			return c.withLog(fmt.Errorf("control plane: start: %w", ctx.Err()))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// ready waits until the API server says that it is ready and has made the namespace of its first objects.
func ready(ctx context.Context, config *rest.Config) error {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	var last error
	err = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, startTimeout, true, func(ctx context.Context) (bool, error) {
		for _, path := range []string{"/readyz", "/api/v1/namespaces/default"} {
			if last = expectOK(ctx, client, strings.TrimSuffix(config.Host, "/")+path); last != nil {
				return false, nil
			}
		}
		return true, nil
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
	if err := response.Body.Close(); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s", url, response.Status)
	}
	return nil
}

func (c *Cluster) logFile(name string) string {
	return filepath.Join(c.dir, name+".log")
}

// withLog adds the end of the log of the process that err is about: kube-apiserver if it was started, else etcd. The
// files themselves are gone when the caller sees the error.
func (c *Cluster) withLog(err error) error {
	name := "kube-apiserver"
	if _, statErr := os.Stat(filepath.Join(c.dir, "pids", name)); statErr != nil {
		name = "etcd"
	}
	content, readErr := os.ReadFile(c.logFile(name))
	if readErr != nil {
		return errors.Join(err, readErr)
	}
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	lines = lines[max(0, len(lines)-logTailLines):]
	return fmt.Errorf("%w; the log of %s ends in:\n%s", err, name, strings.Join(lines, "\n"))
}
