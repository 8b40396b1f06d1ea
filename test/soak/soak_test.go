//go:build integration

package soak

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/fieldperm/fieldperm/test/e2e"
	"github.com/fieldperm/fieldperm/test/stack"
)

var (
	duration = flag.Duration("duration", 20*time.Second, "how long the soak lasts at least; rounds begin until then")
	rounds   = flag.Int("rounds", 1, "number of rounds; 0 for as many as there is time")
	pause    = flag.Duration("pause", 0, "time between two events of a round")
	hold     = flag.Duration("hold", 500*time.Millisecond, "how long a state between two changes lasts")
	ttl      = flag.Duration("ttl", 2*time.Second, "how long fieldperm caches decisions")
	rate     = flag.Int("rate", 300, "requests a second")
	every    = flag.Duration("every", time.Second, "time between two samples")
	samples  = flag.String("samples", "", "file for the samples, CSV")
	binaries = flag.String("bin", "", "directory of built commands; empty to build them")
	only     = flag.String("only", "", "only events whose name contains this")
	growth   = flag.Bool("growth", false, "judge growth, which takes many minutes to show")
)

// padding is what makes a body large.
var padding = regexp.MustCompile("x{20,}")

const authorizationFile = "authorization.yaml"

// scene is a soak that runs.
type scene struct {
	t       *testing.T
	ctx     context.Context
	s       *stack.Stack
	admin   *kubernetes.Clientset
	mix     *mix
	fleet   *fleet
	callers *callers
	judge   *judge
	sender  *sender
}

// TestSoak: no answer is wrong, no request fails without a reason, and no process grows.
func TestSoak(t *testing.T) {
	klog.SetSlogLogger(slog.New(slog.DiscardHandler))
	t.Setenv("GOGC", "") // Memory is judged as in a container, where Go's default is in force.
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	c := &scene{t: t, ctx: ctx, mix: newMix(), fleet: &fleet{}, judge: &judge{fatal: func(text string) { cancel(errors.New(text)) }}}
	c.start()
	recorder := c.record()

	var running sync.WaitGroup
	load, stop := context.WithCancel(ctx)
	begin := time.Now()
	running.Go(func() { c.sender.run(load, *rate) })
	running.Go(func() { c.write(load) })
	running.Go(func() { recorder.run(load, *every) })
	err := c.play(begin)
	stop()
	running.Wait()
	c.sender.close()

	took := time.Since(begin)
	counts, faults := c.judge.soFar()
	sent, skipped := c.sender.sent.Load(), c.sender.skipped.Load()
	t.Logf("%d requests sent in %s, %.0f a second; %d were not sent, because the sender was late", sent, took.Round(time.Second), float64(sent)/took.Seconds(), skipped)
	t.Log(counts)
	for _, fault := range faults {
		t.Error(fault)
	}
	if err != nil {
		t.Error(err)
	}
	if counts.wrongAllows+counts.wrongDenials+counts.failures > 0 {
		t.Error(counts)
	}
	c.report(recorder)
}

// start runs the control plane with two replicas, and the users.
func (c *scene) start() {
	t := c.t
	bin := *binaries
	if bin == "" {
		var err error
		bin, err = e2e.Build(t.Context())
		must(t, err)
	}
	schemas := filepath.Join(t.TempDir(), "barriers.yaml")
	must(t, os.WriteFile(schemas, []byte(barriers), 0o600))
	var err error
	c.s, err = stack.Start(t.Context(), stack.Config{
		Bin: bin, Replicas: 2, Schemas: []string{schemas},
		Prepare: func(dir string) ([]string, error) {
			var err error
			if c.callers, err = newCallers(dir); err != nil {
				return nil, err
			}
			file := filepath.Join(dir, authorizationFile)
			return []string{"--client-ca-file", filepath.Join(dir, callersFile), "--authorization-config", file},
				os.WriteFile(file, fmt.Appendf(nil, chainForm, serverEntry()+rbacEntry), 0o600)
		},
	})
	must(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(c.s.WebhookLogTail())
		}
		must(t, c.s.Stop())
	})
	c.callers.s = c.s
	c.admin, err = kubernetes.NewForConfig(c.s.Admin())
	must(t, err)
	must(t, c.s.Apply(t.Context(), filepath.Join("..", "..", "config", "crd")))
	must(t, c.kubectl("", "wait", "--for=condition=Established", "crd/uncoveredpermissionsets.fieldperm.dev", "crd/permissionschemas.fieldperm.dev"))
	must(t, c.apply(population()))
	must(t, c.s.AwaitGrants(t.Context()))
	for i := range c.s.Replicas() {
		c.fleet.add(i, strings.TrimPrefix(c.s.ReplicaURL(i), "https://"))
	}
	must(t, c.createDefinition())
	must(t, c.recovered())
	c.sender = &sender{url: c.s.WebhookURL(), fleet: c.fleet, certified: c.callers.certified, pick: c.mix.pick, judge: c.note, seats: make(chan struct{}, inFlight)}
	c.sender.renewAll()
}

