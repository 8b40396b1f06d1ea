package expression

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/cel-go/common/types"
)

// decodedOf is a list of changes as cel-go has it.
func decodedOf(l ChangeList) any {
	out := make([]any, l.Len())
	for i := range out {
		out[i] = map[string]any{"path": l.Path(i), "operation": l.Operation(i), "verbs": append([]string{}, l.Verbs(i)...)}
	}
	return types.DefaultTypeAdapter.NativeToValue(out)
}

// TestK4_ChangesAreReadAsDecoded: an expression has the same value, or the same error, and the same cost, on changes and on the decoded list.
func TestK4_ChangesAreReadAsDecoded(t *testing.T) {
	lists := []listed{
		{},
		{{Path: ".spec.replicas", Operation: "modified", Verbs: []string{"granular:specification", "granular:scale"}}},
		{{Path: ".a", Operation: "added"}, {Path: ".spec", Operation: "removed", Verbs: []string{"granular:scale"}}, {Path: ".a", Operation: "added"}},
	}
	values, failures := 0, 0
	for _, source := range []string{
		`changes.all(c, c.path == ".a" && c.operation == "added")`, `changes.exists(c, "granular:scale" in c.verbs)`, `changes.exists_one(c, c.path == ".spec")`, `changes.filter(c, c.verbs.size() == 0).size() == 2`,
		`changes.map(c, c.path) == [".spec.replicas"]`, `changes.map(c, c.path == ".a", c.operation) == ["added", "added"]`, `changes.size() == 1`, `size(changes) == 3`, `changes == []`,
		`changes[0].path == ".a"`, `changes[2].verbs == []`, `changes[3].path == ""`, `changes[-1].path == ""`, `changes[1].verbs[0] == "granular:scale"`, `changes[0].verbs[7] == ""`, `changes[0] in changes`, `changes[0] == changes[2]`, `changes[1] != changes[2]`,
		`dyn({"path": dyn(".a"), "operation": dyn("added"), "verbs": dyn([])}) in dyn(changes)`, `dyn(1) in dyn(changes)`, `dyn(changes) == dyn([{"path": dyn(".spec.replicas"), "operation": dyn("modified"), "verbs": dyn(["granular:specification", "granular:scale"])}])`,
		`dyn([{"path": dyn(".spec.replicas"), "operation": dyn("modified"), "verbs": dyn(["granular:specification", "granular:scale"])}]) == dyn(changes)`, `dyn({"path": dyn(".a"), "operation": dyn("added"), "verbs": dyn([])}) == dyn(changes[0])`,
		`dyn(changes[0]) == dyn({"path": dyn(".a"), "operation": dyn("added"), "verbs": dyn([])})`, `dyn(changes) == 1`, `dyn(changes[0]) == 1`, `changes == changes`, `changes + changes == changes`, `(changes + changes).size() == 2`, `(changes + changes)[3].path == ".a"`,
		`changes.all(c, (changes + [c]).size() > 1)`, `dyn(changes)["x"] == 1`, `dyn(changes)[1.0].path == ".spec"`, `dyn(changes)[1.5].path == ""`, `dyn(changes[0]).missing == 1`, `dyn(changes[0])[1] == 1`, `has(changes[0].path)`, `dyn(changes[0]).size() == 3`,
		`"path" in dyn(changes[0])`, `"missing" in dyn(changes[0])`, `dyn(changes[0]).all(k, k in ["path", "operation", "verbs"])`, `type(changes) == list`, `type(dyn(changes[0])) == map`, `changes[?0].hasValue()`, `changes[?9].hasValue()`,
		`optional.ofNonZeroValue(changes).hasValue()`, `changes[?0].?path.orValue("") == ".a"`, `changes.all(c, changes.exists(d, c == d))`, `sets.contains(changes.map(c, c.path), [".a"])`, `changes.map(c, c.path).isSorted()`, `changes.indexOf(changes[2]) == 0`,
	} {
		e, err := newCompiler(t).compile(source)
		if err != nil {
			t.Errorf("%s: %v", source, err)
			continue
		}
		for _, list := range lists {
			r, _ := update()
			lazy, decoded := NewInput(r, "", func() (ChangeList, error) { return list, nil }), NewInput(r, "", nil)
			decoded.changes = func() any { return decodedOf(list) }
			want, spent, wantErr := e.program.ContextEval(context.Background(), (*activation)(decoded))
			got, details, err := e.program.ContextEval(context.Background(), (*activation)(lazy))
			if err != nil || wantErr != nil {
				failures++
			} else {
				values++
			}
			if fmt.Sprint(got, err) != fmt.Sprint(want, wantErr) || *details.ActualCost() != *spent.ActualCost() {
				t.Errorf("%s, %d changes: %v, %v, cost %d; decoded %v, %v, cost %d", source, len(list), got, err, *details.ActualCost(), want, wantErr, *spent.ActualCost())
			}
		}
	}
	if values < 100 || failures < 20 {
		t.Errorf("%d values, %d failures: this test shows too little", values, failures)
	}
}

// counted counts what is read.
type counted struct {
	listed
	mu                      *sync.Mutex
	paths, operations, verb *int
}

func (c counted) add(to *int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*to++
}

func (c counted) Path(i int) string      { c.add(c.paths); return c.listed.Path(i) }
func (c counted) Operation(i int) string { c.add(c.operations); return c.listed.Operation(i) }
func (c counted) Verbs(i int) []string   { c.add(c.verb); return c.listed.Verbs(i) }

// TestK4_OnlyWhatIsReadOfAChangeIsMade: one read makes one field of one change.
func TestK4_OnlyWhatIsReadOfAChangeIsMade(t *testing.T) {
	r, _ := update()
	for source, want := range map[string][3]int{
		`changes.size() == 100`:                                        {0, 0, 0},
		`changes.all(c, c.path == ".a")`:                               {100, 0, 0},
		`changes.exists(c, c.operation == "added")`:                    {0, 1, 0},
		`changes[99].verbs == []`:                                      {0, 0, 1},
		`changes.all(c, c.path == ".a" && c.verbs == [])`:              {100, 0, 100},
		`(changes + changes)[150].path == ".a"`:                        {1, 0, 0},
		`changes.filter(c, c.path == ".a").size() == changes.size()`:   {100, 0, 0},
		`changes.map(c, c.operation).all(operation, operation != "x")`: {0, 100, 0},
	} {
		c := counted{slices.Repeat(listed{{Path: ".a", Operation: "added"}}, 100), &sync.Mutex{}, new(int), new(int), new(int)}
		ok, err := compile(t, source).Evaluate(context.Background(), NewInput(r, "", func() (ChangeList, error) { return c, nil }))
		if got := [3]int{*c.paths, *c.operations, *c.verb}; !ok || err != nil || got != want {
			t.Errorf("%s: %t, %v, reads %v paths, operations and verbs, want %v", source, ok, err, got, want)
		}
	}
}

// TestK4_NoChangesAreAnError: a list that is not there is not an empty one.
func TestK4_NoChangesAreAnError(t *testing.T) {
	r, _ := update()
	none := func() (ChangeList, error) { return nil, nil }
	if ok, err := compile(t, `changes.all(c, false)`).Evaluate(context.Background(), NewInput(r, "", none)); ok || err == nil {
		t.Errorf("%t, %v, want an error", ok, err)
	}
}
