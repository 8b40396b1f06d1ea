//go:build integration

package patch

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/fieldperm/fieldperm/test/corpus"
	"github.com/fieldperm/fieldperm/test/process"
)

// cacheTime is how long kube-apiserver and fieldperm cache answers by default.
const cacheTime = 10 * time.Second

// run is a variant that runs.
type run struct {
	*variant
	plane  *plane
	user   *corpus.Wire
	fields *http.Client // to fieldperm's metrics; nil without fieldperm

	// batches are the groups of Deployments that take turns, each with the time of its last PATCH.
	batches  []time.Time
	replicas int

	// slices are the results, one for each round.
	slices []slice
}

// slice is what some PATCHes one after the other have cost.
type slice struct {
	latencies       []time.Duration
	server, webhook time.Duration
	requests        requests
}

// objects returns the number of Deployments of a variant in slices of so many writes. The last one is for the checks before them.
func (v *variant) objects(perSlice int) int {
	if v.cold {
		return perSlice*batches + 1
	}
	return warm + 1
}

// warm is the number of Deployments of a variant that is not cold. With a single one kube-apiserver would begin most writes with the object
// before the last write, which its watch cache still has, and repeat them with admission.
const warm = 4

// batches is the number of groups of Deployments of a cold variant. With as many rounds between two PATCHes of one, none has to wait.
const batches = 6

func newRun(v *variant, p *plane) (*run, error) {
	out := &run{variant: v, plane: p, batches: make([]time.Time, batches), replicas: 1}
	user, err := p.User(v.name)
	if err != nil {
		return nil, err
	}
	if out.user, err = corpus.NewWire(user.Config); err != nil {
		return nil, err
	}
	if p.stack != nil {
		out.fields, err = p.stack.WebhookClient()
	}
	return out, err
}

const strategicMergePatch = "application/strategic-merge-patch+json"

// patch sends a PATCH of a Deployment.
func (r *run) patch(ctx context.Context, number int, body string) (*corpus.Answer, error) {
	return r.user.Do(ctx, http.MethodPatch, "/apis/apps/v1/namespaces/"+r.name+"/deployments/"+deploymentName(number), nil, strategicMergePatch, []byte(body))
}

// scale changes the number of replicas. An answer other than success is an error.
func (r *run) scale(ctx context.Context, number int) error {
	r.replicas = r.replicas%100 + 1
	answer, err := r.patch(ctx, number, fmt.Sprintf(`{"spec":{"replicas":%d}}`, r.replicas))
	if err != nil {
		return err
	}
	if wanted := fmt.Appendf(nil, `"replicas":%d`, r.replicas); answer.Code != http.StatusOK || !bytes.Contains(answer.Body, wanted) {
		return fmt.Errorf("%s: %d: %s", r.name, answer.Code, answer.Body)
	}
	return nil
}

// measure sends PATCHes one after the other. All answers about the objects are cached before, or none.
func (r *run) measure(ctx context.Context, round, writes int) error {
	asked, err := r.asked(ctx)
	if err != nil {
		return err
	}
	first, of := 0, warm
	if r.cold {
		batch := round % batches
		time.Sleep(time.Until(r.batches[batch].Add(cacheTime + time.Second)))
		defer func() { r.batches[batch] = time.Now() }()
		first, of = batch*writes, writes
	} else {
		for number := range warm {
			if err := r.scale(ctx, number); err != nil {
				return err
			}
		}
		if asked, err = r.askedSince(ctx, asked, warm); err != nil {
			return err
		}
	}
	server, webhook, err := r.processorTimes()
	if err != nil {
		return err
	}
	out := slice{latencies: make([]time.Duration, writes)}
	for i := range writes {
		begin := time.Now()
		if err := r.scale(ctx, first+i%of); err != nil {
			return err
		}
		out.latencies[i] = time.Since(begin)
	}
	serverAfter, webhookAfter, err := r.processorTimes()
	if err != nil {
		return err
	}
	askedAfter, err := r.askedSince(ctx, asked, writes)
	if err != nil {
		return err
	}
	slices.Sort(out.latencies)
	out.server, out.webhook, out.requests = serverAfter-server, webhookAfter-webhook, askedAfter.minus(asked)
	r.slices = append(r.slices, out)
	return nil
}

// askedSince returns the requests so far, when those of so many writes are counted: fieldperm counts a review after it has answered. It gives
// up after a while, so that check can report what is wrong.
func (r *run) askedSince(ctx context.Context, before requests, writes int) (out requests, err error) {
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if out, err = r.asked(ctx); err != nil || out.minus(before).each(writes).reaches(r.causes) || time.Now().After(end) {
			return out, err
		}
	}
}

// processorTimes returns the processor times of kube-apiserver and of the webhook so far.
func (r *run) processorTimes() (server, webhook time.Duration, err error) {
	if server, err = process.ProcessorTime(r.plane.server); err != nil || r.plane.webhook == 0 {
		return server, 0, err
	}
	webhook, err = process.ProcessorTime(r.plane.webhook)
	return server, webhook, err
}

// asked returns the requests between kube-apiserver and fieldperm so far, without those of probes. Each probe asks authorize once, and
// granular once.
func (r *run) asked(ctx context.Context) (out requests, err error) {
	if r.fields == nil {
		return out, nil
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.plane.stack.WebhookURL()+"/metrics", nil)
	if err != nil {
		return out, err
	}
	response, err := r.fields.Do(request)
	if err != nil {
		return out, err
	}
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close() // It was read to its end.
	if err != nil {
		return out, err
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(body))
	if err != nil {
		return out, err
	}
	for _, m := range families["fieldperm_reviews_total"].GetMetric() {
		if label(m, "result") == "probe" {
			if label(m, "endpoint") == "granular" {
				out.authorize -= m.GetCounter().GetValue()
			}
			continue
		}
		of := map[string]*float64{"authorize": &out.authorize, "granular": &out.granular, "uncovered": &out.uncovered, "observed": &out.observed}[label(m, "endpoint")]
		if of != nil {
			*of += m.GetCounter().GetValue()
		}
	}
	for _, m := range families["fieldperm_check_cache_total"].GetMetric() {
		if label(m, "result") == "miss" {
			out.checks += m.GetCounter().GetValue()
		}
	}
	return out, nil
}

func label(m *dto.Metric, name string) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}
