package walk

import (
	"slices"

	"github.com/fieldperm/fieldperm/test/previous/verbs"
)

// chains is memory for chains of verbs. They share blocks, and a longer chain may begin with the memory of a shorter one, because a chain is
// never changed. The memory of a block is freed when no requirement refers to it any more.
type chains struct {
	// block has the chains that are complete.
	block []verbs.Verb
	// begin is where the chain begins that withRoom returned last.
	begin int
}

// These are the numbers of verbs of the first block and of the largest.
const (
	smallestChains = 8
	largestChains  = 64
)

// withRoom returns a chain with the same verbs and room for more. The caller appends at most that many, and then keeps the chain. A chain at
// the end of the block, which most often is that of the node above, is not copied.
func (c *chains) withRoom(chain []verbs.Verb, more int) []verbs.Verb {
	n, used := len(chain), len(c.block)
	if n > 0 && n <= used && &c.block[used-1] == &chain[n-1] && used+more <= cap(c.block) {
		c.begin = used - n
		return c.block[c.begin : used : used+more]
	}
	if used+n+more > cap(c.block) {
		size := max(n+more, min(max(2*cap(c.block), smallestChains), largestChains))
		c.block, used = make([]verbs.Verb, 0, size), 0
	}
	c.begin = used
	return append(c.block[used:used:used+n+more], chain...)
}

// keep returns the complete chain, which must have a verb. No chain grows into its memory.
func (c *chains) keep(chain []verbs.Verb) []verbs.Verb {
	// A chain for which only the first of the verbs above counts has memory of its own.
	if room := c.block[c.begin:cap(c.block)]; &room[0] == &chain[0] {
		c.block = c.block[:c.begin+len(chain)]
	}
	return slices.Clip(chain)
}
