//go:build integration

package soak

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
)

const (
	// slots is the number of HTTP/2 connections that share the load.
	slots = 8
	// renewal is the time between two new connections, each in place of the oldest one: API servers come and go.
	renewal = time.Second
	// patience is the maximum time of an answer: a busy machine is no fault of the webhook.
	patience = 30 * time.Second
	// inFlight is the number of requests under way at most.
	inFlight = 200
	// behind is how late a request may be sent. Later ones are not sent, and counted.
	behind = time.Second
)

// request is one request whose right answers are known at each time.
type request struct {
	name, path string
	body       []byte
	truth      *truth
}

// exchange is one request that was sent, with its answer.
type exchange struct {
	of         *request
	begin, end time.Time
	answer     answers
	// unproven is a question that was refused because enforcement was not proven.
	unproven bool
	// to is where the request was sent last, nil if it was not sent.
	to *incarnation
	// err is set if the answer is Errored, or is not an answer to this request.
	err  error
	body []byte
}

// slot is a connection of the sender, which is renewed now and then.
type slot struct {
	mu     sync.Mutex
	client *http.Client
	flying *sync.WaitGroup
}

// sender acts as the kube-apiservers. It sends a request once.
type sender struct {
	url   string
	fleet *fleet
	// certified returns the TLS configuration with the present certificates.
	certified func() *tls.Config
	slots     [slots]slot
	pick      func(*rand.Rand) *request
	judge     func(*exchange)
	// seats are taken by the requests under way.
	seats chan struct{}

	sent, skipped atomic.Int64
}

// use returns the client of a slot, and a function to call when the request is answered.
func (s *slot) use() (*http.Client, func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	flying := s.flying
	flying.Add(1)
	return s.client, flying.Done
}

// renew replaces the client of a slot, and returns a function that waits for the requests of the old one.
func (s *sender) renew(i int) (wait func()) {
	one := &s.slots[i]
	one.mu.Lock()
	old, flying := one.client, one.flying
	// Under the lock, so that nothing with earlier certificates is in the slot after a renewal.
	one.client, one.flying = client(s.fleet, s.certified()), &sync.WaitGroup{}
	one.mu.Unlock()
	if old == nil {
		return func() {}
	}
	return func() {
		flying.Wait()
		old.CloseIdleConnections()
	}
}

// renewAll returns when no request is under way on an old connection.
func (s *sender) renewAll() {
	var waits []func()
	for i := range s.slots {
		waits = append(waits, s.renew(i))
	}
	for _, wait := range waits {
		wait()
	}
}

// quiet calls f when no request is under way, and sends none meanwhile.
func (s *sender) quiet(f func()) {
	for range inFlight {
		s.seats <- struct{}{}
	}
	f()
	for range inFlight {
		<-s.seats
	}
}

func (s *sender) close() {
	for i := range s.slots {
		s.slots[i].client.CloseIdleConnections()
	}
}

// run sends requests when they are due, until the context ends.
func (s *sender) run(ctx context.Context, rate int) {
	random := rand.New(rand.NewPCG(5, 6)) //nolint:gosec // The same mix each time.
	var flying sync.WaitGroup
	flying.Go(func() { s.age(ctx) })
	begin := time.Now()
	for i := 0; ctx.Err() == nil; i++ {
		due := begin.Add(time.Duration(i) * time.Second / time.Duration(rate))
		if late := time.Since(due); late > behind {
			s.skipped.Add(1)
			continue
		}
		time.Sleep(time.Until(due))
		number := i % slots
		r := s.pick(random)
		s.seats <- struct{}{}
		s.sent.Add(1)
		flying.Go(func() {
			defer func() { <-s.seats }()
			c, done := s.slots[number].use()
			defer done()
			s.judge(exchangeOf(c, s.url, r))
		})
	}
	flying.Wait()
}

// age renews one connection after the other.
func (s *sender) age(ctx context.Context) {
	ticker := time.NewTicker(renewal)
	defer ticker.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			s.renew(i % slots)()
		}
	}
}

// exchangeOf sends a request and classifies its answer.
func exchangeOf(c *http.Client, url string, r *request) *exchange {
	out := &exchange{of: r, begin: time.Now(), answer: Errored}
	var to atomic.Pointer[incarnation]
	ctx := httptrace.WithClientTrace(context.Background(), &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		if conn, ok := info.Conn.(*tls.Conn); ok {
			if one, ok := conn.NetConn().(linked); ok {
				to.Store(one.to)
			}
		}
	}})
	out.body, out.err = post(ctx, c, url+r.path+"?timeout=10s", r.body)
	out.end, out.to = time.Now(), to.Load()
	if out.err == nil {
		out.read()
	}
	return out
}

func post(ctx context.Context, c *http.Client, url string, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	response, err := c.Do(req)
	if err != nil {
		return nil, err
	}
	answer, err := io.ReadAll(response.Body)
	_ = response.Body.Close() // The body was read to its end.
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%d: %s", response.StatusCode, answer)
	}
	return answer, err
}

// read classifies a body.
func (e *exchange) read() {
	if e.of.path == "/authorize" {
		var review authorizationv1.SubjectAccessReview
		if e.err = json.Unmarshal(e.body, &review); e.err != nil {
			return
		}
		switch status := review.Status; {
		case status.Allowed:
			e.answer = Allowed
		case status.EvaluationError != "":
			e.err = fmt.Errorf("evaluation error: %s", e.body)
		default:
			e.answer, e.unproven = Denied, strings.Contains(status.Reason, "not proven")
		}
		return
	}
	var review admissionv1.AdmissionReview
	if e.err = json.Unmarshal(e.body, &review); e.err != nil {
		return
	}
	switch response := review.Response; {
	case response == nil:
		e.err = fmt.Errorf("no response: %s", e.body)
	case response.Allowed:
		e.answer = Allowed
	case response.Result != nil && response.Result.Code == http.StatusForbidden:
		e.answer = Denied
	default:
		e.err = fmt.Errorf("no denial but an error: %s", e.body)
	}
}

// starved reports whether the answer is an error because kube-apiserver did not answer a SubjectAccessReview within the timeout of the check.
func (e *exchange) starved() bool {
	if e.err == nil {
		return false
	}
	text := e.err.Error()
	return strings.Contains(text, "/subjectaccessreviews?timeout=") && (strings.Contains(text, "deadline exceeded") || strings.Contains(text, "Timeout exceeded"))
}
