package docs

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
	"github.com/fieldperm/fieldperm/internal/conditions/expression"
	"github.com/fieldperm/fieldperm/internal/schemacheck"
	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/fieldpath"
	"github.com/fieldperm/fieldperm/schema/load"
	"github.com/fieldperm/fieldperm/test/schematest"
	"github.com/fieldperm/fieldperm/verbs"
)

// block is one YAML example.
type block struct {
	// source is file:line.
	source, text string
}

var yamlFence = regexp.MustCompile("(?ms)^( *)```yaml\n(.*?)^ *```$")

func blocks(name, text string) []block {
	var out []block
	for _, at := range yamlFence.FindAllStringSubmatchIndex(text, -1) {
		indent := text[at[2]:at[3]]
		body := strings.ReplaceAll("\n"+text[at[4]:at[5]], "\n"+indent, "\n")[1:]
		out = append(out, block{fmt.Sprintf("%s:%d", name, 1+strings.Count(text[:at[0]], "\n")), body})
	}
	return out
}

// guides are the pages with examples that readers copy.
func guides(t *testing.T) []block {
	t.Helper()
	var out []block
	for _, name := range pages(t) {
		if name == "README.md" || strings.HasPrefix(name, "docs/") {
			out = append(out, blocks(name, page(t, name))...)
		}
	}
	return out
}

// isDocument reports whether the example is a permission schema or a definition.
func isDocument(text string) bool {
	return strings.Contains(text, "\nkind: CustomResourceDefinition\n") || strings.HasPrefix(text, "apiVersion: fieldperm.dev/") && !isObservation(text) && !isRegistry(text)
}

// isObservation reports whether the example is a PermissionObservation, which no schema is compiled from.
func isObservation(text string) bool {
	return strings.Contains(text, "\nkind: "+v1alpha1.PermissionObservationKind+"\n")
}

// Examples of PermissionObservations have no field that the kind does not have.
func TestExamples_ObservationsDecode(t *testing.T) {
	seen := 0
	for _, example := range guides(t) {
		if !isObservation(example.text) {
			continue
		}
		seen++
		var o v1alpha1.PermissionObservation
		if err := yaml.UnmarshalStrict([]byte(example.text), &o); err != nil || len(o.Spec.Subjects) == 0 {
			t.Errorf("%s: %d subjects, %v", example.source, len(o.Spec.Subjects), err)
		}
	}
	if seen == 0 {
		t.Error("no page has a PermissionObservation")
	}
}

// isPolicy reports whether the example is a ConditionalPolicy or a part of its spec.
func isPolicy(example block) bool {
	return strings.HasPrefix(example.source, "docs/guide/policies.md:") || strings.Contains(example.text, "\nkind: "+v1alpha1.ConditionalPolicyKind+"\n")
}

// TestK5_ExamplesOfPoliciesCompile: examples have no field that the kind does not have, and their conditions compile.
func TestK5_ExamplesOfPoliciesCompile(t *testing.T) {
	compiler, err := expression.NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	compiled := 0
	for _, example := range guides(t) {
		if !isPolicy(example) {
			continue
		}
		var policy v1alpha1.ConditionalPolicy
		into := any(&policy)
		if !strings.HasPrefix(example.text, "apiVersion:") {
			into = &policy.Spec
		}
		if err := yaml.UnmarshalStrict([]byte(example.text), into); err != nil {
			t.Errorf("%s: %v", example.source, err)
		}
		if policy.Spec.Condition == "" {
			continue
		}
		compiled++
		if _, err := compiler.Compile(policy.Spec.Condition, nil); err != nil {
			t.Errorf("%s: %v", example.source, err)
		}
	}
	if compiled < 2 {
		t.Errorf("%d examples with a condition: the test does not see them", compiled)
	}
}

// isConfiguration reports whether the example is a configuration file of kube-apiserver's API group.
func isConfiguration(text string) bool {
	return strings.HasPrefix(text, "apiVersion: apiserver.config.k8s.io/")
}

