package stack

import (
	"bufio"
	"fmt"
	"net"
	"testing"
)

// backend sends its name to every client that connects.
func backend(t *testing.T, name string) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			fmt.Fprintln(conn, name)
			t.Cleanup(func() { _ = conn.Close() })
		}
	}()
	return listener
}

// Connections go to the backends in turn and leave out a stopped backend, and cut closes the open connections.
func TestBalancer(t *testing.T) {
	a, b := backend(t, "a"), backend(t, "b")
	front, err := newBalancer("127.0.0.1:0", []string{a.Addr().String(), b.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	dial := func() (*bufio.Reader, string) {
		conn, err := net.Dial("tcp", front.listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		reader := bufio.NewReader(conn)
		line, _ := reader.ReadString('\n')
		return reader, line
	}
	_, first := dial()
	open, second := dial()
	if first != "a\n" || second != "b\n" {
		t.Errorf("served by %q, %q; want a, b", first, second)
	}
	front.cut()
	if _, err := open.ReadByte(); err == nil {
		t.Error("a connection is open after cut")
	}
	_ = a.Close()
	for range 3 {
		if _, name := dial(); name != "b\n" {
			t.Errorf("served by %q while only b takes connections", name)
		}
	}
	if err := front.stop(); err != nil {
		t.Error(err)
	}
	if conn, err := net.Dial("tcp", front.listener.Addr().String()); err == nil {
		_ = conn.Close()
		t.Error("it takes connections after stop")
	}
}
