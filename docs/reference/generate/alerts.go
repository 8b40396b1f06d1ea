package main

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

const alertsIntroduction = `The alerts of [config/observability](../../config/observability): ` + "`prometheusrule.yaml`" + ` for the Prometheus Operator, ` + "`rules.yaml`" + ` with the
same rules for a Prometheus without it. A critical alert is for now, a warning for the same day. [metrics.md](metrics.md) explains the metrics.

"The log" is that of ` + "`fieldperm-webhook`" + `, on the instance that the alert names.`

//go:embed alerts.yaml
var alertTexts []byte

// runbook explains an alert, in Markdown.
type runbook struct {
	// Meaning explains the state that causes the alert, and the users that it affects.
	Meaning string `json:"meaning"`
	Cause   string `json:"cause"`
	Cure    string `json:"cure"`
}

// prometheusRule is as much of a PrometheusRule as is shown.
type prometheusRule struct {
	Spec struct {
		Groups []struct {
			Name  string      `json:"name"`
			Rules []alertRule `json:"rules"`
		} `json:"groups"`
	} `json:"spec"`
}

type alertRule struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

// alertsPage lists the alerts, each with its runbook.
func alertsPage(root string) ([]byte, error) {
	runbooks := map[string]runbook{}
	if err := yaml.UnmarshalStrict(alertTexts, &runbooks); err != nil {
		return nil, fmt.Errorf("alerts.yaml: %w", err)
	}
	raw, err := os.ReadFile(filepath.Join(root, "config", "observability", "prometheusrule.yaml"))
	if err != nil {
		return nil, err
	}
	var rules prometheusRule
	if err := yaml.Unmarshal(raw, &rules); err != nil {
		return nil, fmt.Errorf("prometheusrule.yaml: %w", err)
	}
	page := newPage("Alerts", alertsIntroduction)
	var sections markdown
	for _, group := range rules.Spec.Groups {
		title := groupTitle(group.Name)
		var index [][]string
		sections.heading(2, title)
		for _, rule := range group.Rules {
			text, ok := runbooks[rule.Alert]
			if !ok || text.Meaning == "" || text.Cause == "" || text.Cure == "" {
				return nil, fmt.Errorf("alert %q: meaning, cause or cure is missing: write them into docs/reference/generate/alerts.yaml", rule.Alert)
			}
			delete(runbooks, rule.Alert)
			index = append(index, []string{
				fmt.Sprintf("[%s](#%s)", rule.Alert, strings.ToLower(rule.Alert)), rule.Labels["severity"], fires(rule), sentence(rule.Annotations["summary"]),
			})
			sections.alert(rule, text)
		}
		page.paragraph("**" + title + "**")
		page.table([]string{"alert", "severity", "fires", "summary"}, index)
	}
	for name := range runbooks {
		return nil, fmt.Errorf("alerts.yaml: alert %q is not in prometheusrule.yaml: remove it", name)
	}
	page.Write(sections.Bytes())
	return page.Bytes(), nil
}

func (m *markdown) alert(rule alertRule, text runbook) {
	m.heading(3, rule.Alert)
	m.paragraph(fmt.Sprintf("%s Severity: %s. Fires %s.", sentence(rule.Annotations["summary"]), rule.Labels["severity"], fires(rule)))
	m.fenced("promql", rule.Expr)
	m.paragraph("**Meaning.** " + text.Meaning)
	m.paragraph("**Cause.** " + text.Cause)
	m.paragraph("**What to do.** " + text.Cure)
}

// fires says how long the expression must hold before.
func fires(rule alertRule) string {
	if rule.For == "" {
		return "at once"
	}
	return "after " + rule.For
}

// groupTitle is fieldperm-enforcement in words.
func groupTitle(name string) string {
	name = strings.TrimPrefix(name, "fieldperm-")
	return strings.ToUpper(name[:1]) + name[1:]
}
