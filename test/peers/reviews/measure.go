package reviews

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Peer is a program that decides reviews, or a library with a policy.
type Peer struct {
	// Name has the program, and what is special if it is measured in more than one way.
	Name  string
	Cases []Case
	// Decider returns a function that decides a case from its body to the answer, and is called again and again.
	Decider func(testing.TB, Case) func() (allowed bool, err error)
}

// Webhook is a Peer with an HTTP handler: from the bytes of the request to those of the answer, without network and TLS.
func Webhook(name string, cases []Case, path string, handler http.Handler) Peer {
	return Peer{name, cases, func(tb testing.TB, c Case) func() (bool, error) {
		return func() (bool, error) { return post(tb, handler, path, c.Body) }
	}}
}

// Test fails for each review that the peer does not decide correctly.
func Test(t *testing.T, p Peer) {
	t.Helper()
	for _, c := range p.Cases {
		t.Run(p.Name+"/"+c.Name, func(t *testing.T) {
			decide := p.Decider(t, c)
			// Twice, because the second decision may come from a cache.
			for range 2 {
				if allowed, err := decide(); err != nil || allowed != c.Allowed {
					t.Errorf("allowed is %t, want %t; error %v", allowed, c.Allowed, err)
				}
			}
		})
	}
}

// Benchmark measures a peer. In addition to the time it reports the processor time of the process, garbage collection included, and the
// memory that the process holds after a collection.
func Benchmark(b *testing.B, p Peer) {
	b.Helper()
	for _, c := range p.Cases {
		b.Run(p.Name+"/"+c.Name, func(b *testing.B) {
			decide := p.Decider(b, c)
			once := func() {
				if allowed, err := decide(); err != nil || allowed != c.Allowed {
					b.Fatalf("allowed is %t, want %t; error %v", allowed, c.Allowed, err)
				}
			}
			once()
			b.ReportAllocs()
			before := processorTime(b)
			for b.Loop() {
				once()
			}
			spent := processorTime(b) - before
			b.ReportMetric(float64(spent)/float64(b.N), "cpu-ns/op")
			debug.FreeOSMemory()
			b.ReportMetric(resident(b), "resident-MiB")
		})
	}
}

// processorTime is the processor time of this process.
func processorTime(tb testing.TB) time.Duration {
	tb.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// resident is the memory of this process in MiB that no file backs: the pages of the program itself are not counted.
func resident(tb testing.TB) float64 {
	tb.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		tb.Fatal(err)
	}
	_, after, ok := strings.Cut(string(status), "RssAnon:")
	fields := strings.Fields(after)
	if !ok || len(fields) == 0 {
		tb.Fatal("/proc/self/status has no RssAnon")
	}
	kib, err := strconv.ParseFloat(fields[0], 64)
	if err != nil {
		tb.Fatal(err)
	}
	return kib / 1024
}

// post calls a handler and reads its answer.
func post(tb testing.TB, handler http.Handler, path string, body []byte) (bool, error) {
	request, err := http.NewRequestWithContext(tb.Context(), http.MethodPost, path, bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	request.Header.Set("Content-Type", "application/json")
	answer := recorder{header: http.Header{}}
	handler.ServeHTTP(&answer, request)
	// To decode the answer would cost time that is not the peer's.
	yes, no := bytes.Contains(answer.body.Bytes(), []byte(`"allowed":true`)), bytes.Contains(answer.body.Bytes(), []byte(`"allowed":false`))
	// An error of the peer is a denial to users, but no decision.
	failed := bytes.Contains(answer.body.Bytes(), []byte(`"code":500`)) || bytes.Contains(answer.body.Bytes(), []byte(`"code":400`))
	if answer.code > http.StatusOK || yes == no || failed {
		return false, fmt.Errorf("HTTP %d: %.300s", answer.code, answer.body.String())
	}
	return yes, nil
}

// recorder keeps the body of an answer.
type recorder struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header              { return r.header }
func (r *recorder) WriteHeader(code int)             { r.code = code }
func (r *recorder) Write(answer []byte) (int, error) { return r.body.Write(answer) }
