package cel

import (
	"sync"

	"k8s.io/utils/lru"
)

// Cache has what was made of expressions, by their text: what was used last, up to a number of bytes of text. A compiled text takes about a hundred
// times as much memory as the text, and compiling it a hundred times as long as evaluating it. It is safe for concurrent use.
type Cache[V any] struct {
	// limit is in bytes of text.
	limit int

	mu   sync.Mutex
	size int
	made *lru.Cache
}

// NewCache returns an empty cache.
func NewCache[V any](limit int) *Cache[V] {
	c := &Cache[V]{limit: limit}
	c.made = lru.NewWithEvictionFunc(0, func(text lru.Key, _ any) { c.size -= len(text.(string)) })
	return c
}

// Get returns what compile returns for a text, and remembers it if there is no error.
func (c *Cache[V]) Get(text string, compile func(text string) (V, error)) (V, error) {
	if known, ok := c.made.Get(text); ok {
		return known.(V), nil
	}
	out, err := compile(text)
	if err == nil {
		c.add(text, out)
	}
	return out, err
}

func (c *Cache[V]) add(text string, value V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.made.Remove(text) // Another goroutine may have made it too.
	c.made.Add(text, value)
	for c.size += len(text); c.size > c.limit; {
		c.made.RemoveOldest()
	}
}

// Size returns the bytes of text whose results the cache has.
func (c *Cache[V]) Size() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.size
}
