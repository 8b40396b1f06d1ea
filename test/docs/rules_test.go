package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Every rule has its own section in docs/semantics.md, in order, which names its scenario or its proof.
func TestSemantics_HasEveryRule(t *testing.T) {
	text := page(t, "docs/semantics.md")
	sections := regexp.MustCompile(`(?m)^### ([A-Z][0-9]+)\. `).FindAllStringSubmatchIndex(text, -1)
	var have, want []string
	for _, at := range sections {
		have = append(have, text[at[2]:at[3]])
	}
	for _, group := range []struct {
		letter string
		count  int
	}{{"C", 6}, {"D", 13}, {"P", 9}, {"A", 7}, {"K", 8}, {"W", 4}} {
		for i := 1; i <= group.count; i++ {
			want = append(want, fmt.Sprintf("%s%d", group.letter, i))
		}
	}
	if !slices.Equal(have, want) {
		t.Errorf("docs/semantics.md has the rules %v, want %v", have, want)
	}
}

// mostWordsOfRule is how many words a rule may have. A rule with more cases lacks the sentence that covers them.
const mostWordsOfRule = 250

// A rule is short. It has an example, and its evidence: a scenario, a story of the demo, or tests. That of the conditions stands before them.
func TestSemantics_RulesAreShort(t *testing.T) {
	evidence := regexp.MustCompile(`(?i)\*(seen in|(all )?proved by)\*`)
	_, conditions, _ := strings.Cut(page(t, "docs/semantics.md"), "\n## Conditions\n")
	conditions, _, _ = strings.Cut(conditions, "\n### ")
	for _, section := range regexp.MustCompile(`(?m)^##+ `).Split(page(t, "docs/semantics.md"), -1) {
		rule, text, ok := strings.Cut(section, ". ")
		if !ok || !regexp.MustCompile(`^[A-Z][0-9]+$`).MatchString(rule) {
			continue
		}
		if n := len(strings.Fields(text)); n > mostWordsOfRule {
			t.Errorf("docs/semantics.md: %s has %d words, more than %d", rule, n, mostWordsOfRule)
		}
		if !strings.Contains(text, "*Example.*") {
			t.Errorf("docs/semantics.md: %s has no example", rule)
		}
		if rule[0] == 'K' {
			text += conditions
		}
		if !evidence.MatchString(text) {
			t.Errorf("docs/semantics.md: %s has no evidence: name a scenario, a story of the demo, or tests", rule)
		}
		for _, proof := range regexp.MustCompile(`\*[pP]roved by\*[^*]*`).FindAllString(text, -1) {
			for _, dir := range regexp.MustCompile(`\]\(\.\./([a-z0-9/]+)\)`).FindAllStringSubmatch(proof, -1) {
				if !isTestedIn(t, dir[1], rule) {
					t.Errorf("docs/semantics.md: %s is not proved by %s: no test there has the rule in its name", rule, dir[1])
				}
			}
		}
	}
}

// isTestedIn reports whether a test in a directory or below it has a rule in its name.
func isTestedIn(t *testing.T, dir, rule string) bool {
	t.Helper()
	name, found := regexp.MustCompile(`(?m)^func (Test|Fuzz|Example)([A-Za-z0-9]+_)*`+rule+`_`), false
	err := filepath.WalkDir(filepath.Join(root, dir), func(path string, _ os.DirEntry, err error) error {
		if err != nil || found || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		raw, err := os.ReadFile(path)
		found = name.Match(raw)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// A scenario of a rule is linked from the section of the rule, and a scenario of a use case from its recipe.
func TestScenarios_AreLinked(t *testing.T) {
	entries, err := os.ReadDir(filepath.Join(root, "testdata", "scenarios"))
	if err != nil {
		t.Fatal(err)
	}
	semantics, recipes := page(t, "docs/semantics.md"), page(t, "docs/guide/recipes.md")
	for _, e := range entries {
		target := "/testdata/scenarios/" + e.Name() + ")"
		switch kind, rest, _ := strings.Cut(e.Name(), "-"); kind {
		case "rule":
			rule, _, _ := strings.Cut(rest, "-")
			_, section, _ := strings.Cut(semantics, "\n### "+strings.ToUpper(rule)+". ")
			section, _, _ = strings.Cut(section, "\n##")
			if !strings.Contains(section, target) {
				t.Errorf("docs/semantics.md: the section of %s does not link %s", strings.ToUpper(rule), e.Name())
			}
		case "use":
			if !strings.Contains(recipes, target) {
				t.Errorf("docs/guide/recipes.md does not link %s", e.Name())
			}
		}
	}
}
