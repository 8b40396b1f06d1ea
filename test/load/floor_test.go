//go:build integration

package load

import (
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/fieldperm/fieldperm/test/noop"
	"github.com/fieldperm/fieldperm/test/sender"
	"github.com/fieldperm/fieldperm/test/stack"
)

var (
	slice = flag.Duration("slice", 150*time.Millisecond, "TestFloor: how long one webhook is called before the other")
	turns = flag.Int("turns", 1, "TestFloor: how often each of the two is called, for each line of the table")
	only  = flag.String("only", "", "TestFloor: only lines that begin with this, such as \"granular 2KiB\"")
)

// saturated is the rate at which a request follows each answer.
const saturated = 0

// floorRates are requests a second.
var floorRates = []int{200, 1000, 5000, saturated}

// TestFloor compares fieldperm-webhook with a webhook that does nothing, by turns, with the same requests of the same sender: processor
// time, latencies and allocations of a request. The sender takes the same processors. Every answer must be an Allow; the figures are
// printed, not judged.
//
//	go test -tags integration -run Floor -v ./test/load -args -slice=3s -turns=3
func TestFloor(t *testing.T) {
	klog.SetSlogLogger(slog.New(slog.DiscardHandler))
	all, err := scenarios()
	must(t, err)
	// The catalogue of built-in kinds only: barriers are the scenarios', dozens for one kind. The checks are remembered for the whole test.
	s := startWith(t, all, nil, "--decision-cache-ttl=1h")
	own := &webhook{name: "fieldperm", pid: webhookPID(t, s), sender: newSender(t, s, s.WebhookURL()), allocated: scraped}
	requests := floorRequests(t)
	warm(t, own.sender, requests)
	floor := startNoop(t, s)
	for i := range requests {
		must(t, floor.sender.Send(t.Context(), &requests[i], 0).Fault())
	}
	idle(t, own, floor)

	t.Logf("%-22s %-9s  %-24s %-24s %-24s %-24s", "", "rate", "processor time", "p50", "p99", "bytes allocated")
	for i := range requests {
		for _, rate := range floorRates {
			if strings.HasPrefix(fmt.Sprintf("%s %d", requests[i].Name, rate), *only) {
				compare(t, own, floor, &requests[i], rate)
			}
		}
	}
}

// floorRequests returns a question and reviews in three sizes, of a user that holds the marker and the verb of the change. All are allowed.
func floorRequests(t *testing.T) []sender.Request {
	t.Helper()
	asked, err := questions()
	must(t, err)
	var out []sender.Request
	for _, q := range asked {
		if q.Want == sender.Allowed && strings.HasSuffix(q.Name, "marker") {
			q.Name, q.Contains = "authorize", []byte(`"status":{"allowed":true`)
			out = append(out, q)
		}
	}
	for _, size := range []int{2, 16, 256} {
		uid := fmt.Sprintf("0c9d2f1a-7d5e-4f35-8f0b-%012d", size)
		out = append(out, sender.Request{
			Name: fmt.Sprintf("granular %dKiB", size), Path: "/admit/granular", Body: scaling(t, uid, size<<10), UID: types.UID(uid), Want: sender.Allowed,
			Contains: fmt.Appendf(nil, `"uid":%q,"allowed":true`, uid),
		})
	}
	return out
}

