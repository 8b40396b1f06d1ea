package walk

import "github.com/fieldperm/fieldperm/test/previous/internal/rawjson"

// pair is a part of both objects whose bytes differ, or that is in one object only: a member of an object, or an item of a list.
type pair struct {
	name     []byte // decoded
	old, new rawjson.Value
	// known is the result of comparing the two. A comparison below them continues from it.
	known rawjson.Prefix
}

// stack has the parts that differ, for all levels of the walk. The parts of one level are in one block of memory. If a block has no room for
// a level, the level moves to another block, so the levels around it are never copied, however deep the walk goes.
type stack struct {
	changed []pair
	// level is the index of the first part of the level that is being gathered. sides are the values it consists of.
	level int
	sides [2]rawjson.Value
	// around is the number of parts in other blocks than changed, which wait for the levels below them.
	around int
	// spare is a block that no level uses.
	spare []pair
}

// These are numbers of parts: of the largest block for small levels, and of the level from which on a block is made to measure.
const (
	largestBlock = 256
	largeLevel   = 1024
)

// enterLevel begins a level that consists of parts of two values. The caller stores changed before, for leave. Only one level is gathered at
// a time.
func (s *stack) enterLevel(old, new rawjson.Value) {
	s.level, s.sides = len(s.changed), [2]rawjson.Value{old, new}
}

// leave ends the levels that began after changed was stored.
func (s *stack) leave(around []pair) {
	if block := s.changed[:0]; cap(block) > 0 && (cap(around) == 0 || &block[:1][0] != &around[:1][0]) {
		s.around -= len(around)
		if cap(block) > cap(s.spare) {
			s.spare = block
		}
	}
	s.changed = around
}

// waiting returns the number of parts on the stack.
func (s *stack) waiting() int { return s.around + len(s.changed) }

// push adds a part to the level.
func (s *stack) push(p pair) {
	if len(s.changed) == cap(s.changed) {
		s.moveLevel()
	}
	s.changed = append(s.changed, p)
}

// moveLevel moves the level to a block with more room.
func (s *stack) moveLevel() {
	level := s.changed[s.level:]
	size := max(2*len(level), min(2*cap(s.changed), largestBlock))
	if len(level) >= largeLevel {
		size = max(len(level)+1, count(s.sides[0])+count(s.sides[1]))
	}
	block := s.spare
	if s.spare = nil; cap(block) < size {
		block = make([]pair, 0, size)
	}
	s.around += s.level
	block = append(block[:0], level...)
	s.changed, s.level = block, 0
}

// count returns the number of members or items of a value.
func count(v rawjson.Value) int {
	n := 0
	for m := v.Members(); m.Next(); {
		n++
	}
	for i := v.Items(); i.Next(); {
		n++
	}
	return n
}

// pop removes the part on top, and continues its comparison.
func (d *Differ) pop() pair {
	last := len(d.changed) - 1
	c := d.changed[last]
	d.changed = d.changed[:last]
	d.Same.Recall(c.old, c.new, c.known)
	return c
}
