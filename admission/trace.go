package admission

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// The attributes of this package's spans. None has contents of objects.
const (
	spanChanges = attribute.Key("fieldperm.changes")
	spanChecks  = attribute.Key("fieldperm.checks")
	spanMode    = attribute.Key("fieldperm.mode")
	spanAllowed = attribute.Key("fieldperm.allowed")
)

// startSpan makes a span below the one in ctx; without one that is recorded it does nothing.
func startSpan(ctx context.Context, name string) (context.Context, trace.Span) {
	above := trace.SpanFromContext(ctx)
	if !above.IsRecording() {
		return ctx, trace.SpanFromContext(context.Background()) // One that does nothing.
	}
	return above.TracerProvider().Tracer("github.com/fieldperm/fieldperm").Start(ctx, name)
}
