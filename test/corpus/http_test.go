package corpus

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/util/cert"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/internal/rbac"
	"github.com/fieldperm/fieldperm/internal/server"
)

// TestHTTP_Scenarios runs every scenario against fieldperm's real server over TLS, as an API server calls it. The test answers its
// SubjectAccessReviews as RBAC would.
func TestHTTP_Scenarios(t *testing.T) {
	for _, failing := range []bool{false, true} {
		f := startServer(t, failing)
		for _, s := range scenarios(t) {
			for _, step := range s.Reviewed() {
				if (step.ErrorCode != 0 && len(s.Users[step.User].Fails) > 0) != failing || len(s.Users[step.User].Reasons) > 0 {
					// The tests of the core check the reasons: the fake API server would have to invent them.
					continue
				}
				t.Run(s.Name+"/"+step.Name, func(t *testing.T) { f.run(t, s, step) })
			}
		}
	}
}

// TestHTTP_P8_SameQuestionIsAskedOnce: the authorizer is not asked again while the decision is in the cache.
func TestHTTP_P8_SameQuestionIsAskedOnce(t *testing.T) {
	f := startServer(t, false)
	for _, s := range scenarios(t) {
		if s.Name != "rule-p1-general-to-specific-and-abort" {
			continue
		}
		step := &s.Steps[0]
		f.run(t, s, step)
		asked := f.asked.Load()
		if want := int64(len(step.Checks)); asked != want {
			t.Errorf("asked %d times, want %d", asked, want)
		}
		f.run(t, s, step)
		if again := f.asked.Load(); again != asked {
			t.Errorf("asked %d times more for the same request", again-asked)
		}
		return
	}
	t.Fatal("the scenario is gone")
}

// fixture is a running server and the fake API server that answers its checks.
type fixture struct {
	url    string
	client *http.Client
	chain  authorizer.Authorizer
	asked  atomic.Int64
}

func startServer(t *testing.T, failing bool) *fixture {
	t.Helper()
	f := &fixture{}
	if !failing {
		f.chain = grantsOf(t, scenarios(t))
	}
	api := httptest.NewServer(http.HandlerFunc(f.reviews))
	t.Cleanup(api.Close)
	t.Cleanup(api.CloseClientConnections)

	dir := t.TempDir()
	certificate, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	must(t, err)
	write := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, content, 0o600))
		return path
	}
	options := server.NewOptions()
	options.Kubeconfig = write("kubeconfig", fmt.Appendf(nil, "{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a, user: a}}], users: [{name: a, user: {}}], clusters: [{name: a, cluster: {server: %q}}]}", api.URL))
	options.PermissionSchemas, err = SchemaFiles(root)
	must(t, err)
	caller, callerCA := issueCaller(t)
	options.ClientCAFile = write("callers.crt", callerCA)
	options.SecureServing.ServerCert.CertKey.CertFile = write("serving.crt", certificate)
	options.SecureServing.ServerCert.CertKey.KeyFile = write("serving.key", key)
	options.ShutdownDelay = 0
	options.SecureServing.Listener, err = net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	s, err := options.Complete(ctx)
	must(t, err)
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		f.client.CloseIdleConnections()
		cancel()
		must(t, <-done)
	})
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(certificate)
	f.url = "https://" + s.Addr().String()
	f.client = &http.Client{Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: pool, Certificates: []tls.Certificate{caller}},
		ForceAttemptHTTP2: true,
	}}
	for _, check := range []string{"schemas", "policies"} {
		must(t, wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
			response, err := f.client.Get(f.url + "/readyz/" + check)
			if err != nil {
				return false, err
			}
			return response.StatusCode == http.StatusOK, response.Body.Close()
		}))
	}
	return f
}

// run posts the step's review to both webhooks, as an API server does, and compares with the core.
func (f *fixture) run(t *testing.T, s *Scenario, step *Step) {
	req, err := s.Request(step)
	must(t, err)
	result, coreErr := s.review(t, step, req, &bytes.Buffer{})
	if len(req.Object.Raw) > 0 && !json.Valid(req.Object.Raw) {
		f.refuses(t, req)
		return
	}
	response := f.post(t, admission.Granular, req)
	if response.UID != req.UID {
		t.Errorf("uid %q, want %q", response.UID, req.UID)
	}
	if response.Allowed != step.Allowed {
		t.Fatalf("allowed = %v, want %v: %+v", response.Allowed, step.Allowed, response.Result)
	}
	if step.ErrorCode != 0 {
		if response.Result == nil || response.Result.Code != step.ErrorCode || response.Result.Code != admission.Code(coreErr) {
			t.Errorf("result %+v, want code %d", response.Result, step.ErrorCode)
		}
		return
	}
	f.compare(t, step, response, result)
	if req.Operation != admissionv1.Delete {
		if also := f.post(t, admission.Uncovered, req); step.Allowed && !also.Allowed {
			t.Errorf("uncovered denies: %s", also.Result.Message)
		}
	}
}

// refuses tests a step whose object is no JSON: such an object cannot be in a review.
func (f *fixture) refuses(t *testing.T, req *admissionv1.AdmissionRequest) {
	t.Helper()
	body, err := EncodeReview(req)
	must(t, err)
	response, err := f.client.Post(f.url+"/admit/granular", "application/json", bytes.NewReader(body))
	must(t, err)
	must(t, response.Body.Close())
	if response.StatusCode != http.StatusBadRequest {
		t.Errorf("code %d, want 400", response.StatusCode)
	}
}

