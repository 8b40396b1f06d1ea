package cluster

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// reserved holds, until the process ends, a UDP socket with the number of each port that FreePort has returned: no server here uses UDP, and
// no other process, nor a second call here, gets the number before the server listens.
var reserved struct {
	sync.Mutex
	sockets []net.PacketConn
}

// FreePort returns a TCP port of 127.0.0.1 on which nothing listens, and which no other call gets before this process ends. The caller starts
// a server there later, after it has written the files that name the port. The port is random, and below the range that systems use for outgoing
// connections, so that none of the many connections of a control plane takes it in the meantime.
func FreePort() (int, error) {
	const low, high, tries = 15000, 30000, 100
	var last error
	for range tries {
		port := low + rand.IntN(high-low)
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		socket, err := net.ListenPacket("udp", address)
		if err != nil {
			last = err
			continue
		}
		listener, err := net.Listen("tcp", address)
		if err != nil {
			last = err
			if err := socket.Close(); err != nil {
				return 0, fmt.Errorf("port %d: %w", port, err)
			}
			continue
		}
		if err := listener.Close(); err != nil {
			return 0, fmt.Errorf("port %d: %w", port, err)
		}
		reserved.Lock()
		reserved.sockets = append(reserved.sockets, socket)
		reserved.Unlock()
		return port, nil
	}
	return 0, fmt.Errorf("no free port between %d and %d after %d tries: stop what listens there: %w", low, high, tries, last)
}
