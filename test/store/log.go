package store

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Change is one change of one key.
type Change struct {
	Key string
	// Before and After are the values around the change: Before is nil if the key was created, After if it was
	// deleted.
	Before, After []byte
	// Revision numbers the change. Changes of one transaction share it.
	Revision int64
}

// Log has every change of every key since a revision. It is for one goroutine.
type Log struct {
	store   *Store
	watch   clientv3.WatchChan
	cancel  context.CancelFunc
	last    int64
	pending []Change
}

// Follow returns the log of the changes after a revision, or from now on if that is zero. Close it.
func (s *Store) Follow(ctx context.Context, after int64) (*Log, error) {
	if after == 0 {
		var err error
		if after, err = s.Revision(ctx); err != nil {
			return nil, err
		}
	}
	watching, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	// Watch every key, including the keys of etcd's own compaction: so each revision has a change that the watch must deliver.
	watch := s.client.Watch(watching, "\x00", clientv3.WithFromKey(), clientv3.WithRev(after+1), clientv3.WithPrevKV())
	return &Log{store: s, watch: watch, cancel: cancel, last: after}, nil
}

// Close ends the log.
func (l *Log) Close() { l.cancel() }

// Next returns the changes below Prefix since the last call, up to the current state. They include every change that an API server stored
// before it answered.
func (l *Log) Next(ctx context.Context) ([]Change, error) {
	until, err := l.store.Revision(ctx)
	if err != nil {
		return nil, err
	}
	for l.last < until {
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("etcd: changes up to revision %d, of which %d was seen: %w", until, l.last, ctx.Err())
		case response, open := <-l.watch:
			if !open {
				return nil, fmt.Errorf("etcd: the watch ended at revision %d", l.last)
			}
			if err := response.Err(); err != nil {
				return nil, fmt.Errorf("etcd: watch after revision %d: %w", l.last, err)
			}
			l.take(response.Events)
		}
	}
	out := l.pending
	l.pending = nil
	return out, nil
}

func (l *Log) take(events []*clientv3.Event) {
	for _, e := range events {
		l.last = max(l.last, e.Kv.ModRevision)
		key := string(e.Kv.Key)
		if len(key) < len(Prefix) || key[:len(Prefix)] != Prefix {
			continue
		}
		c := Change{Key: key, Revision: e.Kv.ModRevision}
		if e.PrevKv != nil {
			c.Before = e.PrevKv.Value
		}
		if e.Type == clientv3.EventTypePut {
			c.After = e.Kv.Value
		}
		l.pending = append(l.pending, c)
	}
}
