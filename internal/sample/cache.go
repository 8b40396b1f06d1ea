package sample

import (
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Cache remembers the objects of custom resources, and that there is none: a search may take seconds. Its zero value
// is empty and ready. It keeps one entry for each kind that was asked for.
type Cache struct {
	mu    sync.Mutex
	known map[runtimeschema.GroupVersionKind]*remembered
}

type remembered struct {
	uid        types.UID
	generation int64
	search     func() (map[string]any, error)
}

// Object is as the function [Object]. One search runs for a definition, and whoever asks for it meanwhile waits.
func (c *Cache) Object(gvk runtimeschema.GroupVersionKind, definition *unstructured.Unstructured) (map[string]any, error) {
	if definition == nil {
		return Object(gvk, nil)
	}
	object, err := c.entry(gvk, definition).search()
	if err != nil {
		return nil, err
	}
	return runtime.DeepCopyJSON(object), nil
}

func (c *Cache) entry(gvk runtimeschema.GroupVersionKind, definition *unstructured.Unstructured) *remembered {
	c.mu.Lock()
	defer c.mu.Unlock()
	uid, generation := definition.GetUID(), definition.GetGeneration()
	if entry := c.known[gvk]; entry != nil && entry.uid == uid && entry.generation == generation {
		return entry
	}
	entry := &remembered{uid: uid, generation: generation, search: sync.OnceValues(func() (map[string]any, error) {
		return Object(gvk, definition)
	})}
	if c.known == nil {
		c.known = map[runtimeschema.GroupVersionKind]*remembered{}
	}
	c.known[gvk] = entry
	return entry
}
