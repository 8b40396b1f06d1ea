//go:build integration

package soak

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/util/cert"

	"github.com/fieldperm/fieldperm/test/cluster"
	"github.com/fieldperm/fieldperm/test/stack"
)

const (
	callersFile = "callers-ca.crt"
	// reread is longer than kube-apiserver takes to read its client certificate again: CertCallbackRefreshDuration of client-go, 5 minutes.
	reread = 6 * time.Minute
)

// callers has the CAs that sign the certificates of fieldperm's callers, and the present certificate of the sender.
type callers struct {
	s     *stack.Stack
	roots *x509.CertPool
	// first signs the certificate with which kube-apiserver starts.
	first []byte

	mu      sync.Mutex
	own     tls.Certificate
	current authority
	// retiring are CAs that were replaced, and may still be in use by kube-apiserver.
	retiring []authority
	number   int
}

// authority is a CA with the time at which it was replaced.
type authority struct {
	signer   *cluster.Authority
	bundle   []byte
	replaced time.Time
}

func newCallers(dir string) (*callers, error) {
	c := &callers{}
	var err error
	if c.first, err = os.ReadFile(dir + "/ca.crt"); err != nil {
		return nil, err
	}
	if c.roots, err = cert.NewPool(dir + "/ca.crt"); err != nil {
		return nil, err
	}
	if c.current, err = c.newAuthority(); err != nil {
		return nil, err
	}
	if c.own, _, err = c.issue(c.current); err != nil {
		return nil, err
	}
	return c, os.WriteFile(dir+"/"+callersFile, slices.Concat(c.first, c.current.bundle), 0o600)
}

func (c *callers) newAuthority() (authority, error) {
	c.number++
	signer, err := cluster.NewAuthority(fmt.Sprintf("callers-%d", c.number))
	if err != nil {
		return authority{}, err
	}
	bundle, err := signer.Bundle()
	return authority{signer: signer, bundle: bundle}, err
}

// issue makes a certificate, with its PEM and that of its key.
func (c *callers) issue(from authority) (tls.Certificate, [2][]byte, error) {
	certificate, key, err := from.signer.Issue(cluster.Leaf{Name: "kube-apiserver", Usage: x509.ExtKeyUsageClientAuth})
	if err != nil {
		return tls.Certificate{}, [2][]byte{}, err
	}
	pair, err := tls.X509KeyPair(certificate, key)
	return pair, [2][]byte{certificate, key}, err
}

// certified returns the configuration of a client with the present certificate.
func (c *callers) certified() *tls.Config {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.with(c.own)
}

func (c *callers) with(own tls.Certificate) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: c.roots, ServerName: "127.0.0.1", Certificates: []tls.Certificate{own}}
}

// write writes the CAs that fieldperm accepts.
func (c *callers) write(more ...[]byte) error {
	bundle := slices.Concat(append([][]byte{c.first, c.current.bundle}, more...)...)
	for _, one := range c.retiring {
		bundle = append(bundle, one.bundle...)
	}
	return replace(c.s.File(callersFile), bundle)
}

func replace(file string, content []byte) error {
	if err := os.WriteFile(file+".new", content, 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// accepted asks each replica over a new connection, and returns an error unless all answer that status.
func (c *callers) accepted(ctx context.Context, f *fleet, own tls.Certificate, code int) error {
	for _, one := range f.all() {
		client := client(nil, c.with(own))
		defer client.CloseIdleConnections()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+one.address+"/permissions?group=autoscaling&kind=Scale", nil)
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
		if response.StatusCode != code {
			return fmt.Errorf("replica %d: %d, want %d", one.replica, response.StatusCode, code)
		}
	}
	return nil
}

// serves returns an error unless each replica serves the certificate of the file on new connections.
func (c *callers) serves(ctx context.Context, f *fleet) error {
	want, err := cert.CertsFromFile(c.s.File("serving.crt"))
	if err != nil {
		return err
	}
	for _, one := range f.all() {
		d := tls.Dialer{Config: c.certified()}
		conn, err := d.DialContext(ctx, "tcp", one.address)
		if err != nil {
			return err
		}
		got := conn.(*tls.Conn).ConnectionState().PeerCertificates
		if err := conn.Close(); err != nil {
			return err
		}
		if len(got) == 0 || !bytes.Equal(got[0].Raw, want[0].Raw) {
			return errors.New("an earlier certificate is served")
		}
	}
	return nil
}
