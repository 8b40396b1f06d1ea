package fakeapi

import (
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/rest"
)

// Server is a server on a free port of 127.0.0.1 that ends with its test.
type Server struct{ *httptest.Server }

// Serve starts a server with TLS. Its certificate is the one of httptest, which is the same for all servers.
func Serve(t testing.TB, handler http.Handler) *Server {
	t.Helper()
	return ServeTLS(t, handler, nil)
}

// ServeTLS is Serve with certificates of the test.
func ServeTLS(t testing.TB, handler http.Handler, config *tls.Config) *Server {
	t.Helper()
	s := unstarted(t, handler)
	s.TLS = config
	s.StartTLS()
	return s
}

// Plain starts a server without TLS.
func Plain(t testing.TB, handler http.Handler) *Server {
	t.Helper()
	s := unstarted(t, handler)
	s.Start()
	return s
}

func unstarted(t testing.TB, handler http.Handler) *Server {
	t.Helper()
	s := &Server{httptest.NewUnstartedServer(handler)}
	// Clients that disconnect in a handshake are not of interest.
	s.Server.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(func() {
		if s.URL != "" {
			s.CloseClientConnections() // Watches do not end themselves.
		}
		s.Close()
	})
	return s
}

// CA returns the certificate that clients trust, in PEM. It is nil without TLS.
func (s *Server) CA() []byte {
	if s.TLS == nil {
		return nil
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.TLS.Certificates[0].Certificate[0]})
}

// Config returns a configuration of client-go for the server.
func (s *Server) Config() *rest.Config {
	return &rest.Config{Host: s.URL, TLSClientConfig: rest.TLSClientConfig{CAData: s.CA()}}
}

// Kubeconfig writes a kubeconfig for the server and returns its path. With paths it has a context of the name of each, for that path of the
// server; the first is the current one.
func (s *Server) Kubeconfig(t testing.TB, paths ...string) string {
	t.Helper()
	if len(paths) == 0 {
		paths = []string{""}
	}
	type named map[string]any
	var contexts, clusters []named
	for _, path := range paths {
		contexts = append(contexts, named{"name": path, "context": named{"cluster": path, "user": "u"}})
		clusters = append(clusters, named{"name": path, "cluster": named{"server": s.URL + "/" + path, "certificate-authority-data": s.CA()}})
	}
	raw, err := json.Marshal(named{
		"apiVersion": "v1", "kind": "Config", "current-context": paths[0], "contexts": contexts, "clusters": clusters,
		"users": []named{{"name": "u", "user": named{}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
