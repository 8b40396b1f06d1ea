package corpus

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/fieldperm/fieldperm/admission"
	"github.com/fieldperm/fieldperm/internal/plugin"
)

// TestCLI_Scenarios runs every scenario through kubectl-fieldperm review, from files only, by --old and --new and by -f in turns. Exit code
// and JSON are a contract. Each call compiles all schemas, which takes a while. So only the first allowed and the first denied step of each
// scenario run; TestCLI_OtherSteps runs the others.
func TestCLI_Scenarios(t *testing.T) {
	runScenariosByCLI(t, true)
}

func runScenariosByCLI(t *testing.T, first bool) {
	t.Helper()
	var ran atomic.Int64
	t.Cleanup(func() {
		if t.Logf("%d steps", ran.Load()); ran.Load() == 0 {
			t.Error("no step was run")
		}
	})
	for _, s := range scenarios(t) {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			grants := filepath.Join(t.TempDir(), "grants.yaml")
			raw, err := s.GrantsYAML()
			must(t, err)
			must(t, os.WriteFile(grants, raw, 0o600))
			seen := map[bool]bool{}
			for i, step := range s.Reviewed() {
				before := seen[step.Allowed]
				seen[step.Allowed] = true
				if before == first {
					continue
				}
				if user := s.Users[step.User]; len(user.Fails)+len(user.Reasons) > 0 {
					// Files never fail, and give the reasons of RBAC.
					continue
				}
				ran.Add(1)
				s.runCLI(t, step, grants, i%2 == 0)
			}
		})
	}
}

func (s *Scenario) runCLI(t *testing.T, step *Step, grants string, objects bool) {
	t.Helper()
	req, err := s.Request(step)
	must(t, err)
	result, coreErr := s.review(t, step, req, &bytes.Buffer{})
	args := []string{"--grants", grants, "-o", "json"}
	files, err := SchemaFiles(root)
	must(t, err)
	args = append(args, "--crd", files[0], "--permissions", strings.Join(files[1:], ","))
	code, stdout, stderr := call(append(args, s.reviewArgs(t, req, objects && step.Pair == nil)...))

	want := map[bool]int{true: 0, false: 1}[step.Allowed]
	if coreErr != nil {
		want = 2
	}
	if code != want {
		t.Errorf("step %q: exit code %d, want %d\n%s%s", step.Name, code, want, stdout, stderr)
		return
	}
	if want == 2 {
		if stdout != "" {
			t.Errorf("step %q: an error came with a report: %s", step.Name, stdout)
		}
		return
	}
	var got map[string]any
	must(t, json.Unmarshal([]byte(stdout), &got))
	// Recorded objects have owners. Objects of pairs may have none: then the report says that owners were not judged.
	hasOwners := func(object []byte) bool { return bytes.Contains(object, []byte(`"managedFields":`)) }
	_, noted := got["notes"]
	if want := req.Operation == admissionv1.Update && req.Kind.Kind != "Scale" && !(hasOwners(req.OldObject.Raw) && hasOwners(req.Object.Raw)); noted != want {
		t.Errorf("step %q: notes %v", step.Name, got["notes"])
	}
	delete(got, "notes")
	if expected := contract(t, result); !reflect.DeepEqual(any(got), expected) {
		t.Errorf("step %q: report differs\ngot  %s\nwant %v", step.Name, stdout, expected)
	}
}

// reviewArgs writes the request into files and returns the flags that name them.
func (s *Scenario) reviewArgs(t *testing.T, req *admissionv1.AdmissionRequest, objects bool) []string {
	t.Helper()
	dir := t.TempDir()
	write := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, content, 0o600))
		return path
	}
	if !objects {
		raw, err := EncodeReview(req)
		must(t, err)
		return []string{"-f", write("review.json", raw)}
	}
	args := []string{"--as", req.UserInfo.Username, "--resource", Resource{GroupVersionResource: runtimeschema.GroupVersionResource(*req.RequestResource)}.text()}
	for _, group := range s.Users[req.UserInfo.Username].Groups {
		args = append(args, "--as-group", group)
	}
	if req.SubResource != "" {
		args = append(args, "--subresource", req.SubResource)
	}
	if req.OldObject.Raw != nil {
		args = append(args, "--old", write("old.json", req.OldObject.Raw))
	}
	if req.Object.Raw != nil {
		args = append(args, "--new", write("new.json", req.Object.Raw))
	}
	return args
}

func (r Resource) text() string {
	return strings.TrimPrefix(r.Group+"/"+r.Version+"/"+r.Resource, "/")
}

func call(args []string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	command := plugin.NewReviewCommand(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errs})
	command.SetArgs(args)
	command.SetOut(&errs)
	command.SetErr(&errs)
	err := command.Execute()
	if err != nil {
		errs.WriteString(err.Error())
	}
	return plugin.ExitCode(err), out.String(), errs.String()
}

// contract is the JSON that the command promises for a result of the core.
func contract(t *testing.T, result *admission.Result) any {
	t.Helper()
	changes, checks := []any{}, []any{}
	for i := range result.Requirements {
		r := &result.Requirements[i]
		chain := []string{}
		for _, v := range r.Chain {
			chain = append(chain, v.String())
		}
		coveredBy := ""
		if i < len(result.CoveredBy) {
			coveredBy = result.CoveredBy[i]
		}
		changes = append(changes, map[string]any{"path": r.Path.String(), "operation": r.Operation, "chain": chain, "barrier": r.Barrier, "coveredBy": coveredBy})
	}
	for _, c := range result.Checks {
		checks = append(checks, map[string]any{"verb": c.Verb, "allowed": c.Allowed})
	}
	raw, err := json.Marshal(map[string]any{"allowed": result.Allowed, "mode": result.Mode, "changes": changes, "checks": checks, "message": result.Message})
	must(t, err)
	var out any
	must(t, json.Unmarshal(raw, &out))
	return out
}