func (c *scene) note(e *exchange) {
	c.judge.note(outcome{
		name: e.of.name, begin: e.begin, end: e.end, answer: e.answer, right: e.of.truth.during(e.begin, e.end), unproven: e.unproven,
		killed: e.to != nil && e.to.killed.Load(), starved: e.starved(),
		detail: func() string {
			to := -1
			if e.to != nil {
				to = e.to.replica
			}
			return fmt.Sprintf("replica %d: %v\nanswer: %s\nrequest: %s", to, e.err, e.body, padding.ReplaceAll(e.of.body, []byte("x…")))
		},
	})
}

// play plays rounds of events.
func (c *scene) play(begin time.Time) error {
	for round := 0; *rounds == 0 || round < *rounds; round++ {
		for _, h := range happenings {
			if !strings.Contains(h.name, *only) {
				continue
			}
			if err := c.sleep(*pause); err != nil {
				return err
			}
			if *rounds == 0 && time.Since(begin) >= *duration {
				return c.recovered()
			}
			at := time.Now()
			end := c.judge.during(h.name)
			if err := h.run(c, round); err != nil {
				return fmt.Errorf("round %d: %s: %w", round, h.name, err)
			}
			if err := c.recovered(); err != nil {
				return fmt.Errorf("round %d: after %s: %w", round, h.name, err)
			}
			end()
			counts, _ := c.judge.soFar()
			c.t.Logf("%s round %d: %s, %s; %d sent, %d not sent: %s", time.Now().Format(time.TimeOnly), round, h.name, time.Since(at).Round(100*time.Millisecond), c.sender.sent.Load(), c.sender.skipped.Load(), counts)
		}
	}
	return c.sleep(*duration - time.Since(begin))
}

// recovered returns when each replica answers one request of each kind rightly.
func (c *scene) recovered() error {
	picked := map[string]*request{}
	for _, r := range append(append([]*request{}, c.mix.steady...), c.mix.questions...) {
		kind := r.path + fmt.Sprint(r.truth.during(time.Now(), time.Now()))
		if picked[kind] == nil {
			picked[kind] = r
		}
	}
	for _, r := range picked {
		if err := c.agreed1(r); err != nil {
			return err
		}
	}
	return nil
}

func (c *scene) agreed1(r *request) error {
	return c.await(r.name, func(context.Context) error {
		for _, one := range c.fleet.all() {
			client := client(nil, c.callers.certified())
			got := exchangeOf(client, "https://"+one.address, r)
			client.CloseIdleConnections()
			if got.answer&r.truth.during(got.begin, got.end) == 0 {
				return fmt.Errorf("replica %d: the answer is %s: %v", one.replica, got.answer, got.err)
			}
		}
		return nil
	})
}

// record prepares the samples.
func (c *scene) record() *recorder {
	out := io.Writer(io.Discard)
	if *samples != "" {
		file, err := os.Create(*samples)
		must(c.t, err)
		c.t.Cleanup(func() { must(c.t, file.Close()) })
		out = file
	}
	return &recorder{s: c.s, callers: c.callers, fleet: c.fleet, quiet: c.sender.quiet, out: out}
}

// report prints the trends of the process that ran the longest, and judges them.
func (c *scene) report(r *recorder) {
	l := r.oldest()
	if l == nil {
		c.t.Errorf("no process was sampled: %v", r.lastFault)
		return
	}
	warm := l.samples[len(l.samples)/6:]
	c.t.Logf("replica %d, process %d: %d samples over %s, %d of them after the first sixth", l.replica, l.pid, len(l.samples), l.samples[len(l.samples)-1].at.Round(time.Second), len(warm))
	for _, q := range judged {
		trend, err := trendOf(q, warm)
		if err != nil {
			c.t.Error(err)
			continue
		}
		c.t.Log(trend)
		if *growth && trend.grows() {
			c.t.Errorf("%s grows: %s", q.name, trend)
		}
	}
}

// await calls f until it returns no error.
func (c *scene) await(what string, f func(context.Context) error) error {
	var last error
	if err := wait.PollUntilContextTimeout(c.ctx, 50*time.Millisecond, 5*time.Minute, true, func(ctx context.Context) (bool, error) {
		err := f(ctx)
		if err == nil || ctx.Err() == nil {
			last = err
		}
		return err == nil, nil
	}); err != nil {
		return fmt.Errorf("%s: %w", what, errors.Join(err, context.Cause(c.ctx), last))
	}
	return nil
}

// get returns the status and the body.
func get(ctx context.Context, c *http.Client, url string) (int, string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, "", err
	}
	response, err := c.Do(request)
	if err != nil {
		return 0, "", err
	}
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close() // The body was read to its end.
	return response.StatusCode, string(body), err
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
