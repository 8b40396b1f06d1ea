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
	// Old and New are the stored values before and after, nil for none.
	Old, New []byte
}

// Created reports whether the key did not exist before.
func (e *Event) Created() bool { return e.Old == nil }

// Deleted reports whether the key does not exist afterwards.
func (e *Event) Deleted() bool { return e.New == nil }

// Store follows all changes in etcd. Each event goes to the shard that owns its key, in order.
type Store struct {
	*store.Store
	owner func(*Event) (shard int, owned bool)
	// outside receives the events whose keys belong to no shard. One goroutine at a time calls it.
	outside func(*Event)

	mu     sync.Mutex // guards the rest
	log    *store.Log
	queues map[int][]*Event
}

// OpenStore starts to follow at the current revision.
func OpenStore(ctx context.Context, url string, owner func(*Event) (int, bool), outside func(*Event)) (*Store, error) {
	etcd, err := store.Open(ctx, url)
	if err != nil {
		return nil, err
	}
	return follow(ctx, etcd, owner, outside)
}

func follow(ctx context.Context, etcd *store.Store, owner func(*Event) (int, bool), outside func(*Event)) (*Store, error) {
	log, err := etcd.Follow(ctx, 0)
	if err != nil {
		return nil, err
	}
	return &Store{Store: etcd, owner: owner, outside: outside, log: log, queues: map[int][]*Event{}}, nil
}

// Settle returns the events of a shard since the last call, up to the current revision.
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

// drop discards the known events of a shard. They are changes of the oracle itself.
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
			s.outside(e)
		}
	}
}

// value returns the stored value of a key and its revision, nil if the key does not exist.
func (s *Store) value(ctx context.Context, key string) ([]byte, int64, error) {
	entry, err := s.Get(ctx, key, 0)
	if err != nil || entry == nil {
		return nil, 0, err
	}
	return entry.Value, entry.Revision, nil
}
