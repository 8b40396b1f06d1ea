package celjson

import (
	"sync"

	"github.com/google/cel-go/common/types/ref"

	"github.com/fieldperm/fieldperm/internal/rawjson"
)

const (
	// short is the size in bytes below which a value is always scanned or decoded. That takes about a microsecond.
	short = 512
	// few is the largest number of items or members that are always scanned.
	few = 32
	// scans is the number of scans of a list or object with more elements before it gets an index.
	scans = 3
)

// tree has the indexes of the large lists and objects of one document, and its long texts. An expression such as object.data[k] makes the value
// object.data anew each time, so they are with the document. They are a few times as large as its text in all. The nil tree has none.
type tree struct {
	mu sync.Mutex
	// long has the strings and numbers that have been read and are not short, by where they begin.
	long map[int]ref.Val
	// large has the lists and objects that have been scanned and have more than few elements.
	large map[uint32]scanned
}

type scanned struct {
	times int
	index *rawjson.Index
}

// value returns the CEL value of a part of the document.
func (t *tree) value(v rawjson.Value) ref.Val {
	switch v.Kind() {
	case rawjson.Object:
		return &object{v, t.of(v)}
	case rawjson.List:
		return &list{v, t.of(v)}
	case rawjson.Number, rawjson.String:
		if begin, end := v.Extent(); t != nil && end-begin >= short {
			return t.text(v, begin)
		}
	case rawjson.Absent, rawjson.Null, rawjson.Bool:
	}
	return decoded(v)
}

// text returns a long string or number, which it decodes once.
func (t *tree) text(v rawjson.Value, begin int) ref.Val {
	t.mu.Lock()
	defer t.mu.Unlock()
	out, ok := t.long[begin]
	if !ok {
		if t.long == nil {
			t.long = map[int]ref.Val{}
		}
		out = decoded(v)
		t.long[begin] = out
	}
	return out
}

// of returns the tree of a list or object, nil if it is short. Then all in it are short too.
func (t *tree) of(v rawjson.Value) *tree {
	if begin, end := v.Extent(); end-begin < short {
		return nil
	}
	if t == nil {
		return &tree{}
	}
	return t
}

// index returns the index of a list or object, nil if it is to be scanned.
func (t *tree) index(v rawjson.Value) *rawjson.Index {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.large[v.ID()]
	if s.times >= scans && s.index == nil {
		s.index = rawjson.NewIndex(v)
		t.large[v.ID()] = s
	}
	return s.index
}

// scanned notes a scan that has met n elements.
func (t *tree) scanned(v rawjson.Value, n int) {
	if t == nil || n <= few {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.large == nil {
		t.large = map[uint32]scanned{}
	}
	s := t.large[v.ID()]
	s.times++
	t.large[v.ID()] = s
}
