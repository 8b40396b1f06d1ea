package issuer

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// wellKnown is where the discovery document is, below an issuer's URL (OpenID Connect Discovery 1.0, section 4).
const wellKnown = "/.well-known/openid-configuration"

// Config is what does not change while an issuer is there. The zero value is an issuer on a free port
// of 127.0.0.1.
type Config struct {
	// Address is host:port; "" for a free port of 127.0.0.1. The certificate also has localhost.
	Address string
	// Path comes after the host in the issuer's URL, for example "/realms/dev"; "" for none.
	Path string
	// DiscoveryPath is where the discovery document is; "" for the well-known path below URL. It is not
	// at the well-known path if it is anywhere else.
	DiscoveryPath string
	// Name is the issuer's URL; "" for where it is. A name elsewhere needs DiscoveryURL to be found.
	Name string
	// Algorithm is that of the keys: RS256, ES256 and so on; "" for ES256, whose keys are made fastest.
	Algorithm string
}

// Issuer is one that runs. Its methods can be called by several goroutines at once.
type Issuer struct {
	config  Config
	origin  string // https://host:port
	caPEM   []byte
	serving tls.Certificate

	mu        sync.Mutex
	server    *http.Server // nil while stopped
	served    chan struct{}
	keys      []key
	lastKey   int
	behaviour Behaviour
	claims    map[string]distributed
	counts    Counts
}

// Start makes an issuer with one key and serves it. The caller closes it.
func Start(c Config) (*Issuer, error) {
	if c.Address == "" {
		c.Address = "127.0.0.1:0"
	}
	if c.Algorithm == "" {
		c.Algorithm = "ES256"
	}
	listener, err := net.Listen("tcp", c.Address)
	if err != nil {
		return nil, fmt.Errorf("issuer: %w", err)
	}
	c.Address = listener.Addr().String()
	i := &Issuer{config: c, origin: "https://" + c.Address, claims: map[string]distributed{}}
	host, _, err := net.SplitHostPort(c.Address)
	if err == nil {
		i.caPEM, i.serving, err = certificates(host)
	}
	if err == nil {
		_, err = i.Rotate(false)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("issuer: %w", err), listener.Close())
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.serve(listener)
	return i, nil
}

// URL is the issuer's name: what `iss` is in its tokens and what a configuration has as issuer.url.
func (i *Issuer) URL() string {
	if i.config.Name != "" {
		return i.config.Name
	}
	return i.origin + i.config.Path
}

// DiscoveryURL is where the discovery document is.
func (i *Issuer) DiscoveryURL() string { return i.origin + i.discoveryPath() }

func (i *Issuer) discoveryPath() string {
	if i.config.DiscoveryPath != "" {
		return i.config.DiscoveryPath
	}
	return strings.TrimSuffix(i.config.Path, "/") + wellKnown
}

func (i *Issuer) keysPath() string { return strings.TrimSuffix(i.config.Path, "/") + "/keys" }

// Address is host:port.
func (i *Issuer) Address() string { return i.config.Address }

// CA is the certificate, in PEM, by which its certificate is trusted.
func (i *Issuer) CA() []byte { return i.caPEM }

// Stop makes it unreachable: connections end, the port refuses new ones. It keeps its keys.
func (i *Issuer) Stop() error {
	i.mu.Lock()
	server, served := i.server, i.served
	i.server = nil
	i.mu.Unlock()
	if server == nil {
		return nil
	}
	err := server.Close()
	<-served
	if err != nil {
		return fmt.Errorf("issuer %q: stop: %w", i.URL(), err)
	}
	return nil
}

// Restart serves it again, on the port that it had.
func (i *Issuer) Restart() error {
	if err := i.Stop(); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", i.config.Address)
	if err != nil {
		return fmt.Errorf("issuer %q: restart: %w", i.URL(), err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.serve(listener)
	return nil
}

// Close ends it. What waits for an answer gets none.
func (i *Issuer) Close() error { return i.Stop() }

// serve is called with the lock held.
func (i *Issuer) serve(listener net.Listener) {
	ctx, cancel := context.WithCancel(context.Background())
	server := &http.Server{
		Handler:           http.HandlerFunc(i.answer),
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{i.serving}, MinVersion: tls.VersionTLS12},
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          log.New(io.Discard, "", 0), // clients that do not trust the CA are part of the tests
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	served := make(chan struct{})
	i.server, i.served = server, served
	go func() {
		defer close(served)
		defer cancel() // ends those who wait
		_ = server.ServeTLS(listener, "", "")
	}()
}