func (f *fixture) compare(t *testing.T, step *Step, response *admissionv1.AdmissionResponse, result *admission.Result) {
	t.Helper()
	if got := response.AuditAnnotations[admission.AnnotationMode]; got != string(result.Mode) {
		t.Errorf("mode %q, want %q", got, result.Mode)
	}
	if got := response.AuditAnnotations[admission.AnnotationChecks]; got != strconv.Itoa(len(result.Checks)) {
		t.Errorf("%s checks, want %d", got, len(result.Checks))
	}
	if step.Allowed {
		return
	}
	status := response.Result
	if status == nil || status.Code != http.StatusForbidden || status.Reason != "Forbidden" {
		t.Fatalf("result %+v, want 403 Forbidden", status)
	}
	// The server asks for the verbs of a level concurrently, and must come to the same decision.
	if status.Message != result.Message {
		t.Errorf("message %q, want %q", status.Message, result.Message)
	}
	if field := result.Denial.Field(); field != "" && (len(status.Details.Causes) == 0 || status.Details.Causes[0].Field != field) {
		t.Errorf("causes %+v, want one with the field %q first", status.Details.Causes, field)
	}
}

func (f *fixture) post(t *testing.T, endpoint admission.Endpoint, req *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	t.Helper()
	body, err := EncodeReview(req)
	must(t, err)
	response, err := f.client.Post(f.url+"/admit/"+string(endpoint)+"?timeout=10s", "application/json", bytes.NewReader(body))
	must(t, err)
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	must(t, err)
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(raw, &review); err != nil || review.Response == nil {
		t.Fatalf("%s: %d: %s", endpoint, response.StatusCode, raw)
	}
	return review.Response
}

// empty are the answers of an API server that serves no resources, by path.
var empty = map[string]string{
	"/openapi/v3": `{"paths":{}}`,
	"/api":        `{"kind":"APIVersions","versions":[]}`,
	"/apis":       `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`,
	"/apis/apiextensions.k8s.io/v1/customresourcedefinitions": `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinitionList","metadata":{"resourceVersion":"1"},"items":[]}`,
	"/apis/apiregistration.k8s.io/v1/apiservices":             `{"apiVersion":"apiregistration.k8s.io/v1","kind":"APIServiceList","metadata":{"resourceVersion":"1"},"items":[]}`,
}

// reviews answers SubjectAccessReviews. For all other requests it is an API server without resources and events.
func (f *fixture) reviews(w http.ResponseWriter, r *http.Request) {
	if body := empty[r.URL.Path]; body != "" {
		w.Header().Set("Content-Type", "application/json")
		query := r.URL.Query()
		switch {
		case query.Get("sendInitialEvents") != "":
			http.Error(w, "streams of lists are not known here", http.StatusBadRequest)
		case query.Get("watch") != "":
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		default:
			_, _ = io.WriteString(w, body)
		}
		return
	}
	if !strings.HasSuffix(r.URL.Path, "/subjectaccessreviews") {
		http.NotFound(w, r)
		return
	}
	if f.chain == nil {
		http.Error(w, "etcd is away", http.StatusInternalServerError)
		return
	}
	f.asked.Add(1)
	var review authorizationv1.SubjectAccessReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Spec.ResourceAttributes == nil {
		http.Error(w, "no SubjectAccessReview about a resource", http.StatusBadRequest)
		return
	}
	a := review.Spec.ResourceAttributes
	_, marked := review.Spec.Extra[admission.GenericOnlyKey]
	if generic := !strings.HasPrefix(a.Verb, "granular"); generic != marked {
		// A4, the first lock: checks for generic permissions carry the key, granular ones do not.
		http.Error(w, fmt.Sprintf("verb %q, generic only: %v", a.Verb, marked), http.StatusBadRequest)
		return
	}
	decision, reason, err := f.chain.Authorize(r.Context(), authorizer.AttributesRecord{
		User: &user.DefaultInfo{Name: review.Spec.User, Groups: review.Spec.Groups}, Verb: a.Verb, Namespace: a.Namespace,
		APIGroup: a.Group, APIVersion: a.Version, Resource: a.Resource, Subresource: a.Subresource, Name: a.Name, ResourceRequest: true,
	})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	review.Status = authorizationv1.SubjectAccessReviewStatus{Allowed: decision == authorizer.DecisionAllow, Reason: reason}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	if err := json.NewEncoder(w).Encode(review); err != nil {
		panic(http.ErrAbortHandler)
	}
}

// grantsOf is RBAC with the grants of all scenarios, as in the cluster.
func grantsOf(t *testing.T, all []*Scenario) authorizer.Authorizer {
	t.Helper()
	var g rbac.Grants
	for _, s := range all {
		raw, err := s.GrantsYAML()
		must(t, err)
		one, err := rbac.Decode(s.Name, raw)
		must(t, err)
		g.Roles, g.RoleBindings = append(g.Roles, one.Roles...), append(g.RoleBindings, one.RoleBindings...)
		g.ClusterRoles, g.ClusterRoleBindings = append(g.ClusterRoles, one.ClusterRoles...), append(g.ClusterRoleBindings, one.ClusterRoleBindings...)
	}
	a, err := rbac.New(g)
	must(t, err)
	return a
}

// issueCaller makes the API server's client certificate and the CA that signed it.
func issueCaller(t *testing.T) (tls.Certificate, []byte) {
	t.Helper()
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	ca, err := cert.NewSelfSignedCACert(cert.Config{CommonName: "callers"}, caKey)
	must(t, err)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "kube-apiserver"},
		NotBefore: ca.NotBefore, NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, ca, key.Public(), caKey)
	must(t, err)
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}, pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: ca.Raw})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
