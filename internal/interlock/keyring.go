package interlock

import (
	"bytes"
	"crypto/hkdf"
	"crypto/sha256"
	"fmt"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	keyBytes = 32
	// overlap is how long a key stays valid after the next one arrived. Replicas see a new certificate at different times: a kubelet
	// may take a minute or two to write a Secret into a Pod.
	overlap = 10 * time.Minute
)

// Keyring has the keys of nonces and tokens. They are derived from the private key of the serving certificate, which only the
// replicas of fieldperm have. So one replica can answer the probe of another. The zero Keyring has no key, and verification always
// fails.
type Keyring struct {
	clock clock.PassiveClock

	mu                sync.Mutex
	current, previous []byte
	since             time.Time
}

// NewKeyring returns a Keyring without a key.
func NewKeyring(c clock.PassiveClock) *Keyring { return &Keyring{clock: c} }

// Set derives a key from the bytes of the private key, in any encoding, and makes it the current one. The same private key again
// changes nothing.
func (k *Keyring) Set(private []byte) error {
	key, err := hkdf.Key(sha256.New, private, nil, "fieldperm probe v1", keyBytes)
	if err != nil || len(private) == 0 {
		return fmt.Errorf("probe key: cannot be derived from a private key of %d bytes: %w", len(private), err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if bytes.Equal(key, k.current) {
		return nil
	}
	k.previous, k.current, k.since = k.current, key, k.clock.Now()
	return nil
}

// keys returns the keys that are valid now, the current one first.
func (k *Keyring) keys() [][]byte {
	k.mu.Lock()
	defer k.mu.Unlock()
	var out [][]byte
	if k.current != nil {
		out = append(out, k.current)
	}
	if k.previous != nil && k.clock.Since(k.since) < overlap {
		out = append(out, k.previous)
	}
	return out
}
