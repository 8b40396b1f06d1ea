//go:build integration

package patch

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// table renders the cost of a PATCH of each variant, and its ratios to no webhook and to the no-op webhook.
func table(runs []*run) string {
	out := new(strings.Builder)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "variant\tp50\tp99\tserver CPU\twebhook CPU\tp50/none\tp50/no-op\tCPU/none\tCPU/no-op\tauthorize\tadmit\tchecks\t")
	by := map[string]*run{}
	for _, r := range runs {
		by[r.name] = r
	}
	for _, r := range runs {
		server, webhook := r.timesEach()
		per := r.total().each(len(r.latencies()))
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%.2f\t%.2f\t%.2f\t%.2f\t%.2g\t%.2g\t%.2g\t\n", r.name,
			quantile(r.latencies(), 0.5), quantile(r.latencies(), 0.99), server.Round(10*time.Microsecond), webhook.Round(10*time.Microsecond),
			r.timeTo(by[none]), r.timeTo(by[noop]), r.processorTo(by[none]), r.processorTo(by[noop]),
			per.authorize, per.granular+per.uncovered+per.observed, per.checks)
	}
	_ = w.Flush() // A builder takes everything.
	return out.String()
}

// latencies returns those of all slices, sorted.
func (r *run) latencies() []time.Duration {
	var out []time.Duration
	for _, s := range r.slices {
		out = append(out, s.latencies...)
	}
	slices.Sort(out)
	return out
}

func quantile(sorted []time.Duration, q float64) time.Duration {
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))].Round(10 * time.Microsecond)
}

// timesEach returns the processor time of a PATCH in kube-apiserver and in the webhook.
func (r *run) timesEach() (server, webhook time.Duration) {
	for _, s := range r.slices {
		server += s.server
		webhook += s.webhook
	}
	n := time.Duration(len(r.latencies()))
	return server / n, webhook / n
}

// timeTo returns the median of the ratios of medians within a round.
func (r *run) timeTo(other *run) float64 {
	ratios := make([]float64, len(r.slices))
	for i, s := range r.slices {
		ratios[i] = float64(quantile(s.latencies, 0.5)) / float64(quantile(other.slices[i].latencies, 0.5))
	}
	slices.Sort(ratios)
	return ratios[len(ratios)/2]
}

// processorTo returns the ratio of the processor times of a PATCH, of kube-apiserver and webhook together.
func (r *run) processorTo(other *run) float64 {
	server, webhook := r.timesEach()
	otherServer, otherWebhook := other.timesEach()
	return float64(server+webhook) / float64(max(1, otherServer+otherWebhook))
}

func (r *run) total() (out requests) {
	for _, s := range r.slices {
		out = out.plus(s.requests)
	}
	return out
}

func (r requests) plus(o requests) requests {
	return requests{r.authorize + o.authorize, r.granular + o.granular, r.uncovered + o.uncovered, r.observed + o.observed, r.checks + o.checks}
}

func (r requests) minus(o requests) requests {
	return requests{r.authorize - o.authorize, r.granular - o.granular, r.uncovered - o.uncovered, r.observed - o.observed, r.checks - o.checks}
}
