package schema

import (
	"context"

	"github.com/google/cel-go/cel"
)

// Written says of a node when the API server writes it by itself because another field of the object changes (D13).
// Only the built-in catalogue says so: whoever could, would free a field from every check.
type Written struct {
	// cause is the path of that other field from the object's root, in names; none is the object itself.
	cause []string
	when  cel.Program
	// key tells one Written from another.
	key string
}

// Cause returns the names on the way from the object's root to the field because of which the node is written; none is
// the object itself. The slice must not be changed.
func (w *Written) Cause() []string { return w.cause }

// ByServer reports whether a change of the node from oldSelf to self is what the API server makes of it when the
// cause goes from oldCause to cause. All are decoded JSON, nil for absent. An error counts as false. Whether the cause changed
// at all is the caller's to know.
func (w *Written) ByServer(ctx context.Context, oldSelf, self, oldCause, cause any) bool {
	holds, err := evalBool(ctx, w.when, map[string]any{"self": self, "oldSelf": oldSelf, "cause": cause, "oldCause": oldCause})
	return err == nil && holds
}

// Written returns when the API server writes the node by itself, nil for never.
func (n *Node) Written() *Written { return n.written }

var causeDialect = newDialect(
	cel.Variable("self", cel.DynType), cel.Variable("oldSelf", cel.DynType),
	cel.Variable("cause", cel.DynType), cel.Variable("oldCause", cel.DynType),
)

// written compiles what the winning overlay says, nil if it says nothing or is faulty.
func (b *builder) written(g *guard) *Written {
	if g == nil || g.entry.WrittenWhen == "" {
		return nil
	}
	key := g.entry.WrittenWith + "\x00" + g.entry.WrittenWhen
	if known := b.writes[key]; known != nil {
		return known
	}
	cause, err := ParsePattern(g.entry.WrittenWith)
	if err != nil {
		b.errs = append(b.errs, g.fault("%s: writtenWith: %v", b.at.orRoot(), err))
		return nil
	}
	for _, e := range cause {
		if e.any {
			b.errs = append(b.errs, g.fault("%s: writtenWith %q names any item: name one field", b.at.orRoot(), cause))
			return nil
		}
	}
	when, err := causeDialect.compile(g.entry.WrittenWhen, cel.BoolType)
	if err != nil {
		b.errs = append(b.errs, g.fault("%s: writtenWhen %v", b.at.orRoot(), err))
		return nil
	}
	w := &Written{cause: cause.Steps(), when: when, key: key}
	b.writes[key] = w
	return w
}
