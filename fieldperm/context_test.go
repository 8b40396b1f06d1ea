package fieldperm

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/fieldperm/internal/diff"
	"github.com/fieldperm/fieldperm/schema"
)

// countdown is a context that ends after a number of checks, and counts further checks.
type countdown struct {
	context.Context //nolint:containedctx // It is one.
	left, looks     int
}

func (c *countdown) Err() error {
	c.looks++
	if c.looks > c.left {
		return context.DeadlineExceeded
	}
	return nil
}

func manyLabels(n int, value string) string {
	var labels []string
	for i := range n {
		labels = append(labels, fmt.Sprintf(`"l%d":"%s"`, i, value))
	}
	return `{"metadata":{"labels":{` + strings.Join(labels, ",") + `}}}`
}

// P4: if the context ends, the result is an error without requirements, wherever the comparison is at that time.
func TestP4_DiffEndsWithItsContext(t *testing.T) {
	k, none := compileGadget(t)
	conditional, _ := compileEntries(t, append(gadgetEntries(), entry(".spec.plain", "plain", excludedWhen("self == 'x'"))))
	for name, c := range map[string]struct {
		kind     *schema.Kind
		old, new string
	}{
		"a small object":           {k, `{"spec":{"replicas":1}}`, `{"spec":{"replicas":2}}`},
		"no change":                {k, `{}`, `{}`},
		"many values":              {k, manyLabels(20_000, "a"), manyLabels(20_000, "b")},
		"a condition":              {conditional, `{"spec":{"plain":"a"}}`, `{"spec":{"plain":"b"}}`},
		"owners of a field":        {k, owned("|", owner("a", "Apply", `{"f:spec":{"f:plain":{}}}`)), owned("|")},
		"not at the end of a path": {k, owned("|", `{}`), owned("|")},
	} {
		t.Run(name, func(t *testing.T) {
			whole := &countdown{Context: t.Context(), left: 1 << 30}
			if _, err := Diff(whole, []byte(c.old), []byte(c.new), c.kind, none); err != nil {
				t.Fatal(err)
			}
			for left := range whole.looks {
				got, err := Diff(&countdown{Context: t.Context(), left: left}, []byte(c.old), []byte(c.new), c.kind, none)
				if !errors.Is(err, context.DeadlineExceeded) || got != nil {
					t.Errorf("ended at look %d of %d: %d requirements, %v", left+1, whole.looks, len(got), err)
				}
			}
			if name == "many values" && whole.looks < 20_000/diff.LookEvery {
				t.Errorf("the context was looked at %d times", whole.looks)
			}
		})
	}
}
