package stack

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// The kubeconfig leads to the proxy. The proxy passes on each request that no fault answers, with its impersonation headers.
func TestProxy(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Method+" "+r.URL.RequestURI()+" "+r.Header.Get("Impersonate-User"))
	}))
	defer server.Close()
	target := &rest.Config{Host: server.URL}
	p, err := newProxy(target)
	if err != nil {
		t.Fatal(err)
	}
	s := &Stack{proxy: p}
	content, err := p.kubeconfig(target)
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(content)
	if err != nil {
		t.Fatal(err)
	}
	config.Impersonate.UserName = "probe"
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	get := func() (int, string) {
		response, err := client.Get(config.Host + "/api?x=1")
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, string(body)
	}
	if code, body := get(); code != http.StatusOK || body != "GET /api?x=1 probe" {
		t.Errorf("%d %q", code, body)
	}
	s.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		w.WriteHeader(http.StatusInternalServerError)
		return r.URL.Path == "/api"
	})
	if code, _ := get(); code != http.StatusInternalServerError {
		t.Errorf("%d with a fault, want 500", code)
	}
	s.Intercept(nil)
	if code, _ := get(); code != http.StatusOK {
		t.Errorf("%d after the fault, want 200", code)
	}
	if err := p.stop(); err != nil {
		t.Error(err)
	}
}
