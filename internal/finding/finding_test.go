package finding_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/internal/finding"
	"github.com/fieldperm/fieldperm/internal/finding/findingtest"
)

func tool() finding.Tool {
	return finding.Tool{Name: "tool", Page: "page.md", Fingerprint: "tool/v1", Rules: []finding.Rule{
		{ID: "first", Level: finding.Error, Meaning: "It is `so`.", Why: "See [this](../semantics.md#words).", Cure: "Look into [verbs.md](verbs.md)."},
		{ID: "second", Level: finding.Note, Meaning: "It is so.", Why: "It is.", Cure: "Do it."},
	}}
}

// The log has what SARIF 2.1.0 requires, and what code scanning uses: rules with help, logical and physical locations, and fingerprints that do
// not depend on the place.
func TestSARIF_HasWhatTheStandardRequires(t *testing.T) {
	first := finding.Finding{
		Rule: "first", Level: finding.Error, Object: finding.Ref{Kind: "Role", Namespace: "shop", Name: "a"}, Path: "rules[0].verbs[1]", Message: "m", Cure: "c",
		File: "rbac dir/a#1.yaml", Line: 12, Column: 3, About: "granular:scal",
	}
	moved, other := first, first
	moved.Path, moved.Line, moved.Message = "rules[3].verbs[0]", 40, "other words"
	other.About = "granular:imag"
	findings := []finding.Finding{first, {Rule: "second", Level: finding.Note, Object: finding.Ref{Kind: "ClusterRole", Name: "b"}, Message: "m", Cure: "c"}, moved, other}
	raw, err := json.Marshal(tool().SARIF(findings, []string{"lacks bindings"}))
	if err != nil {
		t.Fatal(err)
	}
	log := findingtest.ReadSARIF(t, raw, tool().Rules)
	results := log.Runs[0].Results
	of := results[0].Locations[0]
	if of.LogicalLocations[0].FullyQualifiedName != "Role/shop/a#rules[0].verbs[1]" || of.PhysicalLocation.ArtifactLocation.URI != "rbac%20dir/a%231.yaml" ||
		of.PhysicalLocation.Region.StartLine != 12 || of.PhysicalLocation.Region.StartColumn != 3 {
		t.Errorf("%+v %+v", of, of.PhysicalLocation)
	}
	if results[1].Locations[0].PhysicalLocation != nil || results[1].Locations[0].LogicalLocations[0].FullyQualifiedName != "ClusterRole/b" {
		t.Errorf("%+v", results[1])
	}
	print := func(i int) string { return results[i].PartialFingerprints["tool/v1"] }
	if print(0) == "" || print(2) != print(0) || print(3) == print(0) {
		t.Error("the fingerprint depends on the place, or not on the fault")
	}
}

// Without findings the arrays are there: a log without results means that nothing was looked at.
func TestSARIF_OfNothingIsARun(t *testing.T) {
	raw, err := json.Marshal(tool().SARIF(nil, nil))
	if err != nil || !strings.Contains(string(raw), `"results":[]`) || !strings.Contains(string(raw), `"executionSuccessful":true`) {
		t.Errorf("%v: %s", err, raw)
	}
}

func TestSort_OrdersByPlace(t *testing.T) {
	of := func(name, path, rule string) finding.Finding {
		return finding.Finding{Rule: rule, Object: finding.Ref{Kind: "Role", Namespace: "shop", Name: name}, Path: path}
	}
	want := []finding.Finding{of("a", "", "x"), of("a", "rules[2].verbs[0]", "y"), of("a", "rules[10].verbs[0]", "x"), of("a", "rules[10].verbs[0]", "y"), of("b", "", "x")}
	got := slices.Clone(want)
	slices.Reverse(got)
	finding.Sort(got)
	for i := range want {
		if got[i].Compare(&want[i]) != 0 {
			t.Errorf("%d: got %+v, want %+v", i, got[i], want[i])
		}
	}
}

func TestLevel_AnUnknownOneIsAsGraveAsAnError(t *testing.T) {
	if !finding.Error.AtLeast(finding.Warning) || finding.Note.AtLeast(finding.Warning) || !finding.Level("x").AtLeast(finding.Error) {
		t.Error("levels are not in order")
	}
}
