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
	// startTimeout limits the start of each of the two processes, in addition to the context of Start.
	startTimeout = 60 * time.Second

	// stopTimeout is the time after which a process is killed if it does not end by itself.
	stopTimeout = 15 * time.Second
)

// start starts everything that Stop ends.
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

// describe configures envtest. It does not use envtest.Environment, which tries a failed start five times, and uses an existing cluster
// instead if an environment variable says so.
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

	// The data is discarded after the test, so there is no reason to wait for the disk.
	etcd.Configure().Set("unsafe-no-fsync", "true").Set("log-level", "warn")
	server, err := c.describeAPIServer(APIServer, config)
	if err != nil {
		return nil, err
	}
	return &envtest.ControlPlane{Etcd: etcd, APIServer: server, KubectlPath: filepath.Join(c.assets, "kubectl")}, nil
}

// run starts both processes and waits until they answer. envtest does not support a context: when ctx ends, run kills the processes for
// which envtest waits.
func (c *Cluster) run(ctx context.Context) error {
	// Use files and not writers of this program: the processes must be able to log when this program does not run.
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
	// One kill is not enough: envtest may start kube-apiserver after it.
	for {
		killNoted(c.dir)
		select {
		case <-done: //nolint:errcheck // Given up: how it ended does not matter.
			return c.withLog(c.last(), fmt.Errorf("control plane: start: %w", ctx.Err()))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// ready waits until the API server is ready and has created the namespace of its first objects.
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

// last returns the name of the last started process: kube-apiserver, or etcd if kube-apiserver was not started.
func (c *Cluster) last() string {
	if _, err := os.Stat(c.pidFile(APIServer)); err != nil {
		return Etcd
	}
	return APIServer
}

// withLog adds the end of a process's log to its error. The file itself is removed before the caller sees the error.
func (c *Cluster) withLog(name string, err error) error {
	return fmt.Errorf("%w; the log of %s ends in:\n%s", err, name, LogTail(c.logFile(name)))
}
