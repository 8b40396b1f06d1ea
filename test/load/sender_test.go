//go:build integration

package load

import (
	"context"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/fieldperm/fieldperm/test/sender"
	"github.com/fieldperm/fieldperm/test/stack"
)

const (
	// connections is the number of HTTP/2 connections that share the load: about as many as API servers use.
	connections = 4
	// inFlight is the default limit of concurrent user requests in a kube-apiserver, mutating and others: a kube-apiserver sends no more
	// requests to its webhooks.
	inFlight = 200 + 400
	// flooding is the number of requests that flood has in flight.
	flooding = 32
)

// newSender returns a sender to fieldperm, or to another webhook with the same certificates.
func newSender(t *testing.T, s *stack.Stack, url string) *sender.Sender {
	t.Helper()
	out, err := sender.New(sender.Config{URL: url, Connections: connections, UnderWay: inFlight, Connect: func() (*http.Client, error) { return s.WebhookClient() }})
	must(t, err)
	t.Cleanup(out.Close)
	return out
}

// run sends requests of the mix in random order.
func run(ctx context.Context, s *sender.Sender, m *mix, rate int, duration time.Duration) *sender.Result {
	random := rand.New(rand.NewPCG(1, 1)) //nolint:gosec // The same mix each time.
	out, left := sender.NewResult(), int(duration.Seconds()*float64(rate))
	s.Run(ctx, float64(rate), func() (*sender.Request, func(*sender.Exchange)) {
		if left == 0 {
			return nil, nil
		}
		left--
		return m.pick(random), out.Note
	})
	return out
}

// flood sends a request again and again, the next one after each answer.
func flood(ctx context.Context, s *sender.Sender, r *sender.Request, duration time.Duration) *sender.Result {
	out := sender.NewResult()
	var flying sync.WaitGroup
	begin := time.Now()
	for i := range flooding {
		flying.Go(func() {
			for time.Since(begin) < duration {
				out.Note(s.Send(ctx, r, i))
			}
		})
	}
	flying.Wait()
	return out
}
