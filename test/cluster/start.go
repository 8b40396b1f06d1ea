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
)

// start brings up what Stop takes down again.
func (c *Cluster) start(ctx context.Context, config Config) error {
	for _, name := range []string{"bin", "pids", "etcd", "kube-apiserver", "kubeconfigs", "home"} {
		if err := os.Mkdir(filepath.Join(c.dir, name), 0o700); err != nil {
			return fmt.Errorf("control plane: %w", err)
		}
	}
	if err := c.writeServingCertificate(); err != nil {
		return err
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
		return c.withLog(APIServer, fmt.Errorf("control plane: kube-apiserver is not ready: %w", err))
	}
	c.admin = admin
	return nil
}

// describe tells envtest what to run. It does not use envtest.Environment, which tries five times to start what
// cannot start, and takes an existing cluster instead if a variable of the environment says so.
func (c *Cluster) describe(config Config) (*envtest.ControlPlane, error) {
	etcd := &envtest.Etcd{DataDir: filepath.Join(c.dir, "etcd"), StartTimeout: startTimeout, StopTimeout: stopTimeout}
	var err error
	if etcd.Path, err = wrap(c.dir, Etcd, filepath.Join(c.assets, "etcd")); err != nil {
		return nil, err
	}

	etcdPort, err := FreePort()
	if err != nil {
		return nil, fmt.Errorf("control plane: etcd: %w", err)
	}
	etcd.URL = &url.URL{Scheme: "http", Host: net.JoinHostPort(loopback, strconv.Itoa(etcdPort))}

	// The data is thrown away: nothing is gained by waiting for the disk.
	etcd.Configure().Set("unsafe-no-fsync", "true").Set("log-level", "warn")
	server, err := c.describeAPIServer(APIServer, config)
	if err != nil {
		return nil, err
	}
	return &envtest.ControlPlane{Etcd: etcd, APIServer: server, KubectlPath: filepath.Join(c.assets, "kubectl")}, nil
}

// run starts both processes and waits until they answer. envtest knows no context: when ctx ends, what it waits for
// is killed.
func (c *Cluster) run(ctx context.Context) error {
	// Files, not writers of ours: nothing here must be running for the processes to be able to log.
	etcdLog, err := os.Create(c.logFile(Etcd))
	if err != nil {
		return fmt.Errorf("control plane: %w", err)
	}
	defer etcdLog.Close() //nolint:errcheck // Never written to by this process.
	serverLog, err := os.Create(c.logFile(APIServer))
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
			return c.withLog(c.last(), fmt.Errorf("control plane: %w", err))
		}
		return nil
	case <-ctx.Done():
	}
	// One kill is not enough: kube-apiserver may be started after it.
	for {
		killNoted(c.dir)
		select {
		case <-done: //nolint:errcheck // Given up: how it ended does not matter.
			return c.withLog(c.last(), fmt.Errorf("control plane: start: %w", ctx.Err()))
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

// last names the process that was started last: kube-apiserver, or etcd if it did not come to that.
func (c *Cluster) last() string {
	if _, err := os.Stat(c.pidFile(APIServer)); err != nil {
		return Etcd
	}
	return APIServer
}

// withLog adds the end of the log of a process to what went wrong with it. The file itself is gone when the caller
// sees the error.
func (c *Cluster) withLog(name string, err error) error {
	return fmt.Errorf("%w; the log of %s ends in:\n%s", err, name, LogTail(c.logFile(name)))
}
