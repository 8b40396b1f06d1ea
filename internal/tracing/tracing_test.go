package tracing

import (
	"context"
	"encoding/hex"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/otel/trace"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
)

// collected has the spans that an OTLP collector in this process received.
type collected struct {
	collector.UnimplementedTraceServiceServer
	mu       sync.Mutex
	spans    []*tracev1.Span
	services []string
}

func (c *collected) Export(_ context.Context, in *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, of := range in.GetResourceSpans() {
		for _, attribute := range of.GetResource().GetAttributes() {
			if attribute.GetKey() == "service.name" {
				c.services = append(c.services, attribute.GetValue().GetStringValue())
			}
		}
		for _, spans := range of.GetScopeSpans() {
			c.spans = append(c.spans, spans.GetSpans()...)
		}
	}
	return &collector.ExportTraceServiceResponse{}, nil
}

func (c *collected) span(name string) *tracev1.Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, span := range c.spans {
		if span.GetName() == name {
			return span
		}
	}
	return nil
}

// collect returns a collector, and a file that sends all spans to it.
func collect(t *testing.T, samplingRate string) (sink *collected, file string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	sink = &collected{}
	server := grpc.NewServer()
	collector.RegisterTraceServiceServer(server, sink)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return sink, write(t, "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\nendpoint: "+listener.Addr().String()+"\nsamplingRatePerMillion: "+samplingRate+"\n")
}

func write(t *testing.T, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "tracing.yaml")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

const (
	traceID = "0af7651916cd43dd8448eb211c80319c"
	spanID  = "b7ad6b7169203331"
)

// TestTraceOfTheCallerGoesOn: kube-apiserver → this handler → a span → a client → the server that is asked.
func TestTraceOfTheCallerGoesOn(t *testing.T) {
	sink, file := collect(t, "0")
	provider, err := Provider(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	var asked string
	api := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked = r.Header.Get("traceparent") }))
	defer api.Close()
	client := http.Client{Transport: Client(provider)(http.DefaultTransport)}
	handler := Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		ctx, span := Start(r.Context(), "check", Verb("granular:label(team.internal)"))
		defer span.End()
		out, err := http.NewRequestWithContext(ctx, http.MethodPost, api.URL, http.NoBody)
		if err != nil {
			t.Error(err)
			return
		}
		response, err := client.Do(out)
		if err != nil {
			t.Error(err)
			return
		}
		response.Body.Close()
	}), provider)

	call := func(parent string) {
		in := httptest.NewRequest(http.MethodPost, "/admit/granular?timeout=10s", strings.NewReader(`{"spec":"secret"}`))
		if parent != "" {
			in.Header.Set("traceparent", parent)
		}
		handler.ServeHTTP(httptest.NewRecorder(), in)
	}
	call("")
	call("00-" + traceID + "-" + spanID + "-00")
	call("00-" + traceID + "-" + spanID + "-01")
	if err := provider.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}

	if n := len(sink.spans); n != 3 {
		t.Errorf("%d spans, want 3: only those that the caller sampled", n)
	}
	if len(sink.services) == 0 || sink.services[0] != serviceName {
		t.Errorf("spans are of %q", sink.services)
	}
	parent := spanID
	for _, name := range []string{"POST /admit/granular", "check", "HTTP POST"} {
		span := sink.span(name)
		if span == nil {
			t.Fatalf("no span %q", name)
		}
		if got := hex.EncodeToString(span.GetTraceId()); got != traceID {
			t.Errorf("%s: is in trace %s", name, got)
		}
		if got := hex.EncodeToString(span.GetParentSpanId()); got != parent {
			t.Errorf("%s: is below %s, want %s", name, got, parent)
		}
		parent = hex.EncodeToString(span.GetSpanId())
		for _, attribute := range span.GetAttributes() {
			if value := attribute.GetValue().String(); strings.Contains(value, "secret") || strings.Contains(value, "team.internal") {
				t.Errorf("%s: attribute %s has contents of an object: %s", name, attribute.GetKey(), value)
			}
		}
	}
	if want := "00-" + traceID + "-" + parent + "-01"; asked != want {
		t.Errorf("the server that is asked got %q, want %q", asked, want)
	}
}

// TestUntrustedCallersDoNotCauseSampling: the sampled flag in an unknown caller's traceparent has no effect.
func TestUntrustedCallersDoNotCauseSampling(t *testing.T) {
	sink, file := collect(t, "0")
	provider, err := Provider(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	in := httptest.NewRequest(http.MethodPost, "/admit/granular", http.NoBody)
	in.Header.Set("traceparent", "00-"+traceID+"-"+spanID+"-01")
	PublicHandler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), provider).ServeHTTP(httptest.NewRecorder(), in)
	if err := provider.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(sink.spans); n != 0 {
		t.Errorf("%d spans of an untrusted caller", n)
	}
}

func TestWithoutFileTheTraceIsPassedOnOnly(t *testing.T) {
	provider, err := Provider(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	in := httptest.NewRequest(http.MethodPost, "/authorize", http.NoBody)
	in.Header.Set("traceparent", "00-"+traceID+"-"+spanID+"-01")
	Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		ctx, span := Start(r.Context(), "check")
		defer span.End()
		if got := trace.SpanContextFromContext(ctx); got.TraceID().String() != traceID || span.IsRecording() {
			t.Errorf("trace is %s, recording %t", got.TraceID(), span.IsRecording())
		}
	}), provider).ServeHTTP(httptest.NewRecorder(), in)
}

func TestFaultyFilesAreNamed(t *testing.T) {
	const head = "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\n"
	for name, c := range map[string]struct{ file, want string }{
		"missing":  {"/does/not/exist.yaml", "no such file"},
		"kind":     {write(t, "apiVersion: v1\nkind: ConfigMap\n"), "ConfigMap"},
		"field":    {write(t, head+"endpiont: x\n"), `"endpiont"`},
		"rate":     {write(t, head+"samplingRatePerMillion: 1000001\n"), "one million"},
		"endpoint": {write(t, head+"endpoint: https://collector:4317\n"), "https"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Provider(t.Context(), c.file)
			if err == nil || !strings.HasPrefix(err.Error(), "--tracing-config-file: ") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}
