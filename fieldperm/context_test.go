package fieldperm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fieldperm/fieldperm/fieldperm/internal/walk"
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
			if name == "many values" && whole.looks < 20_000/walk.LookEvery {
				t.Errorf("the context was looked at %d times", whole.looks)
			}
		})
	}
}

// A condition is evaluated once for an entry, however many of its paths lead through its node. Each evaluation is followed by a check of
// the context.
func TestC2_AConditionIsEvaluatedOnceForAChange(t *testing.T) {
	entries := gadgetEntries()
	entries[slices.IndexFunc(entries, func(e schema.Entry) bool { return e.Path == ".spec" })].ExcludedWhen = "self.replicas == 3"
	k, none := compileEntries(t, entries)
	var was, is []string
	for i := range 300 {
		was = append(was, owner(fmt.Sprintf("m%d", i), "Apply", `{"f:metadata":{"f:labels":{"f:a":{}}},"f:spec":{"f:replicas":{},"f:plain":{}}}`))
		is = append(is, owner(fmt.Sprintf("m%d", i), "Apply", `{"f:metadata":{"f:labels":{}}}`))
	}
	var containers, paths []string
	for i := range 300 {
		containers = append(containers, fmt.Sprintf(`{"name":"c%d","image":"i"}`, i))
		paths = append(paths, fmt.Sprintf(`"k:{\"name\":\"c%d\"}":{"f:image":{}}`, i))
	}
	spec := func(replicas int) string {
		return fmt.Sprintf(`|,"spec":{"replicas":%d,"plain":"p","containers":[%s]}`, replicas, strings.Join(containers, ","))
	}
	one := owner("me", "Apply", `{"f:spec":{"f:containers":{`+strings.Join(paths, ",")+`}}}`)
	for name, c := range map[string]struct{ old, new string }{
		"owners that go":       {owned(spec(2), was...), owned(spec(3), is...)},
		"the time of an owner": {owned(spec(2), one), owned(spec(3), strings.Replace(one, "2026", "2027", 1))},
	} {
		ctx := &countdown{Context: t.Context(), left: 1 << 30}
		got, err := Diff(ctx, []byte(c.old), []byte(c.new), k, none)
		if err != nil {
			t.Fatal(err)
		}
		if ctx.looks > 40 {
			t.Errorf("%s: the context was looked at %d times", name, ctx.looks)
		}
		const barred = "modified .spec.replicas: (*) specification scale"
		if all := renderAll(got); !slices.Contains(all, barred) {
			t.Errorf("%s: got %q, want %q among it", name, all, barred)
		}
	}
}

// P4: Decide checks the context itself, so an authorizer that never checks it cannot answer after its end.
func TestP4_DecideEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	review := Review{Generic: []string{"update"}, Requirements: []Requirement{need("a", "*")}}
	for name, a := range map[string]cached{"allowed": holding("granular", "granular:*"), "generic": holding("update"), "denied": holding("granular")} {
		if got, err := Decide(ctx, a, review, Limits{}); !errors.Is(err, context.Canceled) || got.Allowed || got.Denial != nil {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}
