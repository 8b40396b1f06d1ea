package server

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fieldperm/fieldperm/test/noop"
)

// BenchmarkCall is a whole call of a webhook over TLS and HTTP/2, with a granular user whose checks are remembered, beside the same call of
// the webhook that does nothing. Server and client are in this process, so the difference between the two is what fieldperm adds.
// "apart" sends one request after another, "together" as many as the processors take.
func BenchmarkCall(b *testing.B) {
	r := start(b, func(r *running) {
		r.api.holds = []string{"granular", "granular:scale"}
		r.api.asked = make(chan struct{}, 1<<20)
		r.options.DecisionCacheTTL = time.Hour
	})
	client := client509(b, r.serving, r.serving)
	eventually(b, "ready", func() bool { code, _ := r.get(b, client, "/readyz"); return code == http.StatusOK })
	floor := serveNoop(b, r.serving)
	bodies := []struct{ path, name, body string }{{"/authorize", "1KiB", updating}}
	for _, size := range []int{2, 16, 256} {
		bodies = append(bodies, struct{ path, name, body string }{"/admit/granular", fmt.Sprintf("%dKiB", size), padded(b, size<<10)})
	}
	for _, one := range bodies {
		for name, url := range map[string]string{"fieldperm": r.url(one.path), "noop": floor + one.path} {
			endpoint := endpointOf(one.path)
			call := func(b *testing.B) { calling(b, client, url+"?timeout=10s", []byte(one.body)) }
			b.Run(fmt.Sprintf("%s/%s/%s/apart", endpoint, one.name, name), func(b *testing.B) {
				measure(b, func() {
					for b.Loop() {
						call(b)
					}
				})
			})
			b.Run(fmt.Sprintf("%s/%s/%s/together", endpoint, one.name, name), func(b *testing.B) {
				b.SetParallelism(8)
				measure(b, func() {
					b.RunParallel(func(pb *testing.PB) {
						for pb.Next() {
							call(b)
						}
					})
				})
			})
		}
	}
}

// measure also reports the processor time of this process, client and server, garbage collection included.
func measure(b *testing.B, run func()) {
	b.Helper()
	b.ReportAllocs()
	spent := func() int64 {
		var usage syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
			b.Fatal(err)
		}
		return usage.Utime.Nano() + usage.Stime.Nano()
	}
	before := spent()
	run()
	b.ReportMetric(float64(spent()-before)/float64(b.N), "cpu-ns/op")
}

// serveNoop serves the webhook that does nothing, with a certificate of the same authority, and returns its URL.
func serveNoop(b *testing.B, serving *authority) string {
	b.Helper()
	pair, err := tls.X509KeyPair(serving.issue(b, "noop"))
	if err != nil {
		b.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	server := noop.Server(pair)
	done := make(chan error, 1)
	go func() { done <- server.ServeTLS(listener, "", "") }()
	b.Cleanup(func() {
		if err := server.Close(); err != nil {
			b.Error(err)
		}
		<-done
	})
	return "https://" + listener.Addr().String()
}

// padded returns the review of a change of replicas, with an annotation in both objects that makes it about size bytes long.
func padded(b *testing.B, size int) string {
	b.Helper()
	filler := fmt.Sprintf(`{"metadata":{"annotations":{"filler":%q}},"spec"`, strings.Repeat("x", max(0, size-len(scaling))/2))
	var out bytes.Buffer
	if err := json.Compact(&out, []byte(strings.ReplaceAll(scaling, `{"spec"`, filler))); err != nil {
		b.Fatal(err)
	}
	return out.String()
}

// calling sends a body and requires an Allow.
func calling(b *testing.B, client *http.Client, url string, body []byte) {
	response, err := client.Post(url, "application/json", bytes.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	answer, err := io.ReadAll(response.Body)
	_ = response.Body.Close() // The body was read to its end.
	if err != nil || response.StatusCode != http.StatusOK || !bytes.Contains(answer, []byte(`"allowed":true`)) {
		b.Fatalf("%d %s %v", response.StatusCode, answer, err)
	}
}
