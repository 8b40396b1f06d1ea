package stack

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync/atomic"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/fieldperm/fieldperm/test/cluster"
)

// Fault answers a request instead of the API server, or returns false without an answer. It may wait before either.
type Fault func(http.ResponseWriter, *http.Request) bool

// proxy passes requests from fieldperm to kube-apiserver, and can fail. It calls the API server as fieldperm.
type proxy struct {
	server *http.Server
	url    string
	bundle []byte
	fault  atomic.Pointer[Fault]
}

func newProxy(target *rest.Config) (*proxy, error) {
	to, err := url.Parse(target.Host)
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	transport, err := rest.TransportFor(target)
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	authority, err := cluster.NewAuthority("fieldperm-proxy")
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	p := &proxy{}
	if p.bundle, err = authority.Bundle(); err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	certificate, key, err := authority.Issue(cluster.Leaf{Name: "proxy", Usage: x509.ExtKeyUsageServerAuth, Hosts: []string{"127.0.0.1"}})
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	port, err := cluster.FreePort()
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	p.url = "https://" + listener.Addr().String()
	quiet := log.New(io.Discard, "", 0)
	// Events of watches are passed on immediately.
	onward := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }, Transport: transport, FlushInterval: -1, ErrorLog: quiet}
	p.server = &http.Server{ //nolint:gosec // It serves one client, on this machine.
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}},
		ErrorLog:  quiet,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if fault := p.fault.Load(); fault == nil || !(*fault)(w, r) {
				onward.ServeHTTP(w, r)
			}
		}),
	}
	go func() { _ = p.server.ServeTLS(listener, "", "") }() // It ends with stop.
	return p, nil
}

func (p *proxy) stop() error {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	// Open watches would delay a graceful end.
	if err := p.server.Shutdown(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return p.server.Close()
}

// kubeconfig leads to the proxy. Its credentials are also valid for API servers that are reached without the proxy.
func (p *proxy) kubeconfig(own *rest.Config) ([]byte, error) {
	return clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"proxy": {Server: p.url, CertificateAuthorityData: append(p.bundle[:len(p.bundle):len(p.bundle)], own.CAData...)}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{User: {ClientCertificateData: own.CertData, ClientKeyData: own.KeyData}},
		Contexts:       map[string]*clientcmdapi.Context{"proxy": {Cluster: "proxy", AuthInfo: User}},
		CurrentContext: "proxy",
	})
}

// Intercept sets the fault between fieldperm and kube-apiserver; nil for none. It needs Config.Proxied.
func (s *Stack) Intercept(fault Fault) {
	if fault == nil {
		s.proxy.fault.Store(nil)
		return
	}
	s.proxy.fault.Store(&fault)
}
