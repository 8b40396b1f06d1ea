package policies

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/fieldperm"
)

// policyText is a policy about updates of Deployments by alice.
func policyText(name, effect, condition string) string {
	return fmt.Sprintf(`{apiVersion: fieldperm.dev/v1alpha1, kind: ConditionalPolicy, metadata: {name: %s}, spec: {subjects: [{kind: User, name: alice}], verbs: [update, patch],
  resources: [{apiGroups: [apps], resources: [deployments]}], effect: %s, condition: %q}}
`, name, effect, condition)
}

// filesIn writes files into a directory.
func filesIn(t *testing.T, texts map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range texts {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestK5_PoliciesOfFilesDecide: those of all files and documents count, and their conditions are not checked against types, which is said.
func TestK5_PoliciesOfFilesDecide(t *testing.T) {
	allow, deny := policyText("a", "Allow", "object.spec.replicas < 5"), policyText("b", "Deny", "object.spec.replicas == 3")
	list := "apiVersion: v1\nkind: List\nitems:\n- " + allow + "- " + deny
	for name, c := range map[string]struct {
		files map[string]string
		want  fieldperm.Outcome
	}{
		"none":            {nil, fieldperm.NoOpinion},
		"one":             {map[string]string{"a.yaml": allow}, fieldperm.Allow},
		"two documents":   {map[string]string{"a.yaml": allow + "---\n" + deny}, fieldperm.Deny},
		"two files":       {map[string]string{"a.yaml": allow, "b.yml": deny}, fieldperm.Deny},
		"a list":          {map[string]string{"a.yaml": list}, fieldperm.Deny},
		"another ending":  {map[string]string{"a.txt": deny}, fieldperm.NoOpinion},
		"an unknown name": {map[string]string{"a.yaml": policyText("a", "Allow", "!has(object.spec.nothing)")}, fieldperm.Allow},
	} {
		t.Run(name, func(t *testing.T) {
			set, warnings, err := Files(t.Context(), []string{filesIn(t, c.files)})
			if err != nil {
				t.Fatal(err)
			}
			got, err := set.For(written(t, updating(t, replicas(2), replicas(3)))).Authorize(t.Context(), "update", true)
			if err != nil || got.Outcome != c.want {
				t.Errorf("%+v, %v, want %v", got, err, c.want)
			}
			for _, warning := range warnings {
				if !strings.Contains(warning.Error(), "is not checked against types") {
					t.Error(warning)
				}
			}
			if len(warnings) == 0 && c.want != fieldperm.NoOpinion {
				t.Error("nothing says that types are not checked")
			}
		})
	}
}

// TestK5_FaultyFilesDecideNothing: a policy that is overlooked may be one that denies.
func TestK5_FaultyFilesDecideNothing(t *testing.T) {
	deny := policyText("a", "Deny", "true")
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"twice in a file":     {map[string]string{"a.yaml": deny + "---\n" + deny}, `"a": is in `},
		"twice":               {map[string]string{"a.yaml": deny, "b.yaml": policyText("a", "Allow", "true")}, "remove one of the two"},
		"another kind":        {map[string]string{"a.yaml": strings.Replace(deny, "ConditionalPolicy", "PermissionSchema", 1)}, `kind "PermissionSchema" of "fieldperm.dev/v1alpha1" is not accepted`},
		"another version":     {map[string]string{"a.yaml": strings.Replace(deny, "v1alpha1", "v1", 1)}, "is not accepted"},
		"another kind listed": {map[string]string{"a.yaml": "{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: Pod}]}"}, `kind "Pod"`},
		"no name":             {map[string]string{"a.yaml": strings.Replace(deny, "name: a", "x: a", 1)}, "has no name"},
		"unknown field":       {map[string]string{"a.yaml": strings.Replace(deny, "effect:", "effects: Allow, effect:", 1)}, "effects"},
		"twice a field":       {map[string]string{"a.json": `{"apiVersion":"fieldperm.dev/v1alpha1","kind":"ConditionalPolicy","metadata":{"name":"a"},"spec":{"effect":"Deny","effect":"Allow"}}`}, "effect"},
		"condition":           {map[string]string{"a.yaml": policyText("a", "Allow", "object.spec ==")}, "correct it"},
		"only update":         {map[string]string{"a.yaml": strings.Replace(deny, ", patch", "", 1)}, "name both or none"},
		"no YAML":             {map[string]string{"a.yaml": "a: b: c"}, "no YAML"},
	} {
		t.Run(name, func(t *testing.T) {
			set, _, err := Files(t.Context(), []string{filesIn(t, c.files)})
			if err == nil || !strings.Contains(err.Error(), c.want) || set != nil {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
	if _, _, err := Files(t.Context(), []string{filepath.Join(t.TempDir(), "none")}); err == nil {
		t.Error("a file that does not exist is accepted")
	}
}

// TestK5_FilesReplaceStoredPolicies: by name. All others stay.
func TestK5_FilesReplaceStoredPolicies(t *testing.T) {
	spec := about(v1alpha1.PolicyDeny, "true")
	given, same, other := stored(t, "a", 1, spec), stored(t, "a", 7, spec), stored(t, "b", 7, spec)
	got := beside([]*unstructured.Unstructured{given}, []*unstructured.Unstructured{same, other})
	if len(got) != 2 || got[0] != given || got[1] != other {
		t.Errorf("got %v", got)
	}
}
