package reviewapi

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/internal/rbac"
	"github.com/fieldperm/fieldperm/internal/report"
	"github.com/fieldperm/fieldperm/internal/review"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/load"
	"github.com/fieldperm/fieldperm/test/corpus"
)

// testdata is the directory testdata of the repository.
const testdata = "../../testdata"

// throughCLI are the scenarios that are also sent to kubectl fieldperm review. They are few, because each call compiles all
// schemas.
var throughCLI = []string{
	"attack-labels-case-of-names", "attack-namespace-finalize", "attack-rename-container", "rule-c2-nothing-above-a-barrier-counts",
	"rule-c4-delete-is-never-granular", "rule-c5-create-charges-what-is-present", "rule-c6-update-or-patch", "rule-d8-ownership-is-a-power",
	"rule-d11-subresources-are-diffed-whole", "rule-p1-general-to-specific-and-abort", "rule-p3-too-many-checks", "rule-p6-dry-run-is-decided",
	"use-case-10-namespace-owner", "use-case-24-value-not-for-everyone",
}

// TestP6_SameAnswerAsTheCommandLine asks the recorded reviews of the corpus: the author about itself, and sarah about the author.
// It compares the bytes with those of the command line, or else with the report of the core.
func TestP6_SameAnswerAsTheCommandLine(t *testing.T) {
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
			grants := filepath.Join(t.TempDir(), "grants.yaml")
			if err := os.WriteFile(grants, raw, 0o600); err != nil {
				t.Fatal(err)
			}
			f := corpusFixture(t, s, raw)
			for i, step := range scenario.Reviewed() {
				request, err := scenario.Request(step)
				if err != nil {
					t.Fatal(err)
				}
				if err := complete(request); err != nil {
					t.Fatalf("step %q: an API server's own request is refused: %v", step.Name, err)
				}
				body := encode(t, request)
				want, code := reported(t, f.Reviewer, request)
				if slices.Contains(throughCLI, scenario.Name) && i < 4 && code == http.StatusOK {
					want = printed(t, body, grants, files)
				}
				self := f.post(named(step.User, scenario.Users[step.User].Groups...), body)
				other := f.post(named("sarah"), body)
				for who, w := range map[string]int{"self": self.Code, "other": other.Code} {
					if w != code {
						t.Errorf("step %q, asked by %s: code %d, want %d: %s", step.Name, who, w, code, self.Body)
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

// encode writes an AdmissionReview that contains the exact bytes of the objects.
func encode(t testing.TB, request *admissionv1.AdmissionRequest) string {
	t.Helper()
	bare := request.DeepCopy()
	bare.Object.Raw, bare.OldObject.Raw = nil, nil
	raw, err := json.Marshal(bare)
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.NewReplacer(`"object":null,`, "", `"oldObject":null,`, "").Replace(string(raw[1 : len(raw)-1]))
	for field, object := range map[string][]byte{"object": request.Object.Raw, "oldObject": request.OldObject.Raw} {
		if object != nil {
			fields += `,"` + field + `":` + string(object)
		}
	}
	return question(fields)
}

// reported returns the report of the core, and the HTTP status for it.
func reported(t *testing.T, reviewer *admission.Reviewer, request *admissionv1.AdmissionRequest) (string, int) {
	t.Helper()
	decided, err := report.Decide(t.Context(), reviewer, request, 0)
	if err != nil {
		return "", codeOf(err)
	}
	raw, err := decided.JSON()
	if err != nil {
		t.Fatal(err)
	}
	return string(raw), http.StatusOK
}

// printed returns the output of the command line.
func printed(t *testing.T, body, grants string, files []string) string {
	t.Helper()
	var out, errs bytes.Buffer
	command := review.NewCommand(genericiooptions.IOStreams{In: strings.NewReader(body), Out: &out, ErrOut: &errs})
	command.SetArgs([]string{"-f", "-", "-o", "json", "--grants", grants, "--crd", files[0], "--permissions", strings.Join(files[1:], ",")})
	if err := command.ExecuteContext(t.Context()); review.ExitCode(err) > 1 {
		t.Fatalf("the command line: %v\n%s", err, errs.String())
	}
	return out.String()
}
