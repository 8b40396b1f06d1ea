package expression

import (
	"container/list"
	"sync"
)

// cache has compiled expressions by their text, those that were used last, up to a number of bytes of text. It is safe for concurrent use.
type cache struct {
	// limit is in bytes of text.
	limit int

	mu   sync.Mutex
	size int
	// used has the expressions, the last used one first.
	used   list.List
	byText map[string]*list.Element
}

func newCache(limit int) *cache {
	return &cache{limit: limit, byText: map[string]*list.Element{}}
}

func (c *cache) get(text string) (*Expression, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, ok := c.byText[text]
	if !ok {
		return nil, false
	}
	c.used.MoveToFront(at)
	return at.Value.(*Expression), true
}

func (c *cache) add(e *Expression) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.byText[e.source]; ok {
		return
	}
	c.byText[e.source] = c.used.PushFront(e)
	for c.size += len(e.source); c.size > c.limit; {
		last := c.used.Remove(c.used.Back()).(*Expression)
		delete(c.byText, last.source)
		c.size -= len(last.source)
	}
}
