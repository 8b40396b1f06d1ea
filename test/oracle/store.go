package oracle

import (
	"context"
	"fmt"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// keyPrefix is what kube-apiserver puts before every key.
const keyPrefix = "/registry/"

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
	client *clientv3.Client
	owner  func(*Event) (shard int, owned bool)
	// stray is given what no shard owns. It is called by one goroutine.
	stray func(*Event)

	mu     sync.Mutex // guards the rest
	moved  chan struct{}
	seen   int64
	queues map[int][]*Event
	err    error
}

// OpenStore begins to follow at the present revision.
func OpenStore(ctx context.Context, url string, owner func(*Event) (int, bool), stray func(*Event)) (*Store, error) {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{url}, DialTimeout: 10 * time.Second, Logger: zap.NewNop()})
	if err != nil {
		return nil, fmt.Errorf("etcd: %w", err)
	}
	s := &Store{client: client, owner: owner, stray: stray, moved: make(chan struct{}), queues: map[int][]*Event{}}
	now, err := client.Get(ctx, keyPrefix, clientv3.WithCountOnly())
	if err != nil {
		return nil, fmt.Errorf("etcd: %w", err)
	}
	s.seen = now.Header.Revision
	watch := client.Watch(ctx, keyPrefix, clientv3.WithPrefix(), clientv3.WithPrevKV(), clientv3.WithRev(s.seen+1))
	go s.follow(watch)
	return s, nil
}

func (s *Store) follow(watch clientv3.WatchChan) {
	for answer := range watch {
		s.take(answer)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = fmt.Errorf("etcd: the watch has ended")
	}
	close(s.moved)
	s.moved = make(chan struct{})
}

func (s *Store) take(answer clientv3.WatchResponse) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := answer.Err(); err != nil {
		s.err = fmt.Errorf("etcd: %w", err)
	}
	for _, one := range answer.Events {
		e := &Event{Key: string(one.Kv.Key), Revision: one.Kv.ModRevision}
		if one.PrevKv != nil {
			e.Old = one.PrevKv.Value
		}
		if one.Type == clientv3.EventTypePut {
			e.New = one.Kv.Value
		}
		if shard, owned := s.owner(e); owned {
			s.queues[shard] = append(s.queues[shard], e)
		} else {
			s.stray(e)
		}
	}
	s.seen = max(s.seen, answer.Header.Revision)
	close(s.moved)
	s.moved = make(chan struct{})
}

// Settle waits until all that has been stored so far is known, and returns what a shard owns of it since it was asked
// last, and up to which revision.
func (s *Store) Settle(ctx context.Context, shard int) ([]*Event, int64, error) {
	// What the API server has answered, its one etcd has applied: a serializable read sees it.
	now, err := s.client.Get(ctx, keyPrefix, clientv3.WithSerializable())
	if err != nil {
		return nil, 0, fmt.Errorf("etcd: %w", err)
	}
	for {
		s.mu.Lock()
		if s.seen >= now.Header.Revision || s.err != nil {
			out := s.queues[shard]
			s.queues[shard] = nil
			err := s.err
			s.mu.Unlock()
			return out, now.Header.Revision, err
		}
		moved := s.moved
		s.mu.Unlock()
		select {
		case <-moved:
		case <-ctx.Done():
			return nil, 0, ctx.Err()
		}
	}
}

// Get returns what is stored under a key and its revision, nil for nothing.
func (s *Store) Get(ctx context.Context, key string) ([]byte, int64, error) {
	answer, err := s.client.Get(ctx, key)
	if err != nil || len(answer.Kvs) == 0 {
		return nil, 0, err
	}
	return answer.Kvs[0].Value, answer.Kvs[0].ModRevision, nil
}

// Put stores a value as the API server would have.
func (s *Store) Put(ctx context.Context, key string, value []byte) error {
	if _, err := s.client.Put(ctx, key, string(value)); err != nil {
		return fmt.Errorf("etcd: %w", err)
	}
	return nil
}

// Remove takes keys away as if they had never been. The API server hears of it by its own watch.
func (s *Store) Remove(ctx context.Context, keys ...string) error {
	for _, key := range keys {
		if _, err := s.client.Delete(ctx, key); err != nil {
			return fmt.Errorf("etcd: %w", err)
		}
	}
	return nil
}

// Close ends the client.
func (s *Store) Close() error { return s.client.Close() }