// scaling returns a review of about size bytes: replicas of a Deployment, of which both objects have a long annotation.
func scaling(t *testing.T, uid string, size int) []byte {
	t.Helper()
	const form = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":%q,"kind":{"group":"apps","version":"v1","kind":"Deployment"},"resource":{"group":"apps","version":"v1","resource":"deployments"},"requestKind":{"group":"apps","version":"v1","kind":"Deployment"},"requestResource":{"group":"apps","version":"v1","resource":"deployments"},"name":"web","namespace":%q,"operation":"UPDATE","userInfo":{"username":"operator","groups":["system:authenticated"]},"object":%s,"oldObject":%s,"dryRun":false,"options":{"kind":"UpdateOptions","apiVersion":"meta.k8s.io/v1"}}}`
	object := func(replicas, filler int) string {
		return fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":%q,"annotations":{"filler":%q}},"spec":{"replicas":%d,"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"web","image":"registry.example/web:1"}]}}}}`,
			target, strings.Repeat("x", filler), replicas)
	}
	review := func(filler int) []byte {
		return fmt.Appendf(nil, form, uid, target, object(3, filler), object(2, filler))
	}
	return review(max(0, size-len(review(0))) / 2)
}

// webhook is one of the two that are compared.
type webhook struct {
	name   string
	pid    int
	sender *sender.Sender
	// allocated reads the bytes that the process has allocated since its start.
	allocated func(*testing.T, *sender.Sender) uint64
}

// costs are those of one webhook at one rate.
type costs struct {
	sender.Result
	spent     time.Duration
	allocated uint64
}

// call sends a request for one slice.
func (w *webhook) call(t *testing.T, c *costs, r *sender.Request, rate int) {
	t.Helper()
	// A reading of the counter allocates too: the first difference is that cost.
	first, second := w.allocated(t, w.sender), w.allocated(t, w.sender)
	spent := cpuTime(t, w.pid)
	var got *sender.Result
	if rate == saturated {
		got = flood(t.Context(), w.sender, r, *slice)
	} else {
		only := []sender.Request{*r}
		got = run(t.Context(), w.sender, &mix{questions: only, small: only, large: only}, rate, *slice)
	}
	c.spent += cpuTime(t, w.pid) - spent
	if allocated, reading := w.allocated(t, w.sender)-second, second-first; allocated > reading {
		c.allocated += allocated - reading
	}
	c.Add(got)
	for _, fault := range got.Faults {
		t.Errorf("%s: %s", w.name, fault)
	}
	if got.Right != got.Due {
		t.Errorf("%s: %d of %d requests were answered rightly", w.name, got.Right, got.Due)
	}
}

// compare calls both by turns and prints a line: fieldperm, the floor and their ratio.
func compare(t *testing.T, own, floor *webhook, r *sender.Request, rate int) {
	t.Helper()
	var ours, least costs
	for range *turns {
		floor.call(t, &least, r, rate)
		own.call(t, &ours, r, rate)
	}
	each := func(c *costs) float64 { return float64(c.spent.Microseconds()) / float64(max(1, c.Due)) }
	column := func(a, b float64, unit string) string {
		return fmt.Sprintf("%.0f/%.0f %s %.2f", a, b, unit, a/max(b, 1))
	}
	at := func(c *costs, share float64) float64 { return float64(c.At(share).Microseconds()) }
	called := strconv.Itoa(rate)
	if rate == saturated {
		called = fmt.Sprintf("%.0f/%.0f", float64(ours.Due)/ours.Took.Seconds(), float64(least.Due)/least.Took.Seconds())
	}
	t.Logf("%-22s %-9s  %-24s %-24s %-24s %-24s", r.Name, called, column(each(&ours), each(&least), "µs"),
		column(at(&ours, 0.5), at(&least, 0.5), "µs"), column(at(&ours, 0.99), at(&least, 0.99), "µs"),
		column(float64(ours.allocated)/float64(max(1, ours.Due)), float64(least.allocated)/float64(max(1, least.Due)), "B"))
}

// idle prints what each takes without requests: fieldperm-webhook proves its enforcement again and again.
func idle(t *testing.T, all ...*webhook) {
	t.Helper()
	for _, w := range all {
		begin, spent := time.Now(), cpuTime(t, w.pid)
		time.Sleep(*slice)
		t.Logf("%s, idle: %s of processor time a second", w.name, time.Duration(float64(cpuTime(t, w.pid)-spent)/time.Since(begin).Seconds()).Round(10*time.Microsecond))
	}
}

// startNoop runs the webhook that does nothing in a process of its own.
func startNoop(t *testing.T, s *stack.Stack) *webhook {
	t.Helper()
	program := filepath.Join(t.TempDir(), "noop")
	if output, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "github.com/fieldperm/fieldperm/test/noop/cmd").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	cmd := exec.Command(program, s.File("serving.crt"), s.File("serving.key")) //nolint:gosec // The program was just built.
	cmd.Stderr = os.Stderr
	stop, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = stop.Close() // The process ends with its standard input.
		must(t, cmd.Wait())
	})
	address := make([]byte, 64)
	n, err := out.Read(address)
	must(t, err)
	return &webhook{
		name: "noop", pid: cmd.Process.Pid, sender: newSender(t, s, "https://"+strings.TrimSpace(string(address[:n]))),
		allocated: func(t *testing.T, s *sender.Sender) uint64 {
			return number(t, string(fetched(t, s, noop.AllocatedPath)))
		},
	}
}

// scraped reads the bytes allocated from the metrics of fieldperm-webhook.
func scraped(t *testing.T, s *sender.Sender) uint64 {
	t.Helper()
	_, rest, _ := strings.Cut(string(fetched(t, s, "/metrics")), "\ngo_memstats_alloc_bytes_total ")
	value, _, _ := strings.Cut(rest, "\n")
	bytes, err := strconv.ParseFloat(value, 64)
	must(t, err)
	return uint64(bytes)
}

func number(t *testing.T, text string) uint64 {
	t.Helper()
	out, err := strconv.ParseUint(text, 10, 64)
	must(t, err)
	return out
}

func fetched(t *testing.T, s *sender.Sender, path string) []byte {
	t.Helper()
	body, err := s.Get(t.Context(), path)
	must(t, err)
	return body
}

// cpuTime returns the processor time of a process, user and system, in nanoseconds: a slice is too short for the ticks in its status.
func cpuTime(t *testing.T, pid int) time.Duration {
	t.Helper()
	var spent unix.Timespec
	// Linux has a clock for each process (clock_getcpuclockid of POSIX).
	must(t, unix.ClockGettime(int32(^pid<<3|2), &spent))
	return time.Duration(spent.Nano())
}
