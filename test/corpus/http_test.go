package corpus

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/util/cert"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/internal/rbac"
	"github.com/fieldperm/fieldperm/internal/server"
	"github.com/fieldperm/fieldperm/test/cluster"
	"github.com/fieldperm/fieldperm/test/fakeapi"
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
	mux := fakeapi.Mux()
	mux.Handle("POST "+fakeapi.ReviewsPath, fakeapi.Reviews(f.review))

	dir := t.TempDir()
	certificate, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	must(t, err)
	write := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, content, 0o600))
		return path
	}
	options := server.NewOptions()
	options.Kubeconfig = fakeapi.Plain(t, mux).Kubeconfig(t)
	options.PermissionSchemas, err = SchemaFiles(root)
	must(t, err)
	callers, err := cluster.NewAuthority("callers")
	must(t, err)
	callerCA, err := callers.Bundle()
	must(t, err)
	callerCert, callerKey, err := callers.Issue(cluster.Leaf{Name: "kube-apiserver", Usage: x509.ExtKeyUsageClientAuth})
	must(t, err)
	caller, err := tls.X509KeyPair(callerCert, callerKey)
	must(t, err)
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

// review answers a SubjectAccessReview.
func (f *fixture) review(r *http.Request, review *authorizationv1.SubjectAccessReview) error {
	if f.chain == nil {
		return errors.New("etcd is away")
	}
	f.asked.Add(1)
	if review.Spec.ResourceAttributes == nil {
		return apierrors.NewBadRequest("no SubjectAccessReview about a resource")
	}
	a := review.Spec.ResourceAttributes
	_, marked := review.Spec.Extra[admission.GenericOnlyKey]
	if generic := !strings.HasPrefix(a.Verb, "granular"); generic != marked {
		// A4, the first lock: checks for generic permissions carry the key, granular ones do not.
		return apierrors.NewBadRequest(fmt.Sprintf("verb %q, generic only: %v", a.Verb, marked))
	}
	decision, reason, err := f.chain.Authorize(r.Context(), authorizer.AttributesRecord{
		User: &user.DefaultInfo{Name: review.Spec.User, Groups: review.Spec.Groups}, Verb: a.Verb, Namespace: a.Namespace,
		APIGroup: a.Group, APIVersion: a.Version, Resource: a.Resource, Subresource: a.Subresource, Name: a.Name, ResourceRequest: true,
	})
	review.Status = authorizationv1.SubjectAccessReviewStatus{Allowed: decision == authorizer.DecisionAllow, Reason: reason}
	return err
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

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
