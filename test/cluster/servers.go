package cluster

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// loopback is the default address of a control plane.
const loopback = "127.0.0.1"

// PublicAddress returns an IPv4 address of this machine that is no loopback address, for Config.Address. The endpoints of the Service
// "kubernetes" may have no loopback address. It is "" if the machine has no such address.
func PublicAddress() (string, error) {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return "", fmt.Errorf("addresses of this machine: %w", err)
	}
	for _, address := range addresses {
		if ip, _, err := net.ParseCIDR(address.String()); err == nil && ip.To4() != nil && ip.IsGlobalUnicast() {
			return ip.String(), nil
		}
	}
	return "", nil
}

// AddAPIServer starts another kube-apiserver on the same etcd, with flags of its own, and returns when it is ready. Users' certificates are
// also valid for it, see At. The name must be new. It is for Signal and the other methods. Config is used as by Start, except Dir, Log and
// Address, which come from the cluster.
func (c *Cluster) AddAPIServer(ctx context.Context, name string, config Config) error {
	c.lifecycle.Lock()
	defer c.lifecycle.Unlock()
	if c.server(name) != nil {
		return fmt.Errorf("control plane: %q: exists already: take another name", name)
	}
	port, err := FreePort()
	if err != nil {
		return fmt.Errorf("control plane: %s: %w", name, err)
	}
	if err := c.describeFurther(name, config, strconv.Itoa(port)); err != nil {
		return err
	}
	return c.boot(ctx, name)
}

// Replace gives an API server of AddAPIServer that is shut down other flags, for the next Boot. The address stays.
func (c *Cluster) Replace(name string, config Config) error {
	c.lifecycle.Lock()
	defer c.lifecycle.Unlock()
	old := c.server(name)
	if old == nil || name == APIServer {
		return fmt.Errorf("control plane: %q: was not added to this cluster", name)
	}
	return c.describeFurther(name, config, old.SecureServing.Port)
}

// describeFurther configures an API server on the etcd of the first.
func (c *Cluster) describeFurther(name string, config Config, port string) error {
	first := c.plane.APIServer
	server, err := c.describeAPIServer(name, config)
	if err != nil {
		return err
	}
	server.SecureServing.Port = port
	server.EtcdURL = c.plane.Etcd.URL
	// Certificates that were issued for the first server are valid here too.
	server.Authn = first.Authn
	server.Configure().Set("service-account-issuer", first.SecureServing.URL("https", "/").String())
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.servers == nil {
		c.servers = map[string]*envtest.APIServer{}
	}
	c.servers[name] = server
	return nil
}

// At returns config for the API server of that name. For an unknown name it returns a configuration without a server.
func (c *Cluster) At(config *rest.Config, name string) *rest.Config {
	out := rest.CopyConfig(config)
	out.Host = "https://" + c.HostPort(name)
	return out
}

// HostPort returns the address of an API server, "" for an unknown name.
func (c *Cluster) HostPort(name string) string {
	if server := c.server(name); server != nil {
		return server.HostPort()
	}
	return ""
}

// server returns the API server of that name, nil if there is none.
func (c *Cluster) server(name string) *envtest.APIServer {
	if name == APIServer {
		return c.plane.APIServer
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.servers[name]
}

// describeAPIServer configures envtest, for the first API server and for every other.
func (c *Cluster) describeAPIServer(name string, config Config) (*envtest.APIServer, error) {
	server := &envtest.APIServer{CertDir: filepath.Join(c.dir, "kube-apiserver"), StartTimeout: startTimeout, StopTimeout: stopTimeout}
	var err error
	if server.Path, err = wrap(c.dir, name, filepath.Join(c.assets, "kube-apiserver")); err != nil {
		return nil, err
	}
	port, err := FreePort()
	if err != nil {
		return nil, fmt.Errorf("control plane: %s: %w", name, err)
	}
	server.SecureServing.ListenAddr = envtest.ListenAddr{Address: c.address, Port: strconv.Itoa(port)}
	server.SecureServing.CA = c.servingCA
	return server, configureAPIServer(server.Configure(), config, c.dir)
}

// writeServingCertificate creates the serving certificate of all API servers of the cluster. envtest creates one only if there is none, and
// that one lacks the names by which Pods call the API server.
func (c *Cluster) writeServingCertificate() error {
	authority, err := NewAuthority("fieldperm-cluster")
	if err != nil {
		return fmt.Errorf("control plane: %w", err)
	}
	if c.servingCA, err = authority.Bundle(); err != nil {
		return fmt.Errorf("control plane: %w", err)
	}
	certificate, key, err := authority.Issue(Leaf{
		Name: "kube-apiserver", Usage: x509.ExtKeyUsageServerAuth,
		Hosts: []string{"localhost", loopback, c.address, "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
	})
	if err != nil {
		return fmt.Errorf("control plane: %w", err)
	}
	// This key pair signs the tokens of service accounts. They are checked with its public key.
	_, signer, err := authority.Issue(Leaf{Name: "service-accounts", Usage: x509.ExtKeyUsageAny})
	if err != nil {
		return fmt.Errorf("control plane: %w", err)
	}
	var errs []error
	for name, content := range map[string][]byte{"apiserver.crt": certificate, "apiserver.key": key, "sa-signer.key": signer, "sa-signer.crt": signer} {
		errs = append(errs, os.WriteFile(filepath.Join(c.dir, "kube-apiserver", name), content, 0o600))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("control plane: %w", err)
	}
	return nil
}
