//go:build integration

package soak

import (
	"context"
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"net/http"
	"regexp"
	"time"

	"github.com/fieldperm/fieldperm/test/sender"
)

const (
	// connections is the number of HTTP/2 connections that share the load.
	connections = 8
	// renewal is the time between two new connections, each in place of the oldest one: API servers come and go.
	renewal = time.Second
	// inFlight is the number of requests under way at most.
	inFlight = 200
	// late is how late a request may be sent. Later ones are not sent, and counted.
	late = time.Second
)

// newSender returns a sender to the replicas that are ready. It has no certificate of a CA that was replaced.
func (c *scene) newSender() *sender.Sender {
	out, err := sender.New(sender.Config{URL: c.s.WebhookURL(), Connections: connections, UnderWay: inFlight, Late: late, Connect: func() (*http.Client, error) {
		return client(c.fleet, c.callers.certified()), nil
	}})
	must(c.t, err)
	c.t.Cleanup(out.Close)
	return out
}

// load sends requests of the mix, and returns the number of those that were not sent because they were late.
func (c *scene) load(ctx context.Context) int {
	random := rand.New(rand.NewPCG(5, 6)) //nolint:gosec // The same mix each time.
	return c.sender.Run(ctx, *rate, func() (*sender.Request, func(*sender.Exchange)) {
		c.sent.Add(1)
		r := c.mix.pick(random)
		return &r.Request, func(e *sender.Exchange) { c.note(r, e) }
	})
}

// age renews one connection after the other.
func (c *scene) age(ctx context.Context) {
	ticker := time.NewTicker(renewal)
	defer ticker.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			wait, err := c.sender.Renew(i)
			if err != nil {
				c.t.Error(err)
				return
			}
			wait()
		}
	}
}

// filler is what makes a body large.
var filler = regexp.MustCompile("x{20,}")

func (c *scene) note(r *request, e *sender.Exchange) {
	to := destination(e)
	c.judge.note(outcome{
		name: e.Name, begin: e.Begin, end: e.End, answer: e.Answer, right: r.truth.during(e.Begin, e.End), unproven: e.Unproven,
		killed: to != nil && to.killed.Load(), late: e.Err != nil && isLate(e.Err.Error()),
		detail: func() string {
			return fmt.Sprintf("%s: %v\nanswer: %s\nrequest: %s", to, e.Err, e.Text, filler.ReplaceAll(e.Body, []byte("x…")))
		},
	})
}

// destination returns where a request was sent last, nil if it was not sent.
func destination(e *sender.Exchange) *incarnation {
	if conn, ok := e.Conn.(*tls.Conn); ok {
		if one, ok := conn.NetConn().(linked); ok {
			return one.to
		}
	}
	return nil
}
