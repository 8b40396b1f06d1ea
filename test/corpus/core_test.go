package corpus

import (
	"bytes"
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/fieldperm"
	"github.com/fieldperm/fieldperm/schema"
)

// TestCore_Scenarios runs every scenario through the core in process, and compares all details of the decisions with decisions.txt.
func TestCore_Scenarios(t *testing.T) {
	for _, s := range scenarios(t) {
		t.Run(s.Name, func(t *testing.T) {
			var golden bytes.Buffer
			for _, step := range s.Reviewed() {
				req, err := s.Request(step)
				if err != nil {
					t.Fatal(err)
				}
				result, err := s.review(t, step, req, &golden)
				check(t, req, step, result, err)
			}
			path := filepath.Join(s.Dir, decisionsFile)
			if *update {
				if err := os.WriteFile(path, golden.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(want, golden.Bytes()) {
				t.Errorf("decisions differ from %s (-update rewrites it):\n%s", path, diffLines(string(want), golden.String()))
			}
		})
	}
}

// review calls the core as both webhooks do, and returns the effective decision: the decision of granular, unless only uncovered denies.
func (s *Scenario) review(t *testing.T, step *Step, req *admissionv1.AdmissionRequest, golden *bytes.Buffer) (*admission.Result, error) {
	t.Helper()
	permissions, err := compiled()
	if err != nil {
		t.Fatal(err)
	}
	reviewer := &admission.Reviewer{
		Schema:     func() *schema.Schema { return permissions },
		Authorizer: func(*admissionv1.AdmissionRequest) fieldperm.Authorizer { return &grants{s: s, step: step, req: req} },
	}
	result, err := reviewer.Review(context.Background(), admission.Granular, req)
	golden.WriteString(step.User + " " + step.Name + "\n" + Render(result, err))
	if err != nil || req.Operation == admissionv1.Delete {
		return result, err
	}
	barred := slices.ContainsFunc(result.Requirements, func(r fieldperm.Requirement) bool { return r.Barred() })
	uncovered, err := reviewer.Review(context.Background(), admission.Uncovered, req)
	if err != nil {
		t.Fatalf("step %q: uncovered: %v", step.Name, err)
	}
	if !barred && !uncovered.Allowed {
		t.Errorf("step %q: has no barrier and yet uncovered denies: %s", step.Name, uncovered.Message)
	}
	if result.Allowed && !uncovered.Allowed {
		t.Errorf("step %q: granular allows and uncovered denies: %s", step.Name, uncovered.Message)
	}
	if barred {
		golden.WriteString(" uncovered\n" + Render(uncovered, nil))
	}
	return result, nil
}

// check compares a decision with the expectation of the scenario's author.
func check(t *testing.T, req *admissionv1.AdmissionRequest, step *Step, result *admission.Result, err error) {
	t.Helper()
	if step.ErrorCode != 0 || err != nil {
		if err == nil || admission.Code(err) != step.ErrorCode {
			t.Errorf("step %q: error %v, want one of code %d", step.Name, err, step.ErrorCode)
			return
		}
		checkMessage(t, step, err.Error())
		return
	}
	if result.Allowed != step.Allowed {
		t.Errorf("step %q: allowed = %v, want %v\n%s", step.Name, result.Allowed, step.Allowed, Render(result, nil))
		return
	}
	if step.ByAPIServer {
		if result.Mode != fieldperm.ModeNone {
			t.Errorf("step %q: mode %q, want none: the API server refuses it by itself", step.Name, result.Mode)
		}
	}
	if step.Allowed {
		by := slices.Compact(slices.Sorted(slices.Values(slices.DeleteFunc(slices.Clone(result.CoveredBy), func(v string) bool { return v == "" }))))
		if want := slices.Sorted(slices.Values(step.By)); !slices.Equal(by, want) {
			t.Errorf("step %q: covered by %q, want %q\n%s", step.Name, by, want, Render(result, nil))
		}
	} else {
		field := ""
		if result.Denial != nil {
			field = result.Denial.Field()
		}
		if field != step.Field {
			t.Errorf("step %q: names field %q, want %q\n%s", step.Name, field, step.Field, Render(result, nil))
		}
		checkMessage(t, step, result.Message)
	}
	if step.Audit != nil {
		if got := admission.Response(result, nil, req).AuditAnnotations; !maps.Equal(got, step.Audit) {
			t.Errorf("step %q: audit annotations %q, want %q", step.Name, got, step.Audit)
		}
	}
	if step.Checks != nil {
		var asked []string
		for _, c := range result.Checks {
			asked = append(asked, c.Verb)
		}
		if !slices.Equal(asked, step.Checks) {
			t.Errorf("step %q: asked %q, want %q", step.Name, asked, step.Checks)
		}
	}
}

func checkMessage(t *testing.T, step *Step, message string) {
	t.Helper()
	for _, part := range step.Message {
		if !strings.Contains(message, part) {
			t.Errorf("step %q: message %q lacks %q", step.Name, message, part)
		}
	}
}

// grants is the simplest authorizer: it allows a request if one of the user's rules names verb and resource.
type grants struct {
	s    *Scenario
	step *Step
	req  *admissionv1.AdmissionRequest
}

func (g *grants) Authorize(_ context.Context, verb string, _ bool) (fieldperm.AuthorizerDecision, error) {
	resource := g.req.RequestResource.Resource
	if g.req.RequestSubResource != "" {
		resource += "/" + g.req.RequestSubResource
	}
	if message := g.s.Users[g.step.User].Fails[verb]; message != "" {
		return fieldperm.AuthorizerDecision{}, authorizerFailure(message)
	}
	allowed := slices.ContainsFunc(g.s.PolicyRules(g.step.User), func(rule rbacv1.PolicyRule) bool {
		return (slices.Contains(rule.Verbs, verb) || slices.Contains(rule.Verbs, "*")) &&
			slices.Contains(rule.APIGroups, g.req.RequestResource.Group) && slices.Contains(rule.Resources, resource)
	})
	return fieldperm.AuthorizerDecision{Outcome: fieldperm.OutcomeOf(allowed), Reason: g.s.Users[g.step.User].Reasons[verb]}, nil
}

type authorizerFailure string

func (f authorizerFailure) Error() string { return string(f) }

// diffLines shows the lines that are in one text only.
func diffLines(want, got string) string {
	var b strings.Builder
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for _, line := range w {
		if !slices.Contains(g, line) {
			b.WriteString("- " + line + "\n")
		}
	}
	for _, line := range g {
		if !slices.Contains(w, line) {
			b.WriteString("+ " + line + "\n")
		}
	}
	return b.String()
}
