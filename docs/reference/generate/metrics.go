package main

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"

	"github.com/fieldperm/fieldperm/internal/metrics/metricstest"
)

const metricsIntroduction = `What ` + "`fieldperm-webhook serve`" + ` serves at ` + "`/metrics`" + `. [Alerts](alerts.md) are made of these.

Metrics of stability ALPHA may change their names and labels with any release. Durations are in seconds; a histogram also has the
series ` + "`_bucket`, `_sum` and `_count`" + `. No label has the name of a user, an object, a resource or a verb as its value.

Besides those below there are the metrics of the Go runtime (` + "`go_…`" + `), of the process (` + "`process_…`" + `) and of Kubernetes' libraries, such as
` + "`rest_client_requests_total`" + `.`

const chainIntroduction = `The metrics of KEP-3221 and of the two configuration files, under the names that they have in kube-apiserver, and one that KEP-3331 has and kube-apiserver has not. A Prometheus that scrapes
kube-apiserver too has them twice: those of fieldperm have the label ` + "`job=\"fieldperm\"`" + `. ` + "`name`" + ` is the name of the authorizer in the
AuthorizationConfiguration; without that file it is ` + "`in-cluster-authorizer`" + `.`

// metricsPage lists the metrics that are exposed once each of them has been used.
func metricsPage(string) ([]byte, error) {
	if err := metricstest.Libraries(context.Background()); err != nil {
		return nil, err
	}
	families, err := metricstest.Sample().Gatherer().Gather()
	if err != nil {
		return nil, err
	}
	var own, chain [][]string
	for _, family := range families {
		name := family.GetName()
		ours, libraries := strings.HasPrefix(name, "fieldperm_"), name == metricstest.Provider || slices.Contains(metricstest.LibraryNames(), name)
		if !ours && !libraries {
			continue
		}
		row, err := metricRow(family)
		if err != nil {
			return nil, err
		}
		if ours {
			own = append(own, row)
		} else {
			chain = append(chain, row)
		}
	}
	if want := len(metricstest.LibraryNames()) + 1; len(chain) != want {
		return nil, fmt.Errorf("%d metrics with the names of kube-apiserver are exposed, want %d", len(chain), want)
	}
	page := newPage("Metrics", metricsIntroduction)
	header := []string{"metric", "type", "labels", "stability", "meaning"}
	page.heading(2, "Metrics of fieldperm")
	page.table(header, own)
	page.heading(2, "Metrics of the chain of authorizers")
	page.paragraph(chainIntroduction)
	page.table(header, chain)
	return page.Bytes(), nil
}

// stability is how component-base begins the help of every metric.
var stability = regexp.MustCompile(`^\[(\w+)\] `)

func metricRow(family *dto.MetricFamily) ([]string, error) {
	found := stability.FindStringSubmatch(family.GetHelp())
	if found == nil {
		return nil, fmt.Errorf("metric %q: help %q does not begin with a stability: register it with component-base", family.GetName(), family.GetHelp())
	}
	labels := map[string]bool{}
	for _, metric := range family.GetMetric() {
		for _, label := range metric.GetLabel() {
			labels[label.GetName()] = true
		}
	}
	return []string{
		code(family.GetName()), strings.ToLower(family.GetType().String()), codes(slices.Sorted(maps.Keys(labels))),
		found[1], sentence(plain(strings.TrimPrefix(family.GetHelp(), found[0]))),
	}, nil
}
