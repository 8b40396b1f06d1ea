package audit

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/internal/finding"
	"github.com/fieldperm/fieldperm/internal/finding/findingtest"
)

// The log has what SARIF 2.1.0 requires, and what code scanning uses.
func TestSARIF_HasWhatTheStandardRequires(t *testing.T) {
	findings := []Finding{
		{Rule: unknownVerb, Level: Error, Object: Ref{Kind: roleKind, Namespace: "shop", Name: "a"}, Path: "rules[0].verbs[1]", Message: "m", Cure: "c", File: "a.yaml", Line: 12, About: "granular:scal"},
		{Rule: wildcardBarrier, Level: Note, Object: Ref{Kind: clusterRoleKind, Name: "b"}, Message: "m", Cure: "c"},
	}
	raw, err := json.Marshal(Tool().SARIF(findings, []string{"lacks bindings"}))
	if err != nil {
		t.Fatal(err)
	}
	log := findingtest.ReadSARIF(t, raw, Rules())
	if len(log.Runs[0].Results) != len(findings) || log.Runs[0].Tool.Driver.Name != "kubectl-fieldperm audit" {
		t.Errorf("%+v", log)
	}
}

// Every rule has an ID of its own and all texts.
func TestRules_AreComplete(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range Rules() {
		if seen[r.ID] || r.ID != strings.ToLower(r.ID) || !slices.Contains(finding.Levels(), r.Level) {
			t.Errorf("%+v", r)
		}
		seen[r.ID] = true
		for _, text := range []string{r.Meaning, r.Why, r.Cure} {
			if !strings.HasSuffix(text, ".") {
				t.Errorf("%s: %q is no sentence", r.ID, text)
			}
		}
	}
}
