package interlock

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/generators/webhooks"
	"github.com/fieldperm/fieldperm/test/fakeapi"
)

// apiserver is the part of an API server that answers probes, with faults that are hard to cause in a real one. test/faults uses
// a real one.
type apiserver struct {
	*fakeapi.Server
	tokens admission.Probes

	mu   sync.Mutex
	sent []Target
	// fault returns the response in place of admission; "" calls the webhook.
	fault func(Target) string
	// loaded are the hashes in /metrics, asked counts its requests. With refused set, it responds with 403.
	loaded  Hashes
	asked   int
	refused bool
	// has is what the server has loaded, and what the replica knows that it asks.
	has admission.Loaded
	// watches is closed when the server ends its watches. watched counts those that are open. unwatched refuses new ones.
	watches   chan struct{}
	watched   int
	unwatched bool
	// version is the version of the server, "" for one that does not say.
	version string
	// starting says that the server is not ready.
	starting bool
}

// watch answers a watch until the client or the test ends it.
func (a *apiserver) watch(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	ended, refused := a.watches, a.unwatched
	a.watched++
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.watched--
	}()
	if refused {
		fakeapi.Status(w, http.StatusForbidden, `forbidden: User "fieldperm" cannot watch resource "customresourcedefinitions"`)
		return
	}
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
	select {
	case <-r.Context().Done():
	case <-ended:
	}
}

// restart ends the watches as the end of the process does. Another process has the address at once.
func (a *apiserver) restart() {
	a.mu.Lock()
	defer a.mu.Unlock()
	close(a.watches)
	a.watches = make(chan struct{})
}

// Close ends the server with its watches.
func (a *apiserver) Close() {
	a.CloseClientConnections()
	a.Server.Close()
}

func (a *apiserver) openWatches() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.watched
}

// metrics serves the part of /metrics that is read, among other lines.
func (a *apiserver) metrics(w http.ResponseWriter, _ *http.Request) {
	a.mu.Lock()
	a.asked++
	loaded, refused := a.loaded, a.refused
	a.mu.Unlock()
	if refused {
		fakeapi.Status(w, http.StatusForbidden, `forbidden: User "fieldperm" cannot get path "/metrics"`)
		return
	}
	line := func(name, labels string) {
		_, _ = fmt.Fprintf(w, "%s{apiserver_id_hash=\"sha256:1\",%s} 1\n", name, labels)
	}
	_, _ = fmt.Fprintf(w, "# HELP %s [ALPHA] Information.\n# TYPE %s gauge\n", manifestInfo, manifestInfo)
	line(manifestInfo, `plugin="MutatingAdmissionWebhook",hash="sha256:mutating"`)
	if loaded.Manifests != "" {
		line(manifestInfo, fmt.Sprintf(`plugin="ValidatingAdmissionWebhook",hash=%q`, loaded.Manifests))
	}
	line("apiserver_request_total", fmt.Sprintf(`code="%s"`, strings.Repeat("0", 100<<10)))
	if loaded.Authorization != "" {
		line(chainInfo, fmt.Sprintf(`hash=%q`, loaded.Authorization))
	}
}

// load simulates a reload of the server.
func (a *apiserver) load(hashes Hashes) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.loaded = hashes
}

func newAPIServer(t *testing.T, tokens admission.Probes) *apiserver {
	t.Helper()
	a := &apiserver{tokens: tokens, watches: make(chan struct{}), fault: func(Target) string { return "" }}
	a.Server = fakeapi.Plain(t, a)
	return a
}

