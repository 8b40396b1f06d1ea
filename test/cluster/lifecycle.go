package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
)

// The names of the processes that every cluster has.
const (
	Etcd      = "etcd"
	APIServer = "kube-apiserver"
)

// envtest notices the end of a process within endTries times endPause.
const (
	endTries = 100
	endPause = 10 * time.Millisecond
)

// Signal sends a signal to the process of that name: SIGKILL ends it at once, SIGSTOP freezes it, and SIGCONT continues it.
func (c *Cluster) Signal(name string, signal syscall.Signal) error {
	pid, err := c.pid(name)
	if err != nil {
		return err
	}
	if err := syscall.Kill(pid, signal); err != nil {
		return fmt.Errorf("control plane: %s: %w", name, err)
	}
	return nil
}

// Shutdown ends the process of that name and returns when it has ended. It accepts a process that was killed before. The data, the port and
// the certificates stay, for Boot.
func (c *Cluster) Shutdown(name string) error {
	c.lifecycle.Lock()
	defer c.lifecycle.Unlock()
	// A frozen process would not receive the next signal.
	_ = c.Signal(name, syscall.SIGCONT)
	stop := c.plane.Etcd.Stop
	if name != Etcd {
		server := c.server(name)
		if server == nil {
			return fmt.Errorf("control plane: %q: is not a process of this cluster", name)
		}
		stop = server.Stop
	}
	err := stop()
	for range endTries {
		if !errors.Is(err, syscall.ESRCH) {
			break
		}
		// The process was killed, and envtest has not noticed it yet.
		time.Sleep(endPause)
		err = stop()
	}
	if err != nil {
		return fmt.Errorf("control plane: %s: %w", name, err)
	}
	// Another process may get its number from now on.
	if err := os.Remove(c.pidFile(name)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("control plane: %w", err)
	}
	return nil
}

// Boot starts a process again after Shutdown, with the same flags and data on the same port, and returns when it is ready.
func (c *Cluster) Boot(ctx context.Context, name string) error {
	c.lifecycle.Lock()
	defer c.lifecycle.Unlock()
	return c.boot(ctx, name)
}

func (c *Cluster) boot(ctx context.Context, name string) error {
	log, err := os.OpenFile(c.logFile(name), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("control plane: %w", err)
	}
	defer log.Close() //nolint:errcheck // Never written to by this process.
	if name == Etcd {
		c.plane.Etcd.Out, c.plane.Etcd.Err = log, log
		if err := c.plane.Etcd.Start(); err != nil {
			return c.withLog(name, fmt.Errorf("control plane: %s: %w", name, err))
		}
		return nil
	}
	server := c.server(name)
	if server == nil {
		return fmt.Errorf("control plane: %q: is not an API server of this cluster", name)
	}
	server.Out, server.Err = log, log
	if err := server.Start(); err != nil {
		return c.withLog(name, fmt.Errorf("control plane: %s: %w", name, err))
	}
	admin := rest.CopyConfig(c.admin.Config)
	admin.Host = "https://" + server.HostPort()
	if err := ready(ctx, admin); err != nil {
		return c.withLog(name, fmt.Errorf("control plane: %s is not ready: %w", name, err))
	}
	return nil
}

// EtcdData returns the directory of etcd's data. Between Shutdown and Boot of etcd it may be copied, or replaced by an earlier copy, with all
// API servers shut down too.
func (c *Cluster) EtcdData() string { return c.plane.Etcd.DataDir }

// pid returns the process number of that name, from the note of its wrapper.
func (c *Cluster) pid(name string) (int, error) {
	content, err := os.ReadFile(c.pidFile(name))
	if err != nil {
		return 0, fmt.Errorf("control plane: %s: does not run: %w", name, err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(content)))
	if err != nil || pid <= 1 {
		return 0, fmt.Errorf("control plane: %s: %q is no number of a process", name, content)
	}
	return pid, nil
}

func (c *Cluster) pidFile(name string) string { return filepath.Join(c.dir, "pids", name) }
