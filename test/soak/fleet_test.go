//go:build integration

package soak

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// incarnation is one run of a replica.
type incarnation struct {
	replica int
	address string
	// killed is set before the process is killed: requests on connections to it may fail.
	killed atomic.Bool
}

func (i *incarnation) String() string {
	if i == nil {
		return "no replica"
	}
	return fmt.Sprintf("replica %d", i.replica)
}

// fleet has the replicas that are ready, as the endpoints of a Service.
type fleet struct {
	mu    sync.Mutex
	ready []*incarnation
	next  int
}

func (f *fleet) add(replica int, address string) *incarnation {
	f.mu.Lock()
	defer f.mu.Unlock()
	one := &incarnation{replica: replica, address: address}
	f.ready = append(f.ready, one)
	return one
}

// remove makes no more connections to a replica; those that there are stay.
func (f *fleet) remove(replica int) *incarnation {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.IndexFunc(f.ready, func(one *incarnation) bool { return one.replica == replica })
	if i < 0 {
		return nil
	}
	one := f.ready[i]
	f.ready = slices.Delete(f.ready, i, i+1)
	return one
}

func (f *fleet) all() []*incarnation {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.ready)
}

// linked is a connection that knows where it leads.
type linked struct {
	net.Conn
	to *incarnation
}

// dial connects to the next replica that is ready.
func (f *fleet) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	f.mu.Lock()
	if len(f.ready) == 0 {
		f.mu.Unlock()
		return nil, errors.New("no replica is ready")
	}
	to := f.ready[f.next%len(f.ready)]
	f.next++
	f.mu.Unlock()
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, to.address)
	if err != nil {
		return nil, err
	}
	return linked{conn, to}, nil
}

// patience is the maximum time of an answer: a busy machine is no fault of fieldperm.
const patience = 30 * time.Second

// idle is the time after which a connection that is not used any more is closed.
const idle = 5 * time.Second

// client returns a client of the fleet, or of the address in its URLs if the fleet is nil.
func client(f *fleet, config *tls.Config) *http.Client {
	transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true, IdleConnTimeout: idle}
	if f != nil {
		transport.DialContext = f.dial
	}
	return &http.Client{Transport: transport, Timeout: patience}
}
