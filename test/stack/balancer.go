package stack

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// dialTimeout limits the connection to a replica, which is on this machine.
const dialTimeout = time.Second

// balancer represents a Service of type ClusterIP: it has one address, and each connection goes to the next replica that accepts it. A
// frozen replica still accepts connections, as in a cluster where kube-proxy does not know yet that it is frozen.
type balancer struct {
	listener net.Listener
	backends []string
	running  sync.WaitGroup

	mu     sync.Mutex // guards the rest
	next   int
	open   map[net.Conn]struct{}
	closed bool
}

func newBalancer(address string, backends []string) (*balancer, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("balancer: %w", err)
	}
	b := &balancer{listener: listener, backends: backends, open: map[net.Conn]struct{}{}}
	b.running.Go(b.accept)
	return b, nil
}

func (b *balancer) accept() {
	for {
		conn, err := b.listener.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			continue
		}
		b.running.Go(func() { b.carry(conn) })
	}
}

// carry copies both ways until either side ends.
func (b *balancer) carry(client net.Conn) {
	backend := b.dial()
	if backend == nil || !b.keep(client, backend) {
		_ = client.Close()
		if backend != nil {
			_ = backend.Close()
		}
		return
	}
	ended := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{client, backend}, {backend, client}} {
		b.running.Go(func() {
			_, _ = io.Copy(way[0], way[1]) // The copy ends when the connection breaks.
			ended <- struct{}{}
		})
	}
	<-ended
	b.drop(client, backend)
}

// dial connects to the next replica, or to another one if that does not accept connections.
func (b *balancer) dial() net.Conn {
	for range b.backends {
		b.mu.Lock()
		address := b.backends[b.next%len(b.backends)]
		b.next++
		b.mu.Unlock()
		if conn, err := net.DialTimeout("tcp", address, dialTimeout); err == nil {
			return conn
		}
	}
	return nil
}

func (b *balancer) keep(conns ...net.Conn) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	for _, conn := range conns {
		b.open[conn] = struct{}{}
	}
	return true
}

func (b *balancer) drop(conns ...net.Conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, conn := range conns {
		delete(b.open, conn)
		_ = conn.Close()
	}
}

// cut closes every open connection. New ones are possible.
func (b *balancer) cut() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for conn := range b.open {
		_ = conn.Close()
	}
}

func (b *balancer) stop() error {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	err := b.listener.Close()
	b.cut()
	b.running.Wait()
	return err
}

// CutConnections closes every connection between kube-apiserver and fieldperm, so that both sides do a new handshake. The stack must have a
// balancer, see Config.Replicas.
func (s *Stack) CutConnections() { s.balancer.cut() }
