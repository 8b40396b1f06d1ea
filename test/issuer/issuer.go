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

// wellKnown is the path of the discovery document below an issuer's URL (OpenID Connect Discovery 1.0, section 4).
const wellKnown = "/.well-known/openid-configuration"

// Config has the settings that stay the same while an issuer exists. The zero value is an issuer on a free port of 127.0.0.1.
type Config struct {
	// Address is host:port; "" for a free port of 127.0.0.1. The certificate also has localhost.
	Address string
	// Path comes after the host in the issuer's URL, for example "/realms/dev"; "" for none.
	Path string
	// DiscoveryPath is the path of the discovery document; "" for the well-known path below URL. With another path the well-known path has
	// no document.
	DiscoveryPath string
	// Name is the issuer's URL; "" for its real address. Clients need DiscoveryURL to find an issuer with another name.
	Name string
	// Algorithm is the algorithm of the keys: RS256, ES256 and so on; "" for ES256, whose keys are created fastest.
	Algorithm string
}

// Issuer is a running issuer. Several goroutines may call its methods.
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

// Start creates an issuer with one key and serves it. The caller closes it.
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

// URL is the issuer's name: the `iss` of its tokens and the issuer.url of a configuration.
func (i *Issuer) URL() string {
	if i.config.Name != "" {
		return i.config.Name
	}
	return i.origin + i.config.Path
}

// DiscoveryURL is the URL of the discovery document.
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

// CA is the CA certificate, in PEM, by which clients trust the issuer's certificate.
func (i *Issuer) CA() []byte { return i.caPEM }

// Stop makes the issuer unreachable: connections end, and the port refuses new ones. It keeps its keys.
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

// Restart serves the issuer again on the same port.
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

// Close ends the issuer. Waiting requests get no answer.
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
		defer cancel() // ends waiting requests
		_ = server.ServeTLS(listener, "", "")
	}()
}
