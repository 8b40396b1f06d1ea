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
	"path/filepath"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/util/cert"

	"github.com/fieldperm/fieldperm/test/cluster"
)

const (
	// callersFile is the file of --client-ca-file. The others are files of the stack.
	callersFile                                         = "callers-ca.crt"
	firstCA, servingFile, clientCertFile, clientKeyFile = "ca.crt", "serving.crt", "client.crt", "client.key"
	// reread is longer than kube-apiserver takes to read its client certificate again: CertCallbackRefreshDuration of client-go, 5 minutes.
	reread = 6 * time.Minute
)

// callers has the certificates of the callers of fieldperm, and their CAs: one for the sender, and one for kube-apiserver.
type callers struct {
	dir   string
	roots *x509.CertPool

	mu     sync.Mutex
	number int
	// own is the certificate of the sender.
	own    tls.Certificate
	sender authority
	// servers are the CAs of kube-apiserver's certificate: the last one signed the present certificate, and it may still use the others.
	servers []authority
}

// authority is a CA.
type authority struct {
	signer *cluster.Authority // Nil: its key is not known.
	bundle []byte
	// replaced is when another one took its place.
	replaced time.Time
}

// newCallers writes the first CAs.
func newCallers(dir string) (*callers, error) {
	c := &callers{dir: dir}
	first, err := os.ReadFile(c.file(firstCA))
	if err != nil {
		return nil, err
	}
	c.servers = []authority{{bundle: first}}
	if c.roots, err = cert.NewPool(c.file(firstCA)); err != nil {
		return nil, err
	}
	if c.sender, c.own, _, err = c.issue(); err != nil {
		return nil, err
	}
	return c, c.write()
}

func (c *callers) file(name string) string { return filepath.Join(c.dir, name) }

// issue makes a CA and a client certificate of it, which is also returned as PEM, with its key.
func (c *callers) issue() (from authority, own tls.Certificate, pem [2][]byte, err error) {
	c.number++
	if from.signer, err = cluster.NewAuthority(fmt.Sprintf("callers-%d", c.number)); err != nil {
		return
	}
	if from.bundle, err = from.signer.Bundle(); err != nil {
		return
	}
	if pem[0], pem[1], err = from.signer.Issue(cluster.Leaf{Name: "kube-apiserver", Usage: x509.ExtKeyUsageClientAuth}); err != nil {
		return
	}
	own, err = tls.X509KeyPair(pem[0], pem[1])
	return
}

// write writes the CAs that fieldperm is to accept.
func (c *callers) write(more ...authority) error {
	var bundle []byte
	for _, one := range slices.Concat(c.servers, []authority{c.sender}, more) {
		bundle = append(bundle, one.bundle...)
	}
	return replace(c.file(callersFile), bundle)
}

// replace replaces a file atomically.
func replace(file string, content []byte) error {
	if err := os.WriteFile(file+".new", content, 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
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

// locked calls f alone.
func (c *callers) locked(f func() error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return f()
}

// callersCertificates replaces the certificate of the sender and its CA, and then those of kube-apiserver.
func (c *scene) callersCertificates(int) error {
	p := c.callers
	var fresh authority
	var own tls.Certificate
	if err := p.locked(func() (err error) {
		if fresh, own, _, err = p.issue(); err == nil {
			err = p.write(fresh)
		}
		return err
	}); err != nil {
		return err
	}
	if err := c.answers(own, http.StatusOK); err != nil {
		return err
	}
	var was tls.Certificate
	if err := p.locked(func() error {
		was, p.own, p.sender = p.own, own, fresh
		return nil
	}); err != nil {
		return err
	}
	if err := c.sender.RenewAll(); err != nil {
		return err
	}
	if err := p.locked(p.rotateServer); err != nil {
		return err
	}
	return c.answers(was, http.StatusUnauthorized)
}

// rotateServer replaces the certificate of kube-apiserver, which notices that within minutes. A CA that it does not use any more is not
// accepted any more. It writes the CA of the sender too.
func (c *callers) rotateServer() error {
	fresh, _, pem, err := c.issue()
	if err != nil {
		return err
	}
	c.servers[len(c.servers)-1].replaced = time.Now()
	c.servers = append(slices.DeleteFunc(c.servers, func(one authority) bool { return time.Since(one.replaced) > reread }), fresh)
	return errors.Join(c.write(), replace(c.file(clientKeyFile), pem[1]), replace(c.file(clientCertFile), pem[0]))
}

// answers returns when each replica answers a certificate with that status, on a new connection.
func (c *scene) answers(own tls.Certificate, want int) error {
	return c.eachReplica(fmt.Sprintf("a certificate that is answered with %d", want), func(ctx context.Context, _ *http.Client, url string) error {
		using := client(nil, c.callers.with(own))
		defer using.CloseIdleConnections()
		code, _, err := get(ctx, using, url+"/permissions?group=autoscaling&kind=Scale")
		if err == nil && code != want {
			err = fmt.Errorf("%d", code)
		}
		return err
	})
}

// servingCertificate replaces fieldperm's own certificate.
func (c *scene) servingCertificate(int) error {
	if err := c.s.RotateServing(time.Time{}); err != nil {
		return err
	}
	want, err := cert.CertsFromFile(c.s.File(servingFile))
	if err != nil {
		return err
	}
	return c.await("the new serving certificate", func(ctx context.Context) error {
		for _, one := range c.fleet.all() {
			d := tls.Dialer{Config: c.callers.certified()}
			conn, err := d.DialContext(ctx, "tcp", one.address)
			if err != nil {
				return err
			}
			got := conn.(*tls.Conn).ConnectionState().PeerCertificates
			if err := conn.Close(); err != nil {
				return err
			}
			if len(got) == 0 || !bytes.Equal(got[0].Raw, want[0].Raw) {
				return fmt.Errorf("%s serves an earlier one", one)
			}
		}
		return nil
	})
}
