package review

import (
	"context"
	"net/http"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/internal/rbac"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/load"
	"github.com/fieldperm/fieldperm/test/corpus"
)

// testdata is the directory testdata of the repository.
const testdata = "../../testdata"

// TestP6_SameAnswerAsTheCore asks the recorded reviews of the corpus: the author about itself, and sarah about the author. It compares
// the bytes with those of the core's report. internal/plugin compares those of the command line.
func TestP6_SameAnswerAsTheCore(t *testing.T) {
	all, err := corpus.Load(testdata)
	if err != nil {
		t.Fatal(err)
	}
	files, err := corpus.SchemaFiles(testdata)
	if err != nil {
		t.Fatal(err)
	}
	s, errs := load.Offline(files)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	reports := 0
	for _, scenario := range all {
		t.Run(scenario.Name, func(t *testing.T) {
			raw, err := scenario.GrantsYAML()
			if err != nil {
				t.Fatal(err)
			}
			f := corpusFixture(t, s, raw)
			for _, step := range scenario.Reviewed() {
				request, err := scenario.Request(step)
				if err != nil {
					t.Fatal(err)
				}
				if err := complete(request); err != nil {
					t.Fatalf("step %q: an API server's own request is refused: %v", step.Name, err)
				}
				raw, err := corpus.EncodeReview(request)
				if err != nil {
					t.Fatal(err)
				}
				body := string(raw)
				want, code := reported(t, f.Reviewer, request)
				self := f.post(named(step.User, scenario.Users[step.User].Groups...), body)
				other := f.post(named("sarah"), body)
				for caller, w := range map[string]int{"self": self.Code, "other": other.Code} {
					if w != code {
						t.Errorf("step %q, asked by %s: code %d, want %d: %s", step.Name, caller, w, code, self.Body)
					}
				}
				if code == http.StatusOK && (self.Body.String() != want || other.Body.String() != want) {
					t.Errorf("step %q differs\nself  %s\nother %s\nwant  %s", step.Name, self.Body, other.Body, want)
				}
				if code == http.StatusOK {
					reports++
				}
			}
		})
	}
	if reports < 300 {
		t.Errorf("%d reports were compared only", reports)
	}
}

func corpusFixture(t *testing.T, s *schema.Schema, grants []byte) *fixture {
	t.Helper()
	decoded, err := rbac.Decode("grants", grants)
	if err != nil {
		t.Fatal(err)
	}
	a, err := rbac.New(decoded)
	if err != nil {
		t.Fatal(err)
	}
	f := newFixture(t)
	f.MaxBytes = 8 << 20
	f.Schema = func() *schema.Schema { return s }
	f.Reviewer = &admission.Reviewer{Schema: f.Schema, Authorizer: func(req *admissionv1.AdmissionRequest) fieldperm.Authorizer { return granted{a, req} }}
	return f
}

// granted is RBAC.
type granted struct {
	rbac    *rbac.Authorizer
	request *admissionv1.AdmissionRequest
}

func (g granted) Authorize(ctx context.Context, verb string, _ bool) (fieldperm.AuthorizerDecision, error) {
	sent := g.request.RequestResource
	decision, reason, err := g.rbac.Authorize(ctx, authorizer.AttributesRecord{
		User: &user.DefaultInfo{Name: g.request.UserInfo.Username, Groups: g.request.UserInfo.Groups}, Verb: verb, Namespace: g.request.Namespace, Name: g.request.Name,
		APIGroup: sent.Group, APIVersion: sent.Version, Resource: sent.Resource, Subresource: g.request.RequestSubResource, ResourceRequest: true,
	})
	return fieldperm.AuthorizerDecision{Outcome: fieldperm.OutcomeOf(decision == authorizer.DecisionAllow), Reason: reason}, err
}

// reported returns the report of the core, and the HTTP status for it.
func reported(t *testing.T, reviewer *admission.Reviewer, request *admissionv1.AdmissionRequest) (string, int) {
	t.Helper()
	decided, err := Decide(t.Context(), reviewer, request, 0)
	if err != nil {
		return "", codeOf(err)
	}
	raw, err := decided.JSON()
	if err != nil {
		t.Fatal(err)
	}
	return string(raw), http.StatusOK
}
