package tracing

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
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

// The attributes of spans in addition to those of HTTP.
const (
	// Source is the source of the answer to a check: hit, miss, shared or local.
	Source = attribute.Key("fieldperm.check.source")
	// Result is how an operation ended.
	Result = attribute.Key("fieldperm.result")
	// Generic is true for a check of the generic permission.
	Generic = attribute.Key("fieldperm.check.generic")
	verbKey = attribute.Key("fieldperm.check.verb")
)

// Verb returns the verb of a check without its parameter, which may be a key or a value of the object.
func Verb(verb string) attribute.KeyValue {
	name, _, _ := strings.Cut(verb, "(")
	return verbKey.String(name)
}

// Provider makes spans according to file, a TracingConfiguration of apiserver.config.k8s.io as in kube-apiserver. If file is "", it
// makes no spans, but still passes the caller's trace on. The caller must shut it down at the end, otherwise the last spans are
// lost. The collector need not be running yet.
func Provider(ctx context.Context, file string) (tracing.TracerProvider, error) {
	if file == "" {
		return off{tracing.NewNoopTracerProvider()}, nil
	}
	config, err := genericoptions.ReadTracingConfiguration(file)
	if err != nil {
		return nil, fmt.Errorf("--tracing-config-file: %q: %w", file, err)
	}
	// No feature gate affects the fields that are read here.
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

// Handler makes a span for each request, in the trace of the caller. Callers therefore decide which requests are sampled, so put Handler
// behind authentication. Without authentication use PublicHandler.
func Handler(next http.Handler, provider trace.TracerProvider) http.Handler {
	return handler(next, provider)
}

// PublicHandler makes a span for each request in a new trace, with a link to the caller's trace. So an unknown caller cannot force
// sampling.
func PublicHandler(next http.Handler, provider trace.TracerProvider) http.Handler {
	return handler(next, provider, otelhttp.WithPublicEndpointFn(func(*http.Request) bool { return true }))
}

// off is the provider without a file. It makes no spans.
type off struct{ tracing.TracerProvider }

func handler(next http.Handler, provider trace.TracerProvider, options ...otelhttp.Option) http.Handler {
	if _, is := provider.(off); is {
		return passing(next)
	}
	return otelhttp.NewHandler(next, "review", append(options,
		otelhttp.WithTracerProvider(provider),
		otelhttp.WithPropagators(tracing.Propagators()),
		otelhttp.WithSpanNameFormatter(func(_ string, r *http.Request) string { return r.Method + " " + r.URL.Path }),
	)...)
}

// passing puts the trace of the caller into the context of each request. Without spans this is all that otelhttp would do, apart from
// metrics that no one reads; those take as long as a decision.
func passing(next http.Handler) http.Handler {
	propagators := tracing.Propagators()
	fields := propagators.Fields()
	for i, name := range fields {
		fields[i] = http.CanonicalHeaderKey(name) // Get would work it out for each request.
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if slices.ContainsFunc(fields, func(name string) bool { return len(r.Header[name]) > 0 }) {
			r = r.WithContext(propagators.Extract(r.Context(), propagation.HeaderCarrier(r.Header)))
		}
		next.ServeHTTP(w, r)
	})
}

// Client makes a span for each request of a client, and passes the trace on. Pass it to Wrap of the client configuration.
func Client(provider trace.TracerProvider) transport.WrapperFunc {
	return tracing.WrapperFor(provider)
}

// Start makes a child of the span in ctx, with the same provider. The caller must end the span.
func Start(ctx context.Context, name string, attributes ...attribute.KeyValue) (context.Context, trace.Span) {
	parent := trace.SpanFromContext(ctx)
	return parent.TracerProvider().Tracer(scope).Start(ctx, name, trace.WithAttributes(attributes...))
}