func (a *apiserver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/metrics" {
		a.metrics(w, r)
		return
	}
	if r.URL.Path == "/version" {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.version == "" {
			http.NotFound(w, r)
		}
		_, _ = fmt.Fprintf(w, `{"major":"1","minor":"0","gitVersion":%q}`, a.version)
		return
	}
	if r.URL.Path == "/readyz" {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.starting {
			http.Error(w, "[-]informer-sync failed: reason withheld", http.StatusInternalServerError)
		}
		return
	}
	if r.URL.Query().Get("watch") == "true" {
		a.watch(w, r)
		return
	}
	target := targetOf(r)
	a.mu.Lock()
	a.sent = append(a.sent, target)
	fault, has := a.fault(target), a.has
	a.mu.Unlock()
	extra := r.Header.Values("Impersonate-Extra-Fieldperm.dev%2fprobe")
	verb := map[Operation]string{admissionv1.Create: "create", admissionv1.Update: "patch"}[target.Operation]
	spec := &authorizationv1.SubjectAccessReviewSpec{
		User: r.Header.Get("Impersonate-User"), Extra: map[string]authorizationv1.ExtraValue{admission.ProbeKey: extra},
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: verb, Group: target.Group, Version: target.Version, Resource: target.Resource, Subresource: target.Subresource, Namespace: target.Namespace, Name: target.Name},
	}
	req := &admissionv1.AdmissionRequest{
		Operation: target.Operation, Namespace: target.Namespace, Name: target.Name, SubResource: target.Subresource,
		Resource: metav1.GroupVersionResource{Group: target.Group, Version: target.Version, Resource: target.Resource},
		UserInfo: authenticationv1.UserInfo{Username: r.Header.Get("Impersonate-User"), Extra: map[string]authenticationv1.ExtraValue{admission.ProbeKey: extra}},
	}
	switch {
	case r.URL.Query().Get("dryRun") != "All":
		fakeapi.Status(w, http.StatusInternalServerError, "a probe that is no dry run")
	case fault == "ignored":
		said := a.tokens.Answer(req)
		if said.Fail {
			fakeapi.Status(w, http.StatusOK, "")
			return
		}
		fakeapi.Status(w, http.StatusForbidden, "admission webhook said: probe "+said.Token)
	case fault == "has no state" && a.tokens.Answer(req).Loaded == nil:
		fakeapi.Status(w, http.StatusForbidden, "admission webhook said: probe "+a.tokens.Answer(req).Token)
	case fault == "passes", fault == "has no state":
		fakeapi.Status(w, http.StatusOK, "")
	case fault == "not found":
		fakeapi.Status(w, http.StatusNotFound, "no such object")
	case fault != "":
		fakeapi.Status(w, http.StatusForbidden, fault)
	case target.Resource != "podtemplates" && !a.tokens.Authorize(spec):
		fakeapi.Status(w, http.StatusForbidden, `configmaps is forbidden: User "fieldperm:probe" cannot patch resource`)
	default:
		said := a.tokens.Answer(req)
		code, token := http.StatusForbidden, said.Token
		if said.Fail {
			code = http.StatusInternalServerError
		}
		if said.Loaded != nil {
			token = said.Loaded(has)
		}
		fakeapi.Status(w, code, "admission webhook said: probe "+token)
	}
}

func targetOf(r *http.Request) Target {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	t := Target{Operation: admissionv1.Update}
	if r.Method == http.MethodPost {
		t.Operation = admissionv1.Create
	}
	if parts[0] == "apis" {
		t.Group, parts = parts[1], parts[1:]
	}
	t.Version, parts = parts[1], parts[2:]
	if parts[0] == "namespaces" && len(parts) > 2 {
		t.Namespace, parts = parts[1], parts[2:]
	}
	t.Resource = parts[0]
	if len(parts) > 1 {
		t.Name = parts[1]
	}
	if len(parts) > 2 {
		t.Subresource = parts[2]
	}
	return t
}

func (a *apiserver) set(fault func(Target) string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.fault = fault
}

func (a *apiserver) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.sent)
}

func always(fault string) func(Target) string { return func(Target) string { return fault } }

func (a *apiserver) server(t *testing.T) Server {
	t.Helper()
	client, err := newClient(a.Config())
	if err != nil {
		t.Fatal(err)
	}
	return Server{Address: address(a.URL), Client: client}
}

func begin() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

func newTestTokens(t *testing.T) (*ProbeTokens, *Keyring, *clocktesting.FakeClock) {
	t.Helper()
	clock := clocktesting.NewFakeClock(begin())
	keys := NewKeyring(clock)
	if err := keys.Set([]byte("a private key")); err != nil {
		t.Fatal(err)
	}
	return NewProbeTokens(keys, clock), keys, clock
}

// testCA makes a CA in PEM.
func testCA(t *testing.T, name string) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ca, err := cert.NewSelfSignedCACert(cert.Config{CommonName: name}, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: ca.Raw})
}

// granular returns the configuration as it should be.
func granular(t *testing.T) *admissionregistrationv1.ValidatingWebhookConfiguration {
	t.Helper()
	c := webhooks.GranularConfiguration(webhooks.Options{ServiceURL: "https://127.0.0.1:9443", CABundle: testCA(t, "fieldperm")})
	c.UID, c.Generation = "u", 1
	return c
}
