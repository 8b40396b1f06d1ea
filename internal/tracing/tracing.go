package tracing

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/client-go/transport"
	"k8s.io/component-base/tracing"
	tracingapi "k8s.io/component-base/tracing/api/v1"
	"k8s.io/component-base/version"
)

const (
	serviceName = "fieldperm-webhook"
	scope       = "github.com/fieldperm/fieldperm"
)

// The attributes of spans, besides those of HTTP.
const (
	// Source is where the answer to a check is from: hit, miss, shared or local.
	Source = attribute.Key("fieldperm.check.source")
	// Result is how something ended.
	Result = attribute.Key("fieldperm.result")
	// Generic is whether a check is about the generic permission.
	Generic = attribute.Key("fieldperm.check.generic")
	verbKey = attribute.Key("fieldperm.check.verb")
)

// Verb is the verb of a check without its parameter, which may be a key or a value of the object.
func Verb(verb string) attribute.KeyValue {
	name, _, _ := strings.Cut(verb, "(")
	return verbKey.String(name)
}

// Provider makes spans as file says, a TracingConfiguration of apiserver.config.k8s.io as
// kube-apiserver reads it. Without file it makes none, but passes on the trace of whoever calls.
// Shut it down at the end, or the last spans are lost. The collector need not be there yet.
func Provider(ctx context.Context, file string) (tracing.TracerProvider, error) {
	if file == "" {
		return tracing.NewNoopTracerProvider(), nil
	}
	config, err := genericoptions.ReadTracingConfiguration(file)
	if err != nil {
		return nil, fmt.Errorf("--tracing-config-file: %q: %w", file, err)
	}
	// No feature gate bears on what is read here.
	if errs := tracingapi.ValidateTracingConfiguration(config, nil, nil); len(errs) > 0 {
		return nil, fmt.Errorf("--tracing-config-file: %q: %w", file, errs.ToAggregate())
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("--tracing-config-file: name of this host: %w", err)
	}
	provider, err := tracing.NewProvider(ctx, config, nil, []resource.Option{resource.WithAttributes(
		semconv.ServiceName(serviceName), semconv.ServiceVersion(version.Get().GitVersion), semconv.ServiceInstanceID(host),
	)})
	if err != nil {
		return nil, fmt.Errorf("--tracing-config-file: %q: %w", file, err)
	}
	return provider, nil
}

// Handler makes a span for each request, as part of the trace of whoever calls. Callers decide
// thereby what is sampled, so put it behind authentication; PublicHandler is for where there is none.
func Handler(next http.Handler, provider trace.TracerProvider) http.Handler {
	return handler(next, provider)
}

// PublicHandler makes a span for each request in a trace of its own, which only links to that of
// whoever calls, so that strangers cannot make anything sampled.
func PublicHandler(next http.Handler, provider trace.TracerProvider) http.Handler {
	return handler(next, provider, otelhttp.WithPublicEndpointFn(func(*http.Request) bool { return true }))
}

func handler(next http.Handler, provider trace.TracerProvider, options ...otelhttp.Option) http.Handler {
	return otelhttp.NewHandler(next, "review", append(options,
		otelhttp.WithTracerProvider(provider),
		otelhttp.WithPropagators(tracing.Propagators()),
		otelhttp.WithSpanNameFormatter(func(_ string, r *http.Request) string { return r.Method + " " + r.URL.Path }),
	)...)
}

// Client makes a span for each request of a client, and passes the trace on. Give it to Wrap of a
// client's configuration.
func Client(provider trace.TracerProvider) transport.WrapperFunc {
	return tracing.WrapperFor(provider)
}

// Start makes a span below the one in ctx, with the provider of that one. End it.
func Start(ctx context.Context, name string, attributes ...attribute.KeyValue) (context.Context, trace.Span) {
	parent := trace.SpanFromContext(ctx)
	return parent.TracerProvider().Tracer(scope).Start(ctx, name, trace.WithAttributes(attributes...))
}
