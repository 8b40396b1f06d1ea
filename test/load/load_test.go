//go:build integration

package load

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
	"sigs.k8s.io/yaml"

	"github.com/fieldperm/fieldperm/test/corpus"
	"github.com/fieldperm/fieldperm/test/e2e"
	"github.com/fieldperm/fieldperm/test/process"
	"github.com/fieldperm/fieldperm/test/sender"
	"github.com/fieldperm/fieldperm/test/stack"
)

var (
	duration = flag.Duration("duration", 5*time.Second, "how long the load lasts")
	rate     = flag.Int("rate", 1000, "requests a second")
)

// maxGrowth limits the memory that the webhook may additionally use under load.
const maxGrowth = 256 << 20

// TestLoad: the webhook holds the rate with no wrong answer and bounded memory. The times are printed, not judged.
func TestLoad(t *testing.T) {
	klog.SetSlogLogger(slog.New(slog.DiscardHandler))
	all, err := scenarios()
	must(t, err)
	s := start(t, all)
	m, err := requests(all, largeObject)
	must(t, err)
	to := newSender(t, s, s.WebhookURL())
	warm(t, to, m.all())

	pid := webhookPID(t, s)
	begin, spent := memory(t, pid), processorTime(t, pid)
	ctx, cancel := context.WithCancel(t.Context())
	peaks := make(chan int64)
	go func() { peaks <- peak(ctx, pid) }()
	result := run(ctx, to, m, *rate, *duration)
	cancel()
	top, end := <-peaks, memory(t, pid)

	spent = processorTime(t, pid) - spent

	t.Log(result)
	t.Logf("processor time of fieldperm-webhook: %s, %s a request", spent, (spent / time.Duration(max(1, result.Due))).Round(time.Microsecond))
	t.Logf("memory of fieldperm-webhook: %d MiB before, %d MiB at most, %d MiB after; load average %s", begin>>20, top>>20, end>>20, loadAverage())
	for _, fault := range result.Faults {
		t.Error(fault)
	}
	if result.Right != result.Due {
		t.Errorf("%d of %d requests were answered rightly", result.Right, result.Due)
	}
	if top-begin > maxGrowth {
		t.Errorf("memory grew by %d MiB, want at most %d", (top-begin)>>20, maxGrowth>>20)
	}
}

// start runs a control plane in which the users of the scenarios have their grants, and their permission schemas are in force. The arguments
// are further flags of fieldperm-webhook.
func start(t *testing.T, all []*corpus.Scenario, arguments ...string) *stack.Stack {
	t.Helper()
	schemas, err := corpus.SchemaFiles(scenariosRoot)
	must(t, err)
	return startWith(t, all, schemas, arguments...)
}

// startWith is start with these permission schemas.
func startWith(t *testing.T, all []*corpus.Scenario, schemas []string, arguments ...string) *stack.Stack {
	t.Helper()
	t.Setenv("GOGC", "") // Memory is judged as in a container, where Go's default is in force.
	bin, err := e2e.Build()
	must(t, err)
	s, err := stack.Start(t.Context(), stack.Config{Bin: bin, Schemas: schemas, Arguments: arguments})
	must(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(s.WebhookLogTail())
		}
		must(t, s.Stop())
	})
	var namespaces, rest bytes.Buffer
	for _, scenario := range all {
		if namespace := scenario.Namespace(); namespace != "" {
			fmt.Fprintf(&namespaces, "---\n{apiVersion: v1, kind: Namespace, metadata: {name: %q}}\n", namespace)
		}
		grants, err := scenario.GrantsYAML()
		must(t, err)
		rest.Write(grants)
	}
	// A probe needs an object.
	shared, err := os.ReadFile(filepath.Join(scenariosRoot, "shared", "objects", "deployment.yaml"))
	must(t, err)
	var object map[string]any
	must(t, yaml.Unmarshal(shared, &object))
	object["apiVersion"], object["kind"] = "apps/v1", "Deployment"
	object["metadata"].(map[string]any)["namespace"] = target
	encoded, err := yaml.Marshal(object)
	must(t, err)
	rest.WriteString("---\n")
	rest.Write(encoded)
	for name, content := range map[string][]byte{"1-namespaces.yaml": namespaces.Bytes(), "2-rest.yaml": rest.Bytes()} {
		must(t, os.WriteFile(filepath.Join(s.Dir(), name), content, 0o600))
	}
	for _, name := range []string{"1-namespaces.yaml", "2-rest.yaml"} {
		must(t, s.Apply(t.Context(), filepath.Join(s.Dir(), name)))
	}
	must(t, s.AwaitGrants(t.Context()))
	return s
}

// warm sends every request until its answer is correct: denials from the time before the grants are cached for a while, and enforcement is
// proven only after the start.
func warm(t *testing.T, s *sender.Sender, requests []sender.Request) {
	t.Helper()
	for i := range requests {
		var last error
		err := wait.PollUntilContextTimeout(t.Context(), 200*time.Millisecond, 60*time.Second, true, func(ctx context.Context) (bool, error) {
			last = s.Send(ctx, &requests[i], 0).Fault()
			return last == nil, nil
		})
		if err != nil {
			t.Errorf("%s: never right: %v", requests[i].Name, last)
		}
	}
	if t.Failed() {
		t.FailNow()
	}
}

// memory returns the resident set of a process, in bytes.
func memory(t *testing.T, pid int) int64 {
	t.Helper()
	size, err := process.Memory(pid, process.Resident)
	must(t, err)
	return size
}

func webhookPID(t *testing.T, s *stack.Stack) int {
	t.Helper()
	pid, err := process.ID(s.Dir(), "fieldperm-webhook")
	must(t, err)
	return pid
}

func processorTime(t *testing.T, pid int) time.Duration {
	t.Helper()
	spent, err := process.ProcessorTime(pid)
	must(t, err)
	return spent
}

// peak returns the largest resident set until ctx ends.
func peak(ctx context.Context, pid int) int64 {
	var top int64
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		size, _ := process.Memory(pid, process.Resident) // A process that has ended gives no answer, and the test fails because of that.
		top = max(top, size)
		select {
		case <-ctx.Done():
			return top
		case <-ticker.C:
		}
	}
}

func loadAverage() string {
	content, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(content))[:3], " ")
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
