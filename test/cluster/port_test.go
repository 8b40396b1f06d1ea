package cluster

import (
	"net"
	"strconv"
	"testing"
)

func TestFreePort_CanBeListenedOn(t *testing.T) {
	port, err := FreePort()
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Error(err)
	}
}

// Servers that start side by side once got one port: of 15,000, 500 random ones are all different in one of 4,000 runs.
func TestFreePort_IsReturnedOnce(t *testing.T) {
	seen := map[int]bool{}
	for range 500 {
		port, err := FreePort()
		if err != nil {
			t.Fatal(err)
		}
		if seen[port] {
			t.Fatalf("port %d is returned twice", port)
		}
		seen[port] = true
	}
}
