package store

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// Prefix is the prefix of all keys of kube-apiserver.
const Prefix = "/registry/"

// dialTimeout limits the first connection.
const dialTimeout = 10 * time.Second

// ServerFlags returns the flags of kube-apiserver that make stored objects readable, for cluster.Config.ExtraArgs.
func ServerFlags() map[string][]string {
	return map[string][]string{"storage-media-type": {"application/json"}}
}

// Store reads and writes an etcd. Its methods may be called concurrently.
type Store struct{ client *clientv3.Client }

// Entry is one key as it was stored at some time.
type Entry struct {
	Key string
	// Value is the value in etcd: JSON for objects, if the API server has ServerFlags. Decode reads it.
	Value []byte
	// Revision is the revision of the last change of the key, Created that of its first one.
	Revision, Created int64
}

// Open connects to the etcd at a URL, which is cluster.Cluster.EtcdURL. The context limits only the start of the connection.
func Open(ctx context.Context, url string) (*Store, error) {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{url}, DialTimeout: dialTimeout, Logger: zap.NewNop()})
	if err != nil {
		return nil, fmt.Errorf("etcd %q: %w", url, err)
	}
	s := &Store{client: client}
	if _, err := s.Revision(ctx); err != nil {
		return nil, fmt.Errorf("%w; close: %w", err, client.Close())
	}
	return s, nil
}

// Close ends the connection and all logs of the store.
func (s *Store) Close() error { return s.client.Close() }

// Revision returns the number of the last change of any key.
func (s *Store) Revision(ctx context.Context) (int64, error) {
	// Any key is sufficient: the header of the answer has the revision. The only etcd has applied every change that an API server has
	// answered, so that a serializable read sees it.
	response, err := s.client.Get(ctx, Prefix, clientv3.WithKeysOnly(), clientv3.WithSerializable())
	if err != nil {
		return 0, fmt.Errorf("etcd: revision: %w", err)
	}
	return response.Header.Revision, nil
}

// Keys returns the keys that begin with prefix, each with the revision of its last change, and the revision at which
// they were read.
func (s *Store) Keys(ctx context.Context, prefix string) (map[string]int64, int64, error) {
	response, err := s.client.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		return nil, 0, fmt.Errorf("etcd: keys below %q: %w", prefix, err)
	}
	out := make(map[string]int64, len(response.Kvs))
	for _, kv := range response.Kvs {
		out[string(kv.Key)] = kv.ModRevision
	}
	return out, response.Header.Revision, nil
}

// List returns the entries whose key begins with prefix, in the order of the keys, and the revision at which they were
// read.
func (s *Store) List(ctx context.Context, prefix string) ([]Entry, int64, error) {
	response, err := s.client.Get(ctx, prefix, clientv3.WithPrefix())
	if err != nil {
		return nil, 0, fmt.Errorf("etcd: list below %q: %w", prefix, err)
	}
	out := make([]Entry, 0, len(response.Kvs))
	for _, kv := range response.Kvs {
		out = append(out, Entry{Key: string(kv.Key), Value: kv.Value, Revision: kv.ModRevision, Created: kv.CreateRevision})
	}
	return out, response.Header.Revision, nil
}

// Put stores a value under a key, as an API server would do. API servers notice it by their own watches.
func (s *Store) Put(ctx context.Context, key string, value []byte) error {
	if _, err := s.client.Put(ctx, key, string(value)); err != nil {
		return fmt.Errorf("etcd: key %q: %w", key, err)
	}
	return nil
}

// Remove deletes keys, as if they had never existed.
func (s *Store) Remove(ctx context.Context, keys ...string) error {
	for _, key := range keys {
		if _, err := s.client.Delete(ctx, key); err != nil {
			return fmt.Errorf("etcd: key %q: %w", key, err)
		}
	}
	return nil
}

// Get returns the entry of a key as it was at a revision, the latest if that is zero. It is nil if there was none.
func (s *Store) Get(ctx context.Context, key string, revision int64) (*Entry, error) {
	response, err := s.client.Get(ctx, key, clientv3.WithRev(revision))
	if err != nil {
		return nil, fmt.Errorf("etcd: key %q: %w", key, err)
	}
	if len(response.Kvs) == 0 {
		return nil, nil
	}
	kv := response.Kvs[0]
	return &Entry{Key: key, Value: kv.Value, Revision: kv.ModRevision, Created: kv.CreateRevision}, nil
}
