package oracle

import (
	"context"
	"sync"

	"github.com/fieldperm/fieldperm/test/store"
)

// Event is one change of one key.
type Event struct {
	Key      string
	Revision int64
	// Old and New are what was stored before and after: nil where there was nothing.
	Old, New []byte
}

// Created reports whether nothing was stored before.
func (e *Event) Created() bool { return e.Old == nil }

// Deleted reports whether nothing is stored after.
func (e *Event) Deleted() bool { return e.New == nil }

// Store follows everything that is stored in etcd. Each event goes to the shard that owns its key, in order.
type Store struct {
	*store.Store
	owner func(*Event) (shard int, owned bool)
	// stray is given what no shard owns. It is called by one goroutine at a time.
	stray func(*Event)

	mu     sync.Mutex // guards the rest
	log    *store.Log
	queues map[int][]*Event
}

// OpenStore begins to follow at the present revision.
func OpenStore(ctx context.Context, url string, owner func(*Event) (int, bool), stray func(*Event)) (*Store, error) {
	etcd, err := store.Open(ctx, url)
	if err != nil {
		return nil, err
	}
	return follow(ctx, etcd, owner, stray)
}

func follow(ctx context.Context, etcd *store.Store, owner func(*Event) (int, bool), stray func(*Event)) (*Store, error) {
	log, err := etcd.Follow(ctx, 0)
	if err != nil {
		return nil, err
	}
	return &Store{Store: etcd, owner: owner, stray: stray, log: log, queues: map[int][]*Event{}}, nil
}

// Settle returns what a shard owns of all that has been stored since it was asked last, up to now.
func (s *Store) Settle(ctx context.Context, shard int) ([]*Event, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	changes, err := s.log.Next(ctx)
	if err != nil {
		return nil, err
	}
	s.take(changes)
	out := s.queues[shard]
	s.queues[shard] = nil
	return out, nil
}

// drop forgets what a shard owns of what is known already: the oracle's own doing.
func (s *Store) drop(shard int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queues[shard] = nil
}

// take gives every change to its owner.
func (s *Store) take(changes []store.Change) {
	for _, c := range changes {
		e := &Event{Key: c.Key, Revision: c.Revision, Old: c.Before, New: c.After}
		if shard, owned := s.owner(e); owned {
			s.queues[shard] = append(s.queues[shard], e)
		} else {
			s.stray(e)
		}
	}
}

// value returns what is stored under a key and its revision, nil for nothing.
func (s *Store) value(ctx context.Context, key string) ([]byte, int64, error) {
	entry, err := s.Get(ctx, key, 0)
	if err != nil || entry == nil {
		return nil, 0, err
	}
	return entry.Value, entry.Revision, nil
}
