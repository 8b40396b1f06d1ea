//go:build integration

package plugin

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/internal/authz"
	"github.com/fieldperm/fieldperm/internal/policies"
	"github.com/fieldperm/fieldperm/internal/review"
	"github.com/fieldperm/fieldperm/internal/sources"
)

const (
	// seed is the seed of all random choices.
	seed = 20261123
	// questionsEach is the number of questions for each of the drawn cluster states.
	questionsEach = 250
	// commandsEach is the number of questions in a round for which the complete command runs, which reads the cluster again.
	commandsEach = 2
)

// TestCluster_TheCommandAnswersAsTheWebhook asks a running fieldperm-webhook and the command the same thousand questions. It
// compares the decisions byte for byte: the command's report with that of POST /review, and with the response of the admission
// webhook.
func TestCluster_TheCommandAnswersAsTheWebhook(t *testing.T) {
	p := newPlane(t)
	random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // The same questions each time.
	ask := newQuestions(t, random, p.snapshot().Schema)
	p.grant(ask.grants())
	outcomes, rounds := map[string]int{}, max(2, draws(4))
	for round := range rounds {
		p.draw(random, round)
		known := p.snapshot()
		set, err := p.options(nil, io.Discard).policies(t.Context())
		must(t, err)
		chain := p.chain()
		for i := range questionsEach {
			q := ask.next()
			body := q.body(t)
			code, stdout := p.ask(known, set, chain, body)
			if i < commandsEach {
				if whole, out := p.command(body); whole != code || out != stdout {
					t.Fatalf("round %d, question %d: the command answers %d %s, by what it had read before %d %s", round, i, whole, out, code, stdout)
				}
			}
			outcome := p.compare(fmt.Sprintf("round %d, question %d (%s)", round, i, q.about()), code, stdout, body)
			outcomes[outcome]++
			outcomes[q.sort]++
			if strings.Contains(stdout, v1alpha1.ConditionalPolicyKind) {
				outcomes["by a policy"]++
			}
			if strings.Contains(stdout, "is not met") {
				outcomes["not met"]++
			}
			outcomes[string(q.Operation)]++
		}
	}
	t.Logf("%d questions: %v", rounds*questionsEach, outcomes)
	// If all questions had the same decision, the test would prove nothing.
	if outcomes["by a policy"] < rounds {
		t.Errorf("a policy denies %d questions", outcomes["by a policy"])
	}
	for _, outcome := range []string{"allowed generic", "allowed granular", "allowed uncovered", "denied granular", "denied uncovered", "denied none", "undecided"} {
		if outcomes[outcome] == 0 {
			t.Errorf("no question is %s", outcome)
		}
	}
	for _, sort := range []string{"recorded", "custom", "aggregated", "CREATE", "UPDATE", "DELETE", "not met"} {
		if outcomes[sort] < 6*rounds {
			t.Errorf("%d questions are about %s", outcomes[sort], sort)
		}
	}
}

// ask asks the command with a schema and a chain that were read before.
func (p *plane) ask(known *sources.Snapshot, set *policies.Set, chain *authz.Chain, body []byte) (int, string) {
	p.t.Helper()
	var out bytes.Buffer
	o := p.options(body, &out)
	request, err := o.reviewRequest()
	if err == nil {
		err = o.decide(p.t.Context(), known, set, chain, request)
	}
	return p.exit(err, out.String())
}

// command runs the complete command.
func (p *plane) command(body []byte, args ...string) (int, string) {
	p.t.Helper()
	var out, warnings bytes.Buffer
	cmd := NewReviewCommand(genericiooptions.IOStreams{In: bytes.NewReader(body), Out: &out, ErrOut: &warnings})
	cmd.SetArgs(append([]string{"-f", "-", "-o", "json", "--kubeconfig", p.asker.Kubeconfig}, args...))
	return p.exit(cmd.ExecuteContext(p.t.Context()), out.String())
}

func (p *plane) exit(err error, stdout string) (int, string) {
	p.t.Helper()
	code := ExitCode(err)
	if (code == 2) != (stdout == "") {
		p.t.Errorf("exit code %d with output %q: %v", code, stdout, err)
	}
	if code == 2 {
		p.undecided = err
	}
	return code, stdout
}

