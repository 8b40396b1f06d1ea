package charge

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/fieldperm/fieldperm/verbs"
)

// A chain never changes, whatever chains are made from it and beside it.
func TestChains_NoChainChangesAnother(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3617))
	var c chains
	made, wants := [][]verbs.Verb{nil}, [][]verbs.Verb{nil}
	for i := range 3000 {
		// Mostly the last chain grows, as on the way down.
		above := len(made) - 1
		if r.IntN(3) == 0 {
			above = r.IntN(len(made))
		}
		if len(made[above]) > 12 {
			above = 0
		}
		more := 1 + r.IntN(3)
		chain, want := c.withRoom(made[above], more), slices.Clone(wants[above])
		if len(chain) > 0 && r.IntN(5) == 0 { // A verb that stands apart.
			chain, want = chain[:1:1], want[:1]
		}
		for j := range 1 + r.IntN(more) {
			v, err := verbs.New(fmt.Sprintf("v%dx%d", i, j))
			if err != nil {
				t.Fatal(err)
			}
			chain, want = append(chain, v), append(want, v)
		}
		made, wants = append(made, c.keep(chain)), append(wants, want)
	}
	for i := range made {
		if !slices.Equal(made[i], wants[i]) {
			t.Fatalf("chain %d is %v, want %v", i, made[i], wants[i])
		}
		if cap(made[i]) != len(made[i]) {
			t.Fatalf("chain %d can grow", i)
		}
	}
}

// Chains share blocks of memory, so that a short one does not cost an allocation.
func TestChains_ShareBlocks(t *testing.T) {
	var c chains
	first := c.keep(append(c.withRoom(nil, 1), verbs.All()))
	for range smallestChains - 1 {
		c.keep(append(c.withRoom(nil, 1), verbs.All()))
	}
	if len(c) != smallestChains || &c[0] != &first[0] {
		t.Errorf("%d verbs are in the first block, want %d", len(c), smallestChains)
	}
}
