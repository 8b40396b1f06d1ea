package fieldperm

import (
	"context"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/fieldperm/fieldperm/verbs"
)

// The optimum is the fewest checks that prove the decision if all answers are known before. Decide does not know them. BenchmarkChecks
// measures how far Decide is from the optimum.

// entryOf returns the number of checks for the generic permission and the marker, and the chains that then still need verbs.
func entryOf(review Review, held cached) (checks int, needs [][]verbs.Verb) {
	barredOnly := review.UncoveredOnly
	if !barredOnly {
		i := slices.IndexFunc(review.Generic, func(verb string) bool { return held[verb] })
		switch {
		case i >= 0:
			checks, barredOnly = i+1, true
		case held[verbs.Marker]:
			checks = len(review.Generic) + 1
		default:
			return len(review.Generic) + 1, nil
		}
	}
	for i := range review.Requirements {
		if r := &review.Requirements[i]; r.Barred() || !barredOnly {
			needs = append(needs, r.Candidates())
		}
	}
	return checks, needs
}

func distinctVerbs(chains [][]verbs.Verb) int {
	distinct := map[verbs.Verb]bool{}
	for _, chain := range chains {
		for _, v := range chain {
			distinct[v] = true
		}
	}
	return len(distinct)
}

// bestOrder returns the fewest verbs whose answers decide. If no verb of some chain is held, these are all verbs of the shortest such
// chain. Otherwise they are the fewest held verbs that occur in every chain.
func bestOrder(chains [][]verbs.Verb, held cached) int {
	denied := -1
	var open [][]verbs.Verb
	for _, chain := range chains {
		var have []verbs.Verb
		for _, v := range chain {
			if held[v.String()] && !slices.Contains(have, v) {
				have = append(have, v)
			}
		}
		if n := distinctVerbs([][]verbs.Verb{chain}); len(have) == 0 && (denied < 0 || n < denied) {
			denied = n
		}
		open = append(open, have)
	}
	if denied >= 0 {
		return denied
	}
	for n := 0; ; n++ {
		if hit(open, n) {
			return n
		}
	}
}

// hit reports whether n verbs are enough to have one of each set. One of them must be in the smallest set.
func hit(sets [][]verbs.Verb, n int) bool {
	if len(sets) == 0 {
		return true
	}
	if n == 0 {
		return false
	}
	smallest := slices.MinFunc(sets, func(a, b []verbs.Verb) int { return len(a) - len(b) })
	return slices.ContainsFunc(smallest, func(v verbs.Verb) bool {
		return hit(slices.DeleteFunc(slices.Clone(sets), func(set []verbs.Verb) bool { return slices.Contains(set, v) }), n-1)
	})
}

// bestOfAll tries all sets of verbs. bestOrder must give the same number.
func bestOfAll(chains [][]verbs.Verb, held cached) int {
	var all []verbs.Verb
	for _, chain := range chains {
		for _, v := range chain {
			if !slices.Contains(all, v) {
				all = append(all, v)
			}
		}
	}
	best := len(all)
	for asked := range uint(1) << len(all) {
		decided, open := false, false
		for _, chain := range chains {
			covered, left := false, false
			for _, v := range chain {
				isAsked := asked>>slices.Index(all, v)&1 == 1
				covered = covered || isAsked && held[v.String()]
				left = left || !isAsked
			}
			decided = decided || !covered && !left
			open = open || !covered
		}
		if decided || !open {
			best = min(best, bits.OnesCount(asked))
		}
	}
	return best
}

func TestBestOrder_IsOptimal(t *testing.T) {
	d := reviews{rand.New(rand.NewPCG(3617, 2))}
	better, tried := 0, 0
	for tried < 2000 {
		review := Review{Generic: update, Requirements: d.requirements(6)}
		held := holding("granular")
		for i := range 6 {
			v, _ := verbs.New("v" + string(rune('0'+i)))
			held[v.String()] = d.IntN(2) == 0
		}
		held["granular:*"] = d.IntN(4) == 0
		entry, needs := entryOf(review, held)
		if distinctVerbs(needs) > 8 {
			continue
		}
		tried++
		best := bestOrder(needs, held)
		if want := bestOfAll(needs, held); best != want {
			t.Fatalf("%q, held %v: %d checks, want %d", renderAll(review.Requirements), held, best, want)
		}
		decision, err := Decide(context.Background(), held, review, Limits{MaxChecks: 1000})
		if err != nil || len(decision.Checks) < entry+best {
			t.Fatalf("%q, held %v: decided with %d checks, and %d is the best: %v", renderAll(review.Requirements), held, len(decision.Checks), entry+best, err)
		}
		if len(decision.Checks) > entry+best {
			better++
		}
	}
	if better < tried/10 {
		t.Errorf("the best order is better in %d of %d: the draw proves little", better, tried)
	}
}