// compare compares an answer of the command with the webhook's, and returns its outcome.
func (p *plane) compare(what string, code int, stdout string, body []byte) string {
	p.t.Helper()
	status, reviewed := p.post("/review", body)
	if code == 2 {
		if status < 400 {
			p.t.Errorf("%s: the webhook decides, the command does not: %v\n%s", what, p.undecided, reviewed)
		}
		paths := []string{"/admit/granular", "/admit/uncovered"}
		if p.webhooks {
			paths = paths[:1]
		}
		for _, path := range paths {
			if response := p.admit(path, body); response.Allowed || response.Result.Code == http.StatusForbidden {
				p.t.Errorf("%s: %s decides, the command does not: %v\n%+v", what, path, p.undecided, response)
			}
		}
		return "undecided"
	}
	if status != http.StatusOK || reviewed != stdout {
		p.t.Errorf("%s: POST /review answers %d\n%sthe command\n%s", what, status, reviewed, stdout)
	}
	var r review.Report
	must(p.t, json.Unmarshal([]byte(stdout), &r))
	if r.Allowed != (code == 0) {
		p.t.Errorf("%s: exit code %d of %s", what, code, stdout)
	}
	// The match condition of /admit/granular excludes holders of the generic verb.
	path := "/admit/granular"
	for _, check := range r.Checks {
		if check.Allowed && !strings.HasPrefix(check.Verb, "granular") {
			path = "/admit/uncovered"
		}
	}
	response := p.admit(path, body)
	message := ""
	if response.Result != nil {
		message = response.Result.Message
	}
	if response.Allowed != r.Allowed || message != r.Message {
		p.t.Errorf("%s: %s answers allowed=%t %q\nthe command\n%s", what, path, response.Allowed, message, stdout)
	}
	if path == "/admit/granular" && (response.AuditAnnotations["mode"] != r.Mode || response.AuditAnnotations["checks"] != strconv.Itoa(len(r.Checks))) {
		p.t.Errorf("%s: %s annotates %v\nthe command\n%s", what, path, response.AuditAnnotations, stdout)
	}
	if r.Allowed {
		return "allowed " + r.Mode
	}
	return "denied " + r.Mode
}

func (p *plane) admit(path string, body []byte) *admissionv1.AdmissionResponse {
	p.t.Helper()
	status, text := p.post(path, body)
	var answer admissionv1.AdmissionReview
	if err := json.Unmarshal([]byte(text), &answer); err != nil || status != http.StatusOK || answer.Response == nil {
		p.t.Fatalf("%s answers %d %s: %v", path, status, text, err)
	}
	return answer.Response
}

func (p *plane) post(path string, body []byte) (int, string) {
	p.t.Helper()
	for attempt := 0; ; attempt++ {
		answer, err := p.client.Post(p.webhook+path, "application/json", bytes.NewReader(body))
		must(p.t, err)
		text, err := io.ReadAll(answer.Body)
		must(p.t, errors.Join(err, answer.Body.Close()))
		// On a busy machine, the API server may not respond to fieldperm in time.
		if attempt == 5 || !strings.Contains(string(text), "has not answered yet") {
			return answer.StatusCode, string(text)
		}
	}
}

// options returns the options of the command with a question on standard input.
func (p *plane) options(body []byte, out io.Writer) *options {
	o := *p.flags
	o.streams = genericiooptions.IOStreams{In: bytes.NewReader(body), Out: out, ErrOut: io.Discard}
	o.file, o.output = "-", outputJSON
	return &o
}

// snapshot reads the cluster like the command.
func (p *plane) snapshot() *sources.Snapshot {
	p.t.Helper()
	known, err := p.options(nil, io.Discard).schemas(p.t.Context())
	must(p.t, err)
	return known
}

func (p *plane) chain() *authz.Chain {
	p.t.Helper()
	chain, err := p.options(nil, io.Discard).chain(p.t.Context(), &admissionv1.AdmissionRequest{})
	must(p.t, err)
	return chain
}

// await waits until a condition holds.
func (p *plane) await(what string, holds func(context.Context) (bool, error)) {
	p.t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(p.t.Context(), 20*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		var is bool
		is, last = holds(ctx)
		return is && last == nil, nil
	})
	if err != nil {
		p.t.Fatalf("%s: %v", what, errors.Join(err, last))
	}
}

func clientOf(certificate, key, servers []byte) (*http.Client, error) {
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(servers)
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13}}}, nil
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// admissionReview is a question in the form that an API server sends.
type admissionReview struct {
	metav1.TypeMeta `json:",inline"`
	Request         *admissionv1.AdmissionRequest `json:"request"`
}
