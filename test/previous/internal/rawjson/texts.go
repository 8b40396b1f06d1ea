package rawjson

import "strings"

// Texts turns bytes into strings that share blocks of memory: many short strings cost a few allocations. A block is freed when no string refers
// to it any more. The zero Texts is empty. Only one goroutine may use it.
type Texts struct {
	block strings.Builder
	// size is the number of bytes of the last block.
	size int
}

const (
	smallestBlock = 32
	largestBlock  = 1024
)

// NewTexts returns a Texts whose first block has room for about n bytes.
func NewTexts(n int) Texts { return Texts{size: n / 2} }

// Of returns a string with the given bytes. A long text has memory of its own, so that a short one does not keep it.
func (t *Texts) Of(text []byte) string {
	if len(text) >= largestBlock/4 {
		return string(text)
	}
	if t.block.Cap()-t.block.Len() < len(text) {
		t.size = min(max(2*t.size, smallestBlock), largestBlock)
		t.block = strings.Builder{}
		t.block.Grow(max(t.size, len(text)))
	}
	from := t.block.Len()
	t.block.Write(text)
	return t.block.String()[from:]
}
