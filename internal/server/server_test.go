package server

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/admission/plugin/manifest"

	"github.com/fieldperm/fieldperm/generators"
	"github.com/fieldperm/fieldperm/generators/webhooks"
)

// running is a server in this process, on a free port.
type running struct {
	*Server
	api     *fakeAPI
	options *Options
	serving *authority
	dir     string
	stop    context.CancelFunc
	done    chan error
}

func (r *running) url(path string) string { return "https://" + r.Addr().String() + path }

func testOptions(t testing.TB, api *fakeAPI) (*Options, *authority, string) {
	t.Helper()
	dir, ca := t.TempDir(), newAuthority(t, "ca")
	certificate, key := ca.issue(t, "fieldperm")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	o := NewOptions()
	o.Kubeconfig = api.Kubeconfig(t)
	o.SecureServing.Listener = listener
	o.SecureServing.ServerCert.CertKey.CertFile = write(t, dir, "tls.crt", certificate)
	o.SecureServing.ServerCert.CertKey.KeyFile = write(t, dir, "tls.key", key)
	o.ClientCAFile = write(t, dir, "client-ca.crt", ca.pem)
	o.ShutdownDelay = 0
	o.APIServers = apiServersOwn
	controlPlane(t, o, api, generators.Options{
		ConfigDir: filepath.Join(dir, "control-plane"), Options: webhooks.Options{ServiceURL: "https://" + listener.Addr().String(), CABundle: ca.pem},
	})
	return o, ca, dir
}

// controlPlane writes the files of a kube-apiserver. The API server reports that it has loaded them.
func controlPlane(t testing.TB, o *Options, api *fakeAPI, options generators.Options) {
	t.Helper()
	files, err := generators.Manifests(options)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if err := os.MkdirAll(filepath.Join(options.ConfigDir, filepath.Dir(file.Name)), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, options.ConfigDir, file.Name, file.Data)
	}
	o.StaticManifests = filepath.Join(options.ConfigDir, "admission")
	o.KubeAPIServerAuthorizationConfig = filepath.Join(options.ConfigDir, "authorization-configuration.yaml")
	_, hash, err := manifest.LoadFiles(o.StaticManifests)
	if err != nil {
		t.Fatal(err)
	}
	chain, err := os.ReadFile(o.KubeAPIServerAuthorizationConfig)
	if err != nil {
		t.Fatal(err)
	}
	api.set(func() {
		api.metrics = fmt.Sprintf("apiserver_manifest_admission_config_controller_last_config_info{plugin=\"ValidatingAdmissionWebhook\",apiserver_id_hash=\"\",hash=%q} 1\n"+
			"apiserver_authorization_config_controller_last_config_info{apiserver_id_hash=\"\",hash=\"sha256:%x\"} 1\n", hash, sha256.Sum256(chain))
	})
}

