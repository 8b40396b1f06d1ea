package observability

import (
	"flag"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"
)

var update = flag.Bool("update", false, "write rules.yaml from prometheusrule.yaml")

const (
	directory = "../../config/observability"
	reference = "../../docs/reference/"
	runbook   = "https://github.com/fieldperm/fieldperm/blob/main/"
)

func read(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.FromSlash(file))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// alerts returns the rules as Prometheus reads them, by name.
func alerts(t *testing.T) map[string]rulefmt.Rule {
	t.Helper()
	groups, errs := rulefmt.Parse([]byte(read(t, directory+"/rules.yaml")), false, model.LegacyValidation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	for _, err := range errs {
		t.Error(err)
	}
	if len(errs) > 0 {
		t.FailNow()
	}
	out := map[string]rulefmt.Rule{}
	for _, group := range groups.Groups {
		for _, rule := range group.Rules {
			if _, twice := out[rule.Alert]; twice || rule.Alert == "" {
				t.Errorf("group %s: alert %q is there twice, or is no alert", group.Name, rule.Alert)
			}
			out[rule.Alert] = rule
		}
	}
	if len(out) < 20 {
		t.Fatalf("there are %d alerts only", len(out))
	}
	return out
}

const plainHead = "# Alerts for Prometheus: its rule_files. The same groups as in prometheusrule.yaml.\n"

func TestRules_PlainFileEqualsThatOfTheOperator(t *testing.T) {
	_, groups, ok := strings.Cut(read(t, directory+"/prometheusrule.yaml"), "\nspec:\n")
	if !ok {
		t.Fatal("prometheusrule.yaml has no spec")
	}
	want := plainHead + regexp.MustCompile(`(?m)^  `).ReplaceAllString(groups, "")
	if *update {
		if err := os.WriteFile(directory+"/rules.yaml", []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if read(t, directory+"/rules.yaml") != want {
		t.Error("rules.yaml differs from prometheusrule.yaml: edit that one, then run: go -C test/observability test -run Rules -update ./...")
	}
	var rule struct {
		APIVersion, Kind string
		Metadata         struct{ Name, Namespace string }
	}
	if err := yaml.Unmarshal([]byte(read(t, directory+"/prometheusrule.yaml")), &rule); err != nil || rule.Kind != "PrometheusRule" || rule.Metadata.Namespace != "fieldperm-system" {
		t.Errorf("got %+v, %v", rule, err)
	}
}

func TestRules_NameExposedMetrics(t *testing.T) {
	all := ours(t)
	maps.Copy(all, theirs(t))
	for name, rule := range alerts(t) {
		found, _ := faults(all, rule.Expr)
		for _, fault := range found {
			t.Errorf("%s: %s", name, fault)
		}
	}
}

// TestRules_CheckerFindsFaults checks that the test above finds faults.
func TestRules_CheckerFindsFaults(t *testing.T) {
	all := ours(t)
	for expression, want := range map[string]string{
		`fieldperm_enforcement_prove == 0`:                                               "is not exposed",
		`fieldperm_review_duration_seconds > 1`:                                          "is not exposed",
		`fieldperm_enforcement_proven_bucket`:                                            "is not exposed",
		`fieldperm_reviews_total{outcome="error"}`:                                       `no label "outcome"`,
		`fieldperm_reviews_total{result="errors"}`:                                       `no series has result="errors"`,
		`fieldperm_reviews_total{result=~"err"}`:                                         "no series has",
		`sum by (path) (fieldperm_reviews_total)`:                                        `has label "path"`,
		`histogram_quantile(0.9, sum by (le) (rate(fieldperm_review_checks_count[5m])))`: `has label "le"`,
		`rate(fieldperm_enforcement_proven[5m])`:                                         "is a gauge",
		`sum(fieldperm_enforcement_proven`:                                               "unclosed",
	} {
		found, _ := faults(all, expression)
		if !slices.ContainsFunc(found, func(fault string) bool { return strings.Contains(fault, want) }) {
			t.Errorf("%s: found %q, want %q", expression, found, want)
		}
	}
}

func TestRules_NameTheCure(t *testing.T) {
	pages := map[string]string{"docs/reference/alerts.md": read(t, reference+"alerts.md")}
	for name, rule := range alerts(t) {
		if severity := rule.Labels["severity"]; severity != "critical" && severity != "warning" {
			t.Errorf("%s: severity is %q", name, severity)
		}
		for _, annotation := range []string{"summary", "description"} {
			if rule.Annotations[annotation] == "" {
				t.Errorf("%s: has no %s", name, annotation)
			}
		}
		page, found := strings.CutSuffix(rule.Annotations["runbook_url"], "#"+strings.ToLower(name))
		page, ours := strings.CutPrefix(page, runbook)
		if !found || !ours {
			t.Errorf("%s: runbook is %q", name, rule.Annotations["runbook_url"])
			continue
		}
		if pages[page] == "" {
			pages[page] = read(t, "../../"+page)
		}
	}
	// A heading's anchor is its text in lower case.
	for page, text := range pages {
		for name := range alerts(t) {
			if !regexp.MustCompile(`(?m)^### ` + name + `$`).MatchString(text) {
				t.Errorf("%s: %s has no heading for it", name, page)
			}
		}
	}
}

func TestReference_ListsEveryMetricAndNoOther(t *testing.T) {
	row := regexp.MustCompile("(?m)^\\| `(fieldperm_[a-z_]+)` \\| (\\w+) \\|([^|]*)\\|")
	listed := map[string][]string{}
	for _, match := range row.FindAllStringSubmatch(read(t, reference+"metrics.md"), -1) {
		listed[match[1]] = match[2:]
	}
	for name, f := range ours(t) {
		cells, ok := listed[name]
		delete(listed, name)
		if !ok {
			t.Errorf("%s is not in docs/reference/metrics.md: run make generate", name)
			continue
		}
		if cells[0] != strings.ToLower(f.kind.String()) {
			t.Errorf("%s: listed as %s, is a %s", name, cells[0], f.kind)
		}
		for label := range f.labels {
			if !strings.Contains(cells[1], "`"+label+"`") {
				t.Errorf("%s: label %s is not listed", name, label)
			}
		}
		if n := strings.Count(cells[1], "`") / 2; n != len(f.labels) {
			t.Errorf("%s: %d labels are listed, it has %d", name, n, len(f.labels))
		}
	}
	for name := range listed {
		t.Errorf("%s is in docs/reference/metrics.md, but nothing exposes it", name)
	}
}

func TestMetrics_HaveHelpTexts(t *testing.T) {
	help := regexp.MustCompile(`^\[ALPHA\] [A-Z0-9][^\[]*\.$`)
	for name, f := range ours(t) {
		if !help.MatchString(f.help) {
			t.Errorf("%s: help is %q", name, f.help)
		}
		if strings.HasSuffix(name, "_seconds") && !strings.Contains(f.help, "in seconds") {
			t.Errorf("%s: help does not name the unit: %q", name, f.help)
		}
		if (f.kind.String() == "COUNTER") != strings.HasSuffix(name, "_total") {
			t.Errorf("%s is a %s", name, f.kind)
		}
		for label, values := range f.labels {
			for _, value := range values {
				if !slices.Contains(free, label) && !strings.Contains(f.help, value) && label != "reason" && label != "endpoint" && label != "name" {
					t.Errorf("%s: help does not say what %s=%q is", name, label, value)
				}
			}
		}
	}
}
