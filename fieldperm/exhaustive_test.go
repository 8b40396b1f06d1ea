package fieldperm

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// covered is the rule of coverage in its simplest form: without order, early end or groups.
func covered(held map[string]string, rs []Requirement) bool {
	has := func(verb string) bool { _, ok := held[verb]; return ok }
	generic := has("update") || has("patch")
	if !generic && !has("granular") {
		return false
	}
	for _, r := range rs {
		if generic && r.Barrier < 0 {
			continue
		}
		some := false
		for i, v := range r.Chain {
			some = some || i >= r.Barrier && has(v.String())
		}
		if !some {
			return false
		}
	}
	return true
}

// TestC1C2_DecideAgreesWithTheRule draws requirements over few verbs, so that chains share them.
func TestC1C2_DecideAgreesWithTheRule(t *testing.T) {
	random := rand.New(rand.NewPCG(3617, 1))
	names := []string{"a", "b", "c", "d", "e", "f(x)", "f(y)"}
	allowed, draws := 0, 20000
	if testing.Short() {
		draws = 2000
	}
	for n := range draws {
		var rs []Requirement
		for i := range random.IntN(5) {
			chain := []string{"*"}
			for range random.IntN(4) {
				chain = append(chain, names[random.IntN(len(names))])
			}
			if random.IntN(4) == 0 {
				chain = slices.Insert(chain, random.IntN(len(chain)+1), "|")
			}
			rs = append(rs, need(fmt.Sprint(i), chain...))
		}
		g := holds()
		for _, v := range []string{"update", "patch", "granular", "granular", "granular"} {
			if random.IntN(3) == 0 {
				g.allowed[v] = ""
			}
		}
		for _, name := range names {
			if random.IntN(2) == 0 {
				g.allowed["granular:"+name] = ""
			}
		}
		d, err := Decide(context.Background(), g, Review{Generic: update, Requirements: rs}, Limits{Parallel: 1 + n%3, MaxChecks: 1000})
		if err != nil {
			t.Fatal(err)
		}
		if want := covered(g.allowed, rs); d.Allowed != want {
			t.Fatalf("requirements %v, held %v: allowed %v, want %v", renderAll(rs), g.allowed, d.Allowed, want)
		}
		if d.Allowed {
			allowed++
		}
		sorted := slices.Sorted(slices.Values(g.asked))
		if len(slices.Compact(sorted)) != len(g.asked) {
			t.Fatalf("a verb was asked twice: %v", g.asked)
		}
	}
	if allowed < draws/20 || allowed > draws-draws/20 {
		t.Errorf("%d of %d allowed: the draw proves little", allowed, draws)
	}
}
