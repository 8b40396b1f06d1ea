package plugin

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/internal/authz"
	"github.com/fieldperm/fieldperm/internal/rbac"
	"github.com/fieldperm/fieldperm/internal/review"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/load"
	"github.com/fieldperm/fieldperm/test/corpus"
)

// compared are the scenarios that are sent to the command. They are few, because each call compiles all schemas.
var compared = []string{
	"attack-labels-case-of-names", "attack-namespace-finalize", "attack-rename-container", "rule-c2-nothing-above-a-barrier-counts",
	"rule-c4-delete-is-never-granular", "rule-c5-create-charges-what-is-present", "rule-c6-update-or-patch", "rule-d8-ownership-is-a-power",
	"rule-d11-subresources-are-diffed-whole", "rule-p1-general-to-specific-and-abort", "rule-p3-too-many-checks", "rule-p6-dry-run-is-decided",
	"use-case-10-namespace-owner", "use-case-24-value-not-for-everyone",
}

// TestP6_SameAnswerAsTheAPI asks the first recorded reviews of a scenario by POST /review and by the command, with the same grants. It
// compares the bytes.
func TestP6_SameAnswerAsTheAPI(t *testing.T) {
	const testdata = "../../testdata"
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
	scenarios, reports := 0, 0
	for _, scenario := range all {
		if !slices.Contains(compared, scenario.Name) {
			continue
		}
		scenarios++
		t.Run(scenario.Name, func(t *testing.T) {
			raw, err := scenario.GrantsYAML()
			if err != nil {
				t.Fatal(err)
			}
			grants := filepath.Join(t.TempDir(), "grants.yaml")
			if err := os.WriteFile(grants, raw, 0o600); err != nil {
				t.Fatal(err)
			}
			api := apiOf(t, s, raw)
			steps := scenario.Reviewed()
			for _, step := range steps[:min(4, len(steps))] {
				asked, err := scenario.Request(step)
				if err != nil {
					t.Fatal(err)
				}
				body, err := corpus.EncodeReview(asked)
				if err != nil {
					t.Fatal(err)
				}
				author := &user.DefaultInfo{Name: step.User, Groups: append(scenario.Users[step.User].Groups, user.AllAuthenticated)}
				r := httptest.NewRequest(http.MethodPost, "/review", bytes.NewReader(body))
				r.Header.Set("Content-Type", "application/json")
				w := httptest.NewRecorder()
				api.ReviewHandler().ServeHTTP(w, r.WithContext(request.WithUser(r.Context(), author)))
				if w.Code != http.StatusOK {
					continue // Errors are no reports.
				}
				reports++
				if want := printed(t, body, grants, files); w.Body.String() != want {
					t.Errorf("step %q differs\nPOST /review %s\nthe command  %s", step.Name, w.Body, want)
				}
			}
		})
	}
	if scenarios != len(compared) || reports < 2*len(compared) {
		t.Errorf("%d reports of %d scenarios were compared only", reports, scenarios)
	}
}

// apiOf returns the review API, decided by RBAC. No caller may ask about others.
func apiOf(t *testing.T, s *schema.Schema, grants []byte) review.API {
	t.Helper()
	decoded, err := rbac.Decode("grants", grants)
	if err != nil {
		t.Fatal(err)
	}
	a, err := rbac.New(decoded)
	if err != nil {
		t.Fatal(err)
	}
	current := func() *schema.Schema { return s }
	return review.API{
		Reviewer: &admission.Reviewer{Schema: current, Authorizer: authz.Fixed("RBAC", a).For},
		Schema:   current,
		MayReview: func(context.Context, user.Info) (bool, error) {
			return false, nil
		},
		MaxBytes: 8 << 20,
	}
}

// printed returns the JSON that the command prints.
func printed(t *testing.T, body []byte, grants string, files []string) string {
	t.Helper()
	var out, errs bytes.Buffer
	command := NewReviewCommand(genericiooptions.IOStreams{In: bytes.NewReader(body), Out: &out, ErrOut: &errs})
	command.SetArgs([]string{"-f", "-", "-o", "json", "--grants", grants, "--crd", files[0], "--permissions", strings.Join(files[1:], ",")})
	if err := command.ExecuteContext(t.Context()); ExitCode(err) > 1 {
		t.Fatalf("the command line: %v\n%s", err, errs.String())
	}
	return out.String()
}
