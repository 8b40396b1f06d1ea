//go:build unix

package tighten

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// BenchmarkLog reads a generated log. FIELDPERM_LOG_BYTES is its size, 64 MiB if not set; the heap must not grow with it.
// subject: every line is an update of the subject. mixed: one line of ten is. MB/cpu-s is per second of processor time, because other
// programs may use the processor as well. heap-MB is what remains allocated while the log is read, at most.
func BenchmarkLog(b *testing.B) {
	size := int64(64 << 20)
	if text := os.Getenv("FIELDPERM_LOG_BYTES"); text != "" {
		_, err := fmt.Sscan(text, &size)
		must(b, err)
	}
	for name, every := range map[string]int{"subject": 1, "mixed": 10} {
		for _, compressed := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/gzip=%t", name, compressed), func(b *testing.B) {
				chunk := generated(every)
				n := size / int64(len(chunk))
				repeated := chunk
				if compressed {
					var zipped bytes.Buffer
					w := gzip.NewWriter(&zipped)
					_, _ = w.Write(chunk)
					must(b, w.Close())
					repeated = zipped.Bytes()
				}
				b.SetBytes(n * int64(len(chunk)))
				b.ReportAllocs()
				used, heap := processorTime(b), &peak{}
				for b.Loop() {
					e := &Evidence{}
					l := Log{Subject: Subject{Kind: "ServiceAccount", Namespace: "ops", Name: "operator"}, Visit: e.Collect}
					must(b, l.Read(b.Context(), &repeat{chunk: repeated, n: n, peak: heap}))
					if l.Counts.Writes == 0 || l.Counts.Broken > 0 || l.Counts.Truncated {
						b.Fatalf("%+v", l.Counts)
					}
				}
				b.ReportMetric(float64(b.N)*float64(n)*float64(len(chunk))/1e6/(processorTime(b)-used).Seconds(), "MB/cpu-s")
				b.ReportMetric(float64(heap.most)/1e6, "heap-MB")
			})
		}
	}
}

// generated returns about 1 MiB of a log in which one line of every is an update of the subject.
func generated(every int) []byte {
	var out bytes.Buffer
	for i := 0; out.Len() < 1<<20; i++ {
		event := line("apps/deployments", "", fmt.Sprintf("team-%d", i%50), fmt.Sprintf("web-%d", i), "granular:image(web),granular:scale")
		if i%every != 0 {
			event = strings.ReplaceAll(event, operator, "system:serviceaccount:kube-system:deployment-controller")
		}
		out.WriteString(event)
	}
	return out.Bytes()
}

// repeat reads a chunk n times.
type repeat struct {
	chunk []byte
	n     int64
	at    int
	*peak
}

// peak is the largest heap.
type peak struct {
	most  uint64
	reads int
}

func (p *peak) measure() {
	if p.reads++; p.reads%64 == 1 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		p.most = max(p.most, m.HeapAlloc)
	}
}

// processorTime is what this process has used.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func (r *repeat) Read(p []byte) (int, error) {
	if r.n <= 0 {
		return 0, io.EOF
	}
	r.measure()
	n := copy(p, r.chunk[r.at:])
	if r.at += n; r.at == len(r.chunk) {
		r.at, r.n = 0, r.n-1
	}
	return n, nil
}
