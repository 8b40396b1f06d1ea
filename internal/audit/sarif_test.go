package audit

import (
	"bytes"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// The log has what SARIF 2.1.0 requires, and what code scanning uses: rules with help, logical and physical locations, and fingerprints that do
// not depend on the place.
func TestSARIF_HasWhatTheStandardRequires(t *testing.T) {
	findings := []Finding{
		{Rule: unknownVerb, Level: Error, Object: Ref{roleKind, "shop", "a"}, Path: "rules[0].verbs[1]", Message: "m", Cure: "c", File: "rbac dir/a#1.yaml", Line: 12, about: "granular:scal"},
		{Rule: wildcardBarrier, Level: Note, Object: Ref{clusterRoleKind, "", "b"}, Message: "m", Cure: "c"},
	}
	raw, err := json.Marshal(NewSARIF(findings, []string{"lacks bindings"}))
	if err != nil {
		t.Fatal(err)
	}
	var log SARIF
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&log); err != nil {
		t.Fatal(err)
	}
	if log.Version != "2.1.0" || !strings.HasSuffix(log.Schema, "sarif-2.1.0.json") || len(log.Runs) != 1 {
		t.Fatalf("%+v", log)
	}
	run := log.Runs[0]
	levels := []string{"none", "note", "warning", "error"}
	if run.Tool.Driver.Name == "" || len(run.Tool.Driver.Rules) != len(Rules()) || run.Invocations[0].ExecutionSuccessful || len(run.Invocations[0].ToolExecutionNotifications) != 1 {
		t.Errorf("%+v", run.Invocations)
	}
	for _, r := range run.Tool.Driver.Rules {
		if _, err := url.Parse(r.HelpURI); err != nil || r.ID == "" || r.Help.Text == "" || r.ShortDescription.Text == "" || r.FullDescription.Text == "" || !slices.Contains(levels, r.DefaultConfiguration.Level) {
			t.Errorf("%+v", r)
		}
		if strings.ContainsAny(r.Help.Text, "`[") || strings.Contains(r.Help.Markdown, "](../") {
			t.Errorf("%s: help %q, %q", r.ID, r.Help.Text, r.Help.Markdown)
		}
	}
	for i, r := range run.Results {
		if run.Tool.Driver.Rules[r.RuleIndex].ID != r.RuleID || !slices.Contains(levels, r.Level) || r.Message.Text == "" || len(r.Locations) != 1 || len(r.PartialFingerprints) != 1 || len(r.Locations[0].LogicalLocations) != 1 {
			t.Errorf("result %d: %+v", i, r)
		}
	}
	of := run.Results[0].Locations[0]
	if of.LogicalLocations[0].FullyQualifiedName != "Role/shop/a#rules[0].verbs[1]" || of.PhysicalLocation.ArtifactLocation.URI != "rbac%20dir/a%231.yaml" || of.PhysicalLocation.Region.StartLine != 12 {
		t.Errorf("%+v %+v", of, of.PhysicalLocation)
	}
	if run.Results[1].Locations[0].PhysicalLocation != nil || run.Results[1].Locations[0].LogicalLocations[0].FullyQualifiedName != "ClusterRole/b" {
		t.Errorf("%+v", run.Results[1])
	}
	moved := findings[0]
	moved.Path, moved.Line, moved.Message = "rules[3].verbs[0]", 40, "other words"
	other := findings[0]
	other.about = "granular:imag"
	if moved.fingerprint() != findings[0].fingerprint() || other.fingerprint() == findings[0].fingerprint() {
		t.Error("the fingerprint depends on the place, or not on the fault")
	}
}

// Without findings the arrays are there: a log without results means that nothing was looked at.
func TestSARIF_OfNothingIsARun(t *testing.T) {
	raw, err := json.Marshal(NewSARIF(nil, nil))
	if err != nil || !strings.Contains(string(raw), `"results":[]`) || !strings.Contains(string(raw), `"executionSuccessful":true`) {
		t.Errorf("%v: %s", err, raw)
	}
}

// Every rule has an ID of its own and all texts.
func TestRules_AreComplete(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range Rules() {
		if seen[r.ID] || r.ID != strings.ToLower(r.ID) || !slices.Contains(Levels(), r.Level) {
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

func TestSort_OrdersByPlace(t *testing.T) {
	of := func(name, path, rule string) Finding {
		return Finding{Rule: rule, Object: Ref{roleKind, "shop", name}, Path: path}
	}
	want := []Finding{of("a", "", "x"), of("a", "rules[2].verbs[0]", "y"), of("a", "rules[10].verbs[0]", "x"), of("a", "rules[10].verbs[0]", "y"), of("b", "", "x")}
	got := slices.Clone(want)
	slices.Reverse(got)
	Sort(got)
	for i := range want {
		if got[i].Compare(&want[i]) != 0 {
			t.Errorf("%d: got %+v, want %+v", i, got[i], want[i])
		}
	}
}
