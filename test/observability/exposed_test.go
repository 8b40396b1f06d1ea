package observability

import (
	"context"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/prometheus/model/labels"
	admissionmetrics "k8s.io/apiserver/pkg/admission/metrics"
	webhookmetrics "k8s.io/apiserver/plugin/pkg/authorizer/webhook/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/fieldperm/fieldperm/internal/metrics/metricstest"
)

// family is one scraped metric, with all values of its labels.
type family struct {
	kind   dto.MetricType
	help   string
	labels map[string][]string
}

// free are the labels whose values cannot be listed: Prometheus's own labels, and addresses and versions.
var free = []string{"instance", "server", "version", "commit", "go_version", "platform", "rejection_code", "code", "hash", "apiserver_id_hash", "jwt_issuer_hash"}

// ours returns the metrics of fieldperm-webhook, without those of its libraries.
func ours(t *testing.T) map[string]family {
	t.Helper()
	scraped, err := metricstest.Sample().Gatherer().Gather()
	if err != nil {
		t.Fatal(err)
	}
	return families(scraped, func(name string) bool { return strings.HasPrefix(name, "fieldperm_") })
}

// theirs returns the metrics of other programs: of kube-apiserver and of the libraries that it shares with fieldperm, from their own
// source, and of Prometheus.
func theirs(t *testing.T) map[string]family {
	t.Helper()
	ctx := context.Background()
	for _, end := range []admissionmetrics.WebhookRejectionErrorType{
		admissionmetrics.WebhookRejectionCallingWebhookError, admissionmetrics.WebhookRejectionAPIServerInternalError, admissionmetrics.WebhookRejectionNoError,
	} {
		admissionmetrics.Metrics.ObserveWebhookRejection(ctx, "granular.fieldperm.dev", "validating", "UPDATE", end, 503)
		admissionmetrics.Metrics.ObserveWebhookRejection(ctx, "uncovered.fieldperm.dev", "validating", "UPDATE", end, 503)
	}
	admissionmetrics.Metrics.ObserveWebhookFailOpen(ctx, "granular.fieldperm.dev", "validating")
	admissionmetrics.Metrics.ObserveWebhookFailOpen(ctx, "uncovered.fieldperm.dev", "validating")
	for _, result := range []string{"canceled", "timeout", "error", "success"} {
		webhookmetrics.NewWebhookMetrics().RecordWebhookEvaluation(ctx, "fieldperm", result)
	}
	if err := metricstest.Libraries(ctx); err != nil {
		t.Fatal(err)
	}
	scraped, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	known := append([]string{"apiserver_admission_webhook_rejection_count", "apiserver_admission_webhook_fail_open_count"}, metricstest.LibraryNames()...)
	out := families(scraped, func(name string) bool { return slices.Contains(known, name) })
	if len(out) != len(known) {
		t.Fatalf("others expose %v, want %v", out, known)
	}
	// fieldperm declares this one itself, under the name of KEP-3331.
	sampled, err := metricstest.Sample().Gatherer().Gather()
	if err != nil {
		t.Fatal(err)
	}
	for name, f := range families(sampled, func(name string) bool { return name == metricstest.Provider }) {
		out[name] = f
	}
	out["up"] = family{kind: dto.MetricType_GAUGE, labels: map[string][]string{"job": {"fieldperm"}}}
	return out
}

func families(scraped []*dto.MetricFamily, keep func(name string) bool) map[string]family {
	out := map[string]family{}
	for _, from := range scraped {
		if !keep(from.GetName()) {
			continue
		}
		f := family{kind: from.GetType(), help: from.GetHelp(), labels: map[string][]string{}}
		for _, metric := range from.GetMetric() {
			for _, label := range metric.GetLabel() {
				f.labels[label.GetName()] = append(f.labels[label.GetName()], label.GetValue())
			}
		}
		out[from.GetName()] = f
	}
	return out
}

// exposed finds the metric that an expression names; histograms are named by their parts.
func exposed(all map[string]family, name string) (family, bool) {
	if f, ok := all[name]; ok {
		return f, f.kind != dto.MetricType_HISTOGRAM
	}
	for _, part := range []string{"_bucket", "_sum", "_count"} {
		base, is := strings.CutSuffix(name, part)
		if f, ok := all[base]; is && ok && f.kind == dto.MetricType_HISTOGRAM {
			if part == "_bucket" {
				return family{f.kind, f.help, withLabel(f.labels, "le")}, true
			}
			return f, true
		}
	}
	return family{}, false
}

func withLabel(in map[string][]string, name string) map[string][]string {
	out := map[string][]string{name: nil}
	for key, values := range in {
		out[key] = values
	}
	return out
}

// mayMatch reports whether any series could satisfy a matcher of a label.
func (f family) mayMatch(m *labels.Matcher) bool {
	if slices.Contains(free, m.Name) {
		return true
	}
	return slices.ContainsFunc(f.labels[m.Name], m.Matches)
}