// Examples of schemas compile, together and with the corpus' definitions, and grants name verbs that exist.
func TestExamples_CompileAndNameVerbsThatExist(t *testing.T) {
	examples := guides(t)
	documents := schematest.Documents(t)
	definitions, errs := load.Files([]string{filepath.Join(root, "testdata", "shared", "crds")})
	documents = documents.Append(definitions)
	for _, example := range examples {
		if isPolicy(example) || !isDocument(example.text) {
			continue
		}
		decoded, faults := load.Decode(example.source, []byte(example.text))
		documents, errs = documents.Append(decoded), append(errs, faults...)
	}
	compiled, _, faults := schemacheck.Compile(documents)
	for _, err := range append(errs, faults...) {
		t.Error(err)
	}
	type form struct {
		verb          string
		parameterized bool
	}
	known := map[form]bool{{verb: verbs.Marker}: true}
	for _, k := range compiled.Kinds() {
		k.Walk(func(_ fieldpath.Pattern, n *schema.Node) {
			for _, p := range n.Permissions() {
				// A verb without its parameter stands for all parameters.
				known[form{p.Base().String(), false}] = true
				known[form{p.Base().String(), p.ParameterName() != ""}] = true
			}
		})
	}
	grants := 0
	for _, example := range examples {
		if isPolicy(example) || isDocument(example.text) || isConfiguration(example.text) || isObservation(example.text) || isRegistry(example.text) {
			continue
		}
		for _, verb := range granted(t, example) {
			grants++
			if v, err := verbs.Parse(verb); err != nil {
				t.Errorf("%s: %v", example.source, err)
			} else if base, _, parameterized := strings.Cut(v.String(), "("); !known[form{base, parameterized}] {
				t.Errorf("%s: verb %q guards nothing", example.source, verb)
			}
		}
	}
	if grants < 50 {
		t.Errorf("the examples grant %d verbs only: the test does not see them", grants)
	}
}

// granted returns the granular verbs of an example of RBAC: a role, or rules alone.
func granted(t *testing.T, example block) []string {
	t.Helper()
	var role struct {
		Rules []rbacv1.PolicyRule `json:"rules"`
	}
	var into any = &role
	if strings.HasPrefix(example.text, "- ") {
		into = &role.Rules
	}
	if err := yaml.Unmarshal([]byte(example.text), into); err != nil {
		t.Errorf("%s: %v", example.source, err)
	}
	if len(role.Rules) == 0 {
		t.Errorf("%s: has no rules", example.source)
	}
	var out []string
	for _, rule := range role.Rules {
		if len(rule.APIGroups) == 0 || len(rule.Resources) == 0 {
			t.Errorf("%s: a rule has no apiGroups or no resources", example.source)
		}
		for _, verb := range rule.Verbs {
			if strings.HasPrefix(verb, verbs.Marker) {
				out = append(out, verb)
			}
		}
	}
	return out
}

// A recipe names only verbs that its scenario uses.
func TestRecipes_AreThoseOfTheScenarios(t *testing.T) {
	text := page(t, "docs/guide/recipes.md")
	// Recipes without a number have no scenario; test/recipes tries them all.
	starts := regexp.MustCompile(`(?m)^\*\*(?:(\d+)\. )?`).FindAllStringSubmatchIndex(text, -1)
	seen := map[string]bool{}
	for i, at := range starts {
		if at[2] < 0 {
			continue
		}
		recipe, number := text[at[0]:], text[at[2]:at[3]]
		if i+1 < len(starts) {
			recipe = text[at[0]:starts[i+1][0]]
		}
		seen[number] = true
		dir := regexp.MustCompile(fmt.Sprintf(`testdata/scenarios/use-case-0?%s-[a-z0-9-]+`, number)).FindString(recipe)
		if dir == "" {
			t.Errorf("recipe %s does not link the scenario of its number", number)
			continue
		}
		tried := ""
		files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(dir), "*.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			tried += string(raw)
		}
		for _, example := range blocks("recipe "+number, recipe) {
			for _, verb := range regexp.MustCompile(`granular:[^",\]]+`).FindAllString(example.text, -1) {
				if !strings.Contains(tried, verb) {
					t.Errorf("recipe %s: verb %q is not in %s", number, verb, dir)
				}
			}
		}
	}
	if len(seen) != 25 {
		t.Errorf("there are recipes for %v: want 25", slices.Sorted(maps.Keys(seen)))
	}
}
