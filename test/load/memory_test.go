//go:build integration

package load

import (
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/fieldperm/fieldperm/test/process"
	"github.com/fieldperm/fieldperm/test/sender"
	"github.com/fieldperm/fieldperm/test/stack"
)

const (
	// containerLimit is the memory limit that the manifests in config/ give the container.
	containerLimit = 512 << 20
	// parallel reviews of largeReview bytes, of two objects each.
	parallel    = 600
	largeReview = 2 << 20
	// The size of a ConfigMap, and the number of writers that patch one each at the same time.
	configMapBytes, writers = 1_000_000, 25
)

// TestD1_MemoryStaysBelowTheLimit: 600 parallel reviews of 2 MB, and then 25 writers of large ConfigMaps. Every answer is correct, or a 429
// with the time of the next attempt. The process does not end and stays below the limit of its container.
func TestD1_MemoryStaysBelowTheLimit(t *testing.T) {
	klog.SetSlogLogger(slog.New(slog.DiscardHandler))
	all, err := scenarios()
	must(t, err)
	// A container with the limit gives fieldperm nine tenths of it.
	s := start(t, all, fmt.Sprintf("--memory-limit=%d", containerLimit/10*9))
	grown, err := requests(all, largeReview/2)
	must(t, err)
	to := newSender(t, s, s.WebhookURL())
	small, err := requests(all, largeObject)
	must(t, err)
	warm(t, to, small.all())
	pid := webhookPID(t, s)

	right, refused := burst(t, to, grown.large)
	t.Logf("%d reviews of 2 MB at the same time: %d answered rightly, %d refused with 429; at most %d MiB", parallel, right, refused, high(t, pid)>>20)
	if right == 0 {
		t.Error("no review was decided")
	}
	labelled, took := configMaps(t, s)
	t.Logf("%d writers of a ConfigMap of %d bytes each: %d labels written in %s; at most %d MiB", writers, configMapBytes, labelled, took.Round(time.Millisecond), high(t, pid)>>20)

	if top := high(t, pid); top >= containerLimit {
		t.Errorf("fieldperm-webhook took %d MiB, and the limit is %d MiB", top>>20, int64(containerLimit)>>20)
	}
	warm(t, to, small.all())
	if webhookPID(t, s) != pid {
		t.Error("fieldperm-webhook was started again")
	}
}

// burst sends all requests at the same time, each once, and returns how many were decided and how many refused.
func burst(t *testing.T, s *sender.Sender, from []sender.Request) (right, refused int64) {
	t.Helper()
	var decided, full atomic.Int64
	var flying sync.WaitGroup
	for i := range parallel {
		flying.Go(func() {
			r := &from[i%len(from)]
			got := s.Send(t.Context(), r, i)
			switch fault := got.Fault(); {
			case fault == nil:
				decided.Add(1)
			case got.Code == http.StatusTooManyRequests && got.RetryAfter != "":
				full.Add(1)
			default:
				t.Errorf("%s: %v", r.Name, fault)
			}
		})
	}
	flying.Wait()
	return decided.Load(), full.Load()
}

// configMaps lets every writer patch a large ConfigMap of its own through kube-apiserver: first a label, which it may change, and then
// data, which it may not. On a busy machine both may fail: then kube-apiserver refuses the request with an error, which is no denial.
func configMaps(t *testing.T, s *stack.Stack) (int64, time.Duration) {
	t.Helper()
	manifest := s.Dir() + "/large.yaml"
	must(t, os.WriteFile(manifest, []byte(`
apiVersion: v1
kind: Namespace
metadata: {name: large}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: labeller, namespace: large}
rules:
- {apiGroups: [""], resources: [configmaps], verbs: [get, granular, "granular:label(team)"]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: labeller, namespace: large}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: labeller}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: labeller}]
`), 0o600))
	must(t, s.Apply(t.Context(), manifest))
	must(t, s.AwaitGrants(t.Context()))
	admin, err := kubernetes.NewForConfig(s.Admin())
	must(t, err)
	user, err := s.User("labeller")
	must(t, err)
	labeller, err := kubernetes.NewForConfig(user.Config)
	must(t, err)
	content := `{"metadata":{"name":"NAME"},"data":{"filler":"` + strings.Repeat("x", configMapBytes) + `"}}`
	var labelled atomic.Int64
	var flying sync.WaitGroup
	begin := time.Now()
	for i := range writers {
		name := fmt.Sprint("large-", i)
		_, err := admin.CoreV1().RESTClient().Post().Namespace("large").Resource("configmaps").Body([]byte(strings.Replace(content, "NAME", name, 1))).
			SetHeader("Content-Type", "application/json").Do(t.Context()).Raw()
		must(t, err)
		flying.Go(func() {
			patch := func(body string) error {
				_, err := labeller.CoreV1().ConfigMaps("large").Patch(t.Context(), name, types.MergePatchType, []byte(body), metav1.PatchOptions{})
				return err
			}
			switch err := patch(`{"metadata":{"labels":{"team":"a"}}}`); {
			case err == nil:
				labelled.Add(1)
			case strings.Contains(err.Error(), "granular:label"):
				t.Errorf("%s: the label was denied: %v", name, err)
			}
			if err := patch(`{"data":{"more":"x"}}`); err == nil {
				t.Errorf("%s: data was written", name)
			}
		})
	}
	flying.Wait()
	took := time.Since(begin)
	stored, err := admin.CoreV1().ConfigMaps("large").List(t.Context(), metav1.ListOptions{})
	must(t, err)
	for i := range stored.Items {
		if _, more := stored.Items[i].Data["more"]; more {
			t.Errorf("%s: data is stored", stored.Items[i].Name)
		}
	}
	if labelled.Load() == 0 {
		t.Error("no label was written")
	}
	return labelled.Load(), took
}

// high returns the largest resident set of a process so far, in bytes.
func high(t *testing.T, pid int) int64 {
	t.Helper()
	size, err := process.Memory(pid, process.Highest)
	must(t, err)
	return size
}
