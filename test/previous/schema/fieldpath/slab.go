package fieldpath

// Slab makes paths whose steps share blocks of memory. A walk makes a path for each place that it visits. The memory of a block is freed when no
// path refers to it any more. The zero Slab is empty. Only one goroutine may use it.
type Slab struct {
	free []node
	// size is the number of steps of the last block.
	size int
}

// mostSteps is the number of steps of the largest block.
const mostSteps = 64

// Field is Path.Field.
func (s *Slab) Field(p Path, name string) Path {
	n := s.next()
	n.up, n.kind, n.name = p.last, StepField, name
	return Path{n}
}

// Key is Path.Key.
func (s *Slab) Key(p Path, name string) Path {
	n := s.next()
	n.up, n.kind, n.name = p.last, StepKey, name
	return Path{n}
}

// Item is Path.Item.
func (s *Slab) Item(p Path, keys []Key) Path {
	n := s.next()
	n.up, n.kind, n.keys = p.last, StepItem, &keys
	return Path{n}
}

func (s *Slab) next() *node {
	if len(s.free) == 0 {
		s.size = min(max(2*s.size, 2), mostSteps)
		s.free = make([]node, s.size)
	}
	n := &s.free[0]
	s.free = s.free[1:]
	return n
}
