package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/fieldperm/fieldperm/test/watchdog"
)

// Config describes the control plane. The zero value is a plain one with the Node and RBAC authorizers.
type Config struct {
	// AuthorizationConfig is the path of kube-apiserver's AuthorizationConfiguration. Empty: Node, then RBAC.
	AuthorizationConfig string

	// AuthenticationConfig is the path of kube-apiserver's AuthenticationConfiguration, which names the issuers whose tokens it accepts in
	// addition to the certificates of users. It excludes the flags oidc-*, and with an anonymous field anonymous-auth. Empty: none.
	AuthenticationConfig string

	// AdmissionConfig is the path of kube-apiserver's AdmissionConfiguration. Empty: none.
	AdmissionConfig string

	// AuditLog is the path of a file for the audit events (JSON lines, level Metadata, one event at the end of each request, with all
	// annotations). A file outside of the cluster's directory remains after the cluster. Empty: no log.
	AuditLog string

	// Log receives a line when the cluster is ready and one when it has stopped. Nil: none.
	Log io.Writer

	// Dir is the directory in which the cluster creates its own one. Empty: the system's directory for temporary files.
	Dir string

	// Address is the IP address that the API servers listen on, see PublicAddress. Empty: 127.0.0.1.
	Address string

	// ExtraArgs are flags of kube-apiserver, without dashes. They replace the flags that this package and envtest set.
	ExtraArgs map[string][]string
}

// Cluster is a running control plane. Its methods may be called concurrently.
type Cluster struct {
	assets   string
	dir      string
	address  string
	log      io.Writer
	plane    *envtest.ControlPlane
	watchdog *watchdog.Watchdog
	admin    *User

	// servingCA is the CA of the serving certificate of all API servers, PEM.
	servingCA []byte

	// lifecycle is held while processes are started and ended.
	lifecycle sync.Mutex

	mu      sync.Mutex // guards users and servers
	users   []*User
	servers map[string]*envtest.APIServer // additional API servers

	stop    sync.Once
	stopErr error
}

// Start starts etcd and kube-apiserver on free ports of 127.0.0.1 and returns when the API server is ready. The context limits only the
// start. If it fails, no process and no file remains, and the error has the end of the log of the failed process.
func Start(ctx context.Context, config Config) (*Cluster, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("control plane: %w", err)
	}
	assets, err := Assets()
	if err != nil {
		return nil, err
	}
	dir, err := makeDir(config.Dir)
	if err != nil {
		return nil, fmt.Errorf("control plane: directory: %w", err)
	}
	dog, err := watchdog.Guard(dir)
	if err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}

	c := &Cluster{assets: assets, dir: dir, address: config.Address, log: config.Log, watchdog: dog}
	if c.address == "" {
		c.address = loopback
	}
	if c.log == nil {
		c.log = io.Discard
	}
	begin := time.Now()
	if err := c.start(ctx, config); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	fmt.Fprintf(c.log, "control plane: ready after %s at %s\n", time.Since(begin).Round(10*time.Millisecond), c.admin.Config.Host)
	return c, nil
}

// Stop ends the processes and removes the cluster's directory. It may be called more than once and from a signal's goroutine; each call
// returns when everything is removed. The error names the processes that had to be killed.
func (c *Cluster) Stop() error {
	c.stop.Do(func() {
		c.lifecycle.Lock()
		defer c.lifecycle.Unlock()
		var plane error
		c.mu.Lock()
		servers := slices.Collect(maps.Values(c.servers))
		c.mu.Unlock()
		for _, server := range servers {
			plane = errors.Join(plane, server.Stop())
		}
		if c.plane != nil {
			plane = errors.Join(plane, c.plane.Stop())
		}
		// The watchdog always runs last: it kills processes that did not end, and removes the directory.
		c.stopErr = errors.Join(plane, c.watchdog.Release())
		if c.admin != nil {
			fmt.Fprintln(c.log, "control plane: stopped")
		}
	})
	return c.stopErr
}

// Admin returns the configuration of a member of system:masters. The caller may change it.
func (c *Cluster) Admin() *rest.Config {
	return rest.CopyConfig(c.admin.Config)
}

// Dir returns the directory of the cluster, which Stop removes. It has etcd.log, kube-apiserver.log and kubeconfigs/. The caller can put
// files there that should be removed with the cluster.
func (c *Cluster) Dir() string {
	return c.dir
}

// EtcdURL returns the address of the cluster's etcd, without TLS.
func (c *Cluster) EtcdURL() string {
	return c.plane.Etcd.URL.String()
}

// makeDir creates the cluster's directory in parent and returns its absolute path.
func makeDir(parent string) (string, error) {
	if parent == "" {
		parent = os.TempDir()
	}
	parent, err := filepath.Abs(parent)
	if err != nil {
		return "", err
	}
	return os.MkdirTemp(parent, "fieldperm-cluster-")
}
