package admission

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// These are the attributes of this package's spans. None has contents of objects.
const (
	spanChanges = attribute.Key("fieldperm.changes")
	spanChecks  = attribute.Key("fieldperm.checks")
	spanMode    = attribute.Key("fieldperm.mode")
	spanAllowed = attribute.Key("fieldperm.allowed")
)

// startSpan starts a span below the one in ctx. If that span is not recorded, the new span does nothing.
func startSpan(ctx context.Context, name string) (context.Context, trace.Span) {
	above := trace.SpanFromContext(ctx)
	if !above.IsRecording() {
		return ctx, trace.SpanFromContext(context.Background()) // This span does nothing.
	}
	return above.TracerProvider().Tracer("github.com/fieldperm/fieldperm").Start(ctx, name)
}
