//go:build integration

package scale

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/klog/v2"

	"github.com/fieldperm/fieldperm/test/process"
	"github.com/fieldperm/fieldperm/test/sender"
	"github.com/fieldperm/fieldperm/test/stack"
)

// TestScale: no review has a wrong answer, none fails while replicas are replaced by new ones, and none fails for long after a replica was
// lost. Times and memory are printed, not judged.
func TestScale(t *testing.T) {
	klog.SetSlogLogger(slog.New(slog.DiscardHandler))
	config := stack.Config{Replicas: *replicas + 1}
	if *inProcess {
		config.Prepare = rbacAlone
	}
	s := start(t, config)
	spare := *replicas
	must(t, s.StopReplica(spare))
	report(t, s, "empty cluster")
	apply(t, s, grants)
	populate(t, s)
	must(t, s.AwaitGrants(t.Context()))
	l := newLoad(t, s)
	warmLoad(t, l)
	report(t, s, "populated")

	rate := 2 * reviewed(traffic(*nodes, *controllers)) // The other half are questions.
	t.Logf("%d nodes, %d operators: %.0f reviews a second, and as many questions", *nodes, *controllers, rate/2)

	before := measure(t, s)
	steady := l.play(t, rate, nil)
	judge(t, "steady", steady, 0)
	measure(t, s).since(t, before, steady)
	report(t, s, "after the steady phase")

	lost := l.play(t, rate, func() {
		must(t, s.SignalReplica(0, syscall.SIGKILL))
	})
	// What was under way fails, and nothing that is sent later.
	judge(t, "a replica is killed", lost, int(rate))
	t.Logf("no request fails from %s after the loss on", lost.LastFailure.Round(time.Millisecond))
	must(t, s.StopReplica(0))
	restart(t, s, 0)

	rollout := l.play(t, rate, func() {
		restart(t, s, spare)
		for i := range *replicas {
			must(t, s.StopReplica(i))
			restart(t, s, i)
		}
		must(t, s.StopReplica(spare))
	})
	judge(t, "all replicas are replaced", rollout, 0)
	report(t, s, "after the replacement")
}

// warmLoad sends requests until they are answered rightly: schemas and grants arrive by watches, and enforcement is proven after them.
func warmLoad(t *testing.T, l *load) {
	t.Helper()
	begin := time.Now()
	random := rand.New(rand.NewPCG(1, 1)) //nolint:gosec // The same mix each time.
	for i := range 300 {
		r := l.mix(random)
		await(t, func(ctx context.Context) error { return l.Send(ctx, r, i).Fault() })
	}
	t.Logf("reviews are decided %s after the last object", time.Since(begin).Round(100*time.Millisecond))
}

func restart(t *testing.T, s *stack.Stack, number int) {
	t.Helper()
	begin := time.Now()
	must(t, s.LaunchReplica(number))
	must(t, s.AwaitReplica(t.Context(), number))
	t.Logf("replica %d is ready %s after its start", number, time.Since(begin).Round(100*time.Millisecond))
}

// rbacAlone lets fieldperm decide by RBAC in process.
func rbacAlone(dir string) ([]string, error) {
	file := filepath.Join(dir, "authorization.yaml")
	return []string{"--authorization-config", file}, os.WriteFile(file, []byte("apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers: [{type: RBAC, name: rbac}]\n"), 0o600)
}

// sums are the sums of what all replicas have counted.
type sums struct {
	processor              time.Duration
	checks, missed, probes float64
	at                     time.Time
}

func measure(t *testing.T, s *stack.Stack) sums {
	t.Helper()
	out := sums{at: time.Now()}
	for i := range s.Replicas() {
		if !s.Running(i) {
			continue
		}
		text := metrics(t, s, i)
		out.checks += sum(text, "fieldperm_checks_total")
		out.missed += sum(text, "apiserver_authorization_webhook_evaluations_total")
		out.probes += sum(text, "fieldperm_probes_total")
		out.processor += processorTime(t, pid(t, s, i))
	}
	return out
}

func (a sums) since(t *testing.T, b sums, r *sender.Result) {
	t.Helper()
	took, spent := a.at.Sub(b.at).Seconds(), a.processor-b.processor
	t.Logf("processor time of all replicas: %.2f cores, %s a request; %.1f checks, %.1f SubjectAccessReviews and %.2f probes a second",
		spent.Seconds()/took, (spent / time.Duration(max(1, r.Due))).Round(time.Microsecond), (a.checks-b.checks)/took, (a.missed-b.missed)/took, (a.probes-b.probes)/took)
}

// report prints the memory of each replica.
func report(t *testing.T, s *stack.Stack, when string) {
	t.Helper()
	for i := range s.Replicas() {
		if !s.Running(i) {
			continue
		}
		text := metrics(t, s, i)
		t.Logf("%s: replica %d: %.0f MiB of its own, %.0f MiB with the program's file, %.0f MiB at most; live heap %.1f MiB, %.0f kinds", when, i,
			status(t, pid(t, s, i), process.Anonymous), status(t, pid(t, s, i), process.Resident), status(t, pid(t, s, i), process.Highest), sum(text, "go_memstats_next_gc_bytes")/2/(1<<20), sum(text, "fieldperm_schema_kinds"))
	}
}

func metrics(t *testing.T, s *stack.Stack, number int) string {
	t.Helper()
	client, err := s.WebhookClient()
	must(t, err)
	defer client.CloseIdleConnections()
	response, err := client.Get(s.ReplicaURL(number) + "/metrics")
	must(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	must(t, err)
	return string(text)
}

// sum adds the values of all series of a metric.
func sum(text, name string) float64 {
	total := 0.0
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, name); ok && (rest[0] == ' ' || rest[0] == '{') {
			value, _ := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndexByte(line, ' '):]), 64)
			total += value
		}
	}
	return total
}

func pid(t *testing.T, s *stack.Stack, number int) int {
	t.Helper()
	name := "fieldperm-webhook"
	if number > 0 {
		name = fmt.Sprintf("%s-%d", name, number+1)
	}
	out, err := process.ID(s.Dir(), name)
	must(t, err)
	return out
}

// status returns a size of a process, in MiB.
func status(t *testing.T, pid int, of string) float64 {
	t.Helper()
	size, err := process.Memory(pid, of)
	must(t, err)
	return float64(size) / (1 << 20)
}

func processorTime(t *testing.T, pid int) time.Duration {
	t.Helper()
	spent, err := process.ProcessorTime(pid)
	must(t, err)
	return spent
}
