// Package findingtest checks the logs of commands that report findings, for their tests. Start at ReadSARIF.
package findingtest

import (
	"bytes"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/internal/finding"
)

// ReadSARIF reads a log. It fails the test if the log lacks what SARIF 2.1.0 requires, or what code scanning uses: rules with help, logical and
// physical locations, and fingerprints.
func ReadSARIF(t testing.TB, raw []byte, rules []finding.Rule) finding.SARIF {
	t.Helper()
	var log finding.SARIF
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
	if run.Tool.Driver.Name == "" || len(run.Tool.Driver.Rules) != len(rules) || len(run.Invocations) != 1 || run.Results == nil {
		t.Errorf("%+v", run)
	}
	if run.Invocations[0].ExecutionSuccessful != (len(run.Invocations[0].ToolExecutionNotifications) == 0) {
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
	return log
}
