package cluster

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// FreePort returns a free TCP port of 127.0.0.1, for a server that the caller starts later, after it has written the files that name the
// port. It picks a random port below the range that systems use for outgoing connections, so that none of the many connections of a control
// plane takes the port in the meantime.
func FreePort() (int, error) {
	const low, high, tries = 15000, 30000, 100
	var last error
	for range tries {
		port := low + rand.IntN(high-low)
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			last = err
			continue
		}
		if err := listener.Close(); err != nil {
			return 0, fmt.Errorf("port %d: %w", port, err)
		}
		return port, nil
	}
	return 0, fmt.Errorf("no free port between %d and %d after %d tries: stop what listens there: %w", low, high, tries, last)
}