func start(t testing.TB, change func(*running)) *running {
	t.Helper()
	r := &running{api: newFakeAPI(t), done: make(chan error, 1)}
	r.options, r.serving, r.dir = testOptions(t, r.api)
	if change != nil {
		change(r)
	}
	s, err := r.options.Complete(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r.Server = s
	r.api.set(func() { r.api.admit = r.admit(t) })
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	r.stop = stop
	go func() { r.done <- s.Run(ctx); close(r.done) }()
	t.Cleanup(func() {
		stop()
		if err := <-r.done; err != nil {
			t.Error(err)
		}
	})
	return r
}

// admit calls /admit/granular like an API server with failurePolicy Fail.
func (r *running) admit(t testing.TB) func(*admissionv1.AdmissionRequest) (int, string) {
	client := client509(t, r.serving, r.serving)
	return func(req *admissionv1.AdmissionRequest) (int, string) {
		body, err := json.Marshal(admissionv1.AdmissionReview{TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: req})
		if err != nil {
			return http.StatusInternalServerError, err.Error()
		}
		code, text := r.post(t, client, "/admit/granular", string(body))
		var answer admissionv1.AdmissionReview
		if code != http.StatusOK || json.Unmarshal([]byte(text), &answer) != nil {
			return http.StatusInternalServerError, text
		}
		if answer.Response.Allowed {
			return http.StatusOK, ""
		}
		return http.StatusForbidden, answer.Response.Result.Message
	}
}

func (r *running) get(t testing.TB, client *http.Client, path string) (int, string) {
	t.Helper()
	response, err := client.Get(r.url(path))
	if err != nil {
		return 0, err.Error()
	}
	return read(t, response)
}

func (r *running) post(t testing.TB, client *http.Client, path, body string) (int, string) {
	t.Helper()
	response, err := client.Post(r.url(path), "application/json", strings.NewReader(body))
	if err != nil {
		return 0, err.Error()
	}
	return read(t, response)
}

func read(t testing.TB, response *http.Response) (int, string) {
	t.Helper()
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, 20*time.Second, true, func(context.Context) (bool, error) { return condition(), nil })
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

const scaling = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u-1","operation":"UPDATE",
	"kind":{"group":"apps","version":"v1","kind":"Deployment"},"resource":{"group":"apps","version":"v1","resource":"deployments"},"namespace":"shop","name":"web",
	"userInfo":{"username":"alice"},"object":{"spec":{"replicas":2}},"oldObject":{"spec":{"replicas":1}}}}`

const updating = `{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","spec":{"user":"alice","resourceAttributes":{"verb":"update","group":"apps","resource":"deployments","namespace":"shop","name":"web"}}}`

func TestServe_CallersNeedACertificateOfTheClientCA(t *testing.T) {
	r := start(t, nil)
	foreign := newAuthority(t, "another ca")
	for _, path := range []string{"/admit/granular", "/admit/uncovered", "/admit/schemas", "/authorize", "/authorize/conditionSetChain", "/conditions/conditionSetChain", "/metrics"} {
		for name, client := range map[string]*http.Client{"none": client509(t, r.serving, nil), "of another CA": client509(t, r.serving, foreign)} {
			if code, text := r.post(t, client, path, scaling); code != http.StatusUnauthorized || !strings.Contains(text, "--client-ca-file") {
				t.Errorf("%s with %s: %d %s", path, name, code, text)
			}
		}
		if code, text := r.post(t, client509(t, r.serving, r.serving), path, "{}"); code == http.StatusUnauthorized {
			t.Errorf("%s: %s", path, text)
		}
	}
	for _, path := range []string{"/livez", "/healthz", "/readyz"} {
		if code, text := r.get(t, client509(t, r.serving, nil), path); code != http.StatusOK && path != "/readyz" {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
}

func TestServe_ReadyOnceSchemasAndDiscoveryAreThere(t *testing.T) {
	r := start(t, func(r *running) { r.api.down = true })
	client := client509(t, r.serving, r.serving)
	if code, text := r.get(t, client, "/readyz"); code != http.StatusInternalServerError || !strings.Contains(text, "[-]schemas") || !strings.Contains(text, "[-]discovery") {
		t.Errorf("without an API server: %d %s", code, text)
	}
	if code, _ := r.get(t, client, "/livez"); code != http.StatusOK {
		t.Errorf("not alive: %d", code)
	}
	// /authorize allows nothing until discovery has shown which resources are stored.
	if code, text := r.post(t, client, "/authorize", updating); code != http.StatusOK || strings.Contains(text, `"allowed":true`) {
		t.Errorf("before discovery: %d %s", code, text)
	}
	r.api.set(func() { r.api.down, r.api.holds = false, []string{"get", "granular", "granular:scale"} })
	eventually(t, "ready", func() bool { code, _ := r.get(t, client, "/readyz"); return code == http.StatusOK })
	if code, text := r.post(t, client, "/authorize", updating); code != http.StatusOK || !strings.Contains(text, `"allowed":true`) || !strings.Contains(text, `"reason":"granular:`) {
		t.Errorf("A1: %d %s", code, text)
	}
	if code, text := r.post(t, client, "/admit/granular", scaling); code != http.StatusOK || !strings.Contains(text, `"allowed":true`) {
		t.Errorf("C1: %d %s", code, text)
	}
	if code, text := r.get(t, client, "/readyz?verbose"); code != http.StatusOK || strings.Contains(text, "[!]") {
		t.Errorf("%d %s", code, text)
	}
}

func TestP4_AuthorizerThatIsDownIsAnError(t *testing.T) {
	r := start(t, nil)
	client := client509(t, r.serving, r.serving)
	eventually(t, "ready", func() bool { code, _ := r.get(t, client, "/readyz"); return code == http.StatusOK })
	r.api.set(func() { r.api.down = true })
	if code, text := r.post(t, client, "/admit/granular", scaling); code != http.StatusOK || !strings.Contains(text, `"allowed":false`) || !strings.Contains(text, `"code":500`) {
		t.Errorf("got %d %s", code, text)
	}
	if code, text := r.post(t, client, "/authorize", updating); code != http.StatusInternalServerError {
		t.Errorf("got %d %s", code, text)
	}
}

func TestServe_Metrics(t *testing.T) {
	r := start(t, nil)
	client := client509(t, r.serving, r.serving)
	eventually(t, "ready", func() bool { code, _ := r.get(t, client, "/readyz"); return code == http.StatusOK })
	r.post(t, client, "/admit/granular", scaling)
	r.post(t, client, "/admit/granular", "no JSON")
	code, text := r.get(t, client, "/metrics")
	if code != http.StatusOK {
		t.Fatalf("%d %s", code, text)
	}
	for _, want := range []string{
		`fieldperm_reviews_total{endpoint="granular",result="denied"} 1`, `fieldperm_reviews_total{endpoint="granular",result="refused"} 1`,
		`fieldperm_review_checks_bucket{endpoint="granular",le="3"} 1`, `fieldperm_review_duration_seconds_count{endpoint="granular"} `,
		`fieldperm_schema_kinds{state="failed"} 0`, `fieldperm_schema_faults 0`, `[ALPHA]`, "go_goroutines",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s", want)
		}
	}
}

func TestServe_DrainsBeforeItEnds(t *testing.T) {
	r := start(t, func(r *running) { r.options.ShutdownDelay = 2 * time.Second })
	client := client509(t, r.serving, r.serving)
	eventually(t, "ready", func() bool { code, _ := r.get(t, client, "/readyz"); return code == http.StatusOK })
	release := make(chan struct{})
	r.api.set(func() { r.api.holds, r.api.hold = []string{"update"}, release })
	answered := make(chan string, 1)
	go func() {
		code, text := r.post(t, client, "/admit/granular", scaling)
		answered <- fmt.Sprint(code, " ", text)
	}()
	<-r.api.asked
	r.stop()
	// It continues to serve, but /readyz announces the end.
	eventually(t, "not ready", func() bool {
		code, text := r.get(t, client, "/readyz")
		return code == http.StatusInternalServerError && strings.Contains(text, "[-]shutdown")
	})
	eventually(t, "closed", func() bool {
		connection, err := net.Dial("tcp", r.Addr().String())
		if err == nil {
			connection.Close()
		}
		return err != nil
	})
	select {
	case err := <-r.done:
		t.Fatalf("ended (%v) before its last answer", err)
	default:
	}
	close(release)
	if got := <-answered; !strings.HasPrefix(got, "200 ") || !strings.Contains(got, `"allowed":true`) {
		t.Errorf("the request in flight got %s", got)
	}
	if err := <-r.done; err != nil {
		t.Error(err)
	}
}

func TestServe_CertificatesAreReadAgain(t *testing.T) {
	r := start(t, nil)
	another := newAuthority(t, "another ca")
	if code, _ := r.get(t, client509(t, r.serving, another), "/metrics"); code != http.StatusUnauthorized {
		t.Fatalf("got %d", code)
	}
	certificate, key := another.issue(t, "fieldperm")
	replace(t, r.options.ClientCAFile, another.pem)
	replace(t, r.options.SecureServing.ServerCert.CertKey.KeyFile, key)
	replace(t, r.options.SecureServing.ServerCert.CertKey.CertFile, certificate)
	eventually(t, "new certificates", func() bool {
		code, _ := r.get(t, client509(t, another, another), "/metrics")
		return code == http.StatusOK
	})
	if code, _ := r.get(t, client509(t, another, r.serving), "/metrics"); code != http.StatusUnauthorized {
		t.Errorf("a CA that was taken away still counts: %d", code)
	}
}

// replace replaces a file atomically, as a kubelet updates a mounted Secret.
func replace(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.Rename(write(t, filepath.Dir(path), "new", content), path); err != nil {
		t.Fatal(err)
	}
}

func TestServe_PanicIsA500(t *testing.T) {
	for name, cause := range map[string]any{"error": errors.New("boom"), "text": "boom"} {
		w := httptest.NewRecorder()
		recovered(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(cause) })).ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/admit/granular", nil))
		if w.Code != http.StatusInternalServerError || strings.Contains(w.Body.String(), "boom") {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
	defer func() {
		if r, _ := recover().(error); !errors.Is(r, http.ErrAbortHandler) {
			t.Error("an abort is swallowed")
		}
	}()
	recovered(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
}

func TestStart_RefusesBadOptions(t *testing.T) {
	api := newFakeAPI(t)
	for name, c := range map[string]struct {
		change func(*testing.T, *Options)
		want   string
	}{
		"no client CA":                         {func(_ *testing.T, o *Options) { o.ClientCAFile = "" }, "--client-ca-file"},
		"no certificate":                       {func(_ *testing.T, o *Options) { o.SecureServing.ServerCert.CertKey.CertFile = "" }, "--tls-cert-file"},
		"no key":                               {func(_ *testing.T, o *Options) { o.SecureServing.ServerCert.CertKey.KeyFile = "" }, "--tls-private-key-file"},
		"client CA is gone":                    {func(_ *testing.T, o *Options) { o.ClientCAFile += ".gone" }, "--client-ca-file"},
		"no checks":                            {func(_ *testing.T, o *Options) { o.MaxChecks = 0 }, "--max-checks"},
		"no bytes":                             {func(_ *testing.T, o *Options) { o.MaxRequestBytes = 0 }, "--max-request-bytes"},
		"negative time":                        {func(_ *testing.T, o *Options) { o.DecisionCacheTTL = -1 }, "--decision-cache-ttl"},
		"wildcard group":                       {func(_ *testing.T, o *Options) { o.AggregatedGroups = []string{"*"} }, "--aggregated-groups"},
		"no kubeconfig there":                  {func(_ *testing.T, o *Options) { o.Kubeconfig += ".gone" }, "--kubeconfig"},
		"port":                                 {func(_ *testing.T, o *Options) { o.SecureServing.Listener, o.SecureServing.BindPort = nil, 70000 }, "--secure-port"},
		"no authorization configuration there": {func(_ *testing.T, o *Options) { o.AuthorizationConfig = "/nope.yaml" }, "--authorization-config: "},
		"faulty authorization configuration": {func(t *testing.T, o *Options) {
			o.AuthorizationConfig = write(t, t.TempDir(), "chain.yaml", []byte("apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers:\n- {type: RBAC, name: rbac}\n- {type: RBAC, name: rbac2}\n"))
		}, "chain.yaml:5: authorizers[1]."},
		"faulty authentication configuration": {func(t *testing.T, o *Options) {
			o.AuthenticationConfig = write(t, t.TempDir(), "callers.yaml", []byte("apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\njwt:\n- issuer: {url: 'http://example.com', audiences: [a]}\n  claimMappings: {username: {claim: sub, prefix: ''}}\n"))
		}, "callers.yaml:4: jwt[0].issuer.url: "},
		"token users without issuers": {func(_ *testing.T, o *Options) { o.WebhookTokenUsers = []string{"x"} }, "--webhook-token-users: needs --authentication-config"},
		"anonymous token user":        {func(_ *testing.T, o *Options) { o.WebhookTokenUsers = []string{"system:anonymous"} }, "--webhook-token-users: \"system:anonymous\""},
		"faulty schema file": {func(t *testing.T, o *Options) {
			o.PermissionSchemas = []string{write(t, t.TempDir(), "bad.yaml", []byte("apiVersion: fieldperm.dev/v1alpha1\nkind: PermissionSchema\nmetadata: {name: x}\nspec: {group: apps, kind: Deployment, permissions: [{path: .spec.nope, verb: example.com/nope}]}\n"))}
		}, "bad.yaml:/spec/permissions/0: "},
	} {
		t.Run(name, func(t *testing.T) {
			o, _, _ := testOptions(t, api)
			c.change(t, o)
			if _, err := o.Complete(t.Context()); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q in it", err, c.want)
			}
		})
	}
}

func TestCommand_HelpNamesEveryFlag(t *testing.T) {
	serve, _, err := NewCommand().Find([]string{"serve"})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"kubeconfig", "bind-address", "secure-port", "tls-cert-file", "tls-private-key-file", "client-ca-file", "permission-schemas", "max-checks", "decision-cache-ttl", "max-request-bytes", "aggregated-groups", "authorization-config", "authentication-config", "webhook-token-users"} {
		if f := serve.Flags().Lookup(name); f == nil || f.Usage == "" {
			t.Errorf("--%s is not there", name)
		}
	}
}
