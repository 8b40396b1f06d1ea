package corpus

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/fieldperm/fieldperm/schema"
	"github.com/fieldperm/fieldperm/schema/load"
)

// root is the repository's testdata.
const root = "../../testdata"

var update = flag.Bool("update", false, "rewrite the goldens (and, with the tag integration, the recorded reviews): commit only what you understand")

func scenarios(t *testing.T) []*Scenario {
	t.Helper()
	all, err := Load(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		t.Fatal("there is no scenario")
	}
	return all
}

// compiled is the permission schema of the whole corpus.
var compiled = sync.OnceValues(func() (*schema.Schema, error) {
	files, err := SchemaFiles(root)
	if err != nil {
		return nil, err
	}
	s, errs := load.Offline(files)
	if len(errs) > 0 {
		return nil, fmt.Errorf("schemas of the corpus: %v", errs)
	}
	return s, nil
})

// provenElsewhere are the rules that a scenario cannot show, with the directory whose tests prove them: these tests have the rule in their
// names.
var provenElsewhere = map[string]string{
	"D10": ".", // on every recorded pair; fieldperm has property tests besides
	"P8":  "../../internal/authz",
	"P9":  "../../internal/observation",
	"A1":  "../e2e",
	"A2":  "../e2e",
	"A3":  "../e2e",
	"A6":  "../e2e",
	"A7":  "../e2e",
	"W1":  "../e2e",
	"W2":  "../e2e",
	"W3":  "../e2e",
}

func provenIn(t *testing.T, dir, rule string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	must(t, err)
	name := regexp.MustCompile(`(?m)^func Test([A-Z]\d+_)*` + rule + `_`)
	return slices.ContainsFunc(files, func(file string) bool {
		raw, err := os.ReadFile(file)
		must(t, err)
		return name.Match(raw)
	})
}

// TestCorpus_IsComplete: every rule and every use case has a scenario, every scenario shows both
// sides.
func TestCorpus_IsComplete(t *testing.T) {
	rules, useCases := map[string]bool{}, map[int]bool{}
	for _, s := range scenarios(t) {
		for _, rule := range s.Rules {
			rules[rule] = true
		}
		useCases[s.UseCase] = true
		if want := fmt.Sprintf("use-case-%02d-", s.UseCase); s.UseCase != 0 && !strings.HasPrefix(s.Name, want) {
			t.Errorf("%s: name does not begin with %q", s.Name, want)
		}
		if !regexp.MustCompile(`^(use-case-\d\d|rule-[a-z]\d+|attack|story)-[a-z0-9-]+$`).MatchString(s.Name) || len(s.Name) > 63 {
			t.Errorf("%s: begin the name with use-case-NN-, rule-XN-, story- or attack-, and end it before 64 characters", s.Name)
		}
		allowed, denied := false, false
		for _, step := range s.Reviewed() {
			allowed, denied = allowed || step.Allowed, denied || !step.Allowed
		}
		if (!allowed || !denied) != (s.OneSided != "") {
			t.Errorf("%s: allowed %v, denied %v: add a step of the other kind, or say in oneSided why there is none (and only then)", s.Name, allowed, denied)
		}
	}
	for _, rule := range allRules() {
		if dir := provenElsewhere[rule]; !rules[rule] && (dir == "" || !provenIn(t, dir, rule)) {
			t.Errorf("rule %s has no scenario, and no test elsewhere has it in its name", rule)
		}
	}
	for rule := range rules {
		if !slices.Contains(allRules(), rule) {
			t.Errorf("rule %q is none of docs/semantics.md", rule)
		}
	}
	for n := 1; n <= 25; n++ {
		if !useCases[n] {
			t.Errorf("use case %d has no scenario", n)
		}
	}
}

func allRules() []string {
	var out []string
	for _, group := range []struct {
		letter string
		count  int
	}{{"C", 6}, {"D", 13}, {"P", 8}, {"W", 3}, {"A", 7}} {
		for i := 1; i <= group.count; i++ {
			if rule := fmt.Sprintf("%s%d", group.letter, i); rule != "A5" {
				out = append(out, rule)
			}
		}
	}
	return out
}

// TestCorpus_StrayFiles: there is no file that no executor reads.
func TestCorpus_StrayFiles(t *testing.T) {
	known := map[string]bool{scenarioFile: true, reviewsFile: true, decisionsFile: true, "permissions.yaml": true, "uncovered.yaml": true}
	used := map[string]bool{}
	for _, s := range scenarios(t) {
		used[s.Use+".yaml"] = true
		entries, err := os.ReadDir(s.Dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if !known[e.Name()] {
				t.Errorf("%s/%s is read by no test", s.Name, e.Name())
			}
			if strings.HasSuffix(e.Name(), ".yaml") {
				raw, err := os.ReadFile(filepath.Join(s.Dir, e.Name()))
				if err != nil {
					t.Fatal(err)
				}
				if !strings.HasPrefix(string(raw), "# ") {
					t.Errorf("%s/%s does not begin with a comment on its purpose", s.Name, e.Name())
				}
			}
		}
		if s.NotOnCluster == "" {
			if len(s.Reviews) > len(s.Reviewed()) {
				t.Errorf("%s: has recorded more steps than there are: run the integration tests with -update", s.Name)
			}
			for _, step := range s.Reviewed() {
				if s.Reviews[step.Name] == nil {
					t.Errorf("%s: step %q is not recorded: run the integration tests with -update", s.Name, step.Name)
				}
			}
		}
	}
	objects, err := os.ReadDir(filepath.Join(root, "shared", "objects"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range objects {
		if !used[e.Name()] {
			t.Errorf("shared/objects/%s is used by no scenario", e.Name())
		}
	}
	top, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range top {
		if !slices.Contains([]string{"README.md", "conditions", "configuration", "scenarios", "shared"}, e.Name()) {
			t.Errorf("testdata/%s is read by no test", e.Name())
		}
	}
}

// TestCorpus_UsersDoNotLeak: grants in the cluster are in force for all scenarios, so a user with a grant must appear in one scenario only.
func TestCorpus_UsersDoNotLeak(t *testing.T) {
	all := scenarios(t)
	for _, s := range all {
		if !s.ClusterScoped {
			continue
		}
		for user := range s.Users {
			for _, other := range all {
				if _, ok := other.Users[user]; ok && other != s {
					t.Errorf("user %q has grants in the cluster by %s and appears in %s: rename one", user, s.Name, other.Name)
				}
			}
		}
	}
}
