package sender

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"
)

// Config describes a sender.
type Config struct {
	// URL is the address of fieldperm, without a slash at the end.
	URL string
	// Connections is the number of clients that share the load, of one HTTP/2 connection each.
	Connections int
	// UnderWay limits the requests under way. A request that is due waits for its turn, and the wait counts.
	UnderWay int
	// Late is how late a request may be sent. Later ones are not sent. Zero: all are sent.
	Late time.Duration
	// Connect returns a client with a connection of its own and a timeout.
	Connect func() (*http.Client, error)
}

func (c Config) validate() error {
	if c.URL == "" || c.Connections < 1 || c.UnderWay < 1 || c.Connect == nil {
		return errors.New("sender: needs an URL, connections, a number of requests under way, and Connect")
	}
	return nil
}

// Sender sends requests. Its methods may be called concurrently.
type Sender struct {
	config  Config
	clients []client
	seats   chan struct{}
}

// client is one client, which may be replaced.
type client struct {
	mu     sync.Mutex
	http   *http.Client
	flying *sync.WaitGroup
}

// New connects when the first requests are sent.
func New(config Config) (*Sender, error) {
	if err := config.validate(); err != nil {
		return nil, err
	}
	s := &Sender{config: config, clients: make([]client, config.Connections), seats: make(chan struct{}, config.UnderWay)}
	for i := range s.clients {
		if _, err := s.Renew(i); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Close closes connections that no request uses.
func (s *Sender) Close() {
	for i := range s.clients {
		s.clients[i].http.CloseIdleConnections()
	}
}

// Renew replaces one of the clients. The returned function waits for the requests of the old one, and closes its connection.
func (s *Sender) Renew(number int) (wait func(), err error) {
	c := &s.clients[number%len(s.clients)]
	// Connect is called under the lock: after Renew, no client from an earlier call of Connect is in its place.
	c.mu.Lock()
	defer c.mu.Unlock()
	fresh, err := s.config.Connect()
	if err != nil {
		return nil, err
	}
	old, flying := c.http, c.flying
	c.http, c.flying = fresh, &sync.WaitGroup{}
	if old == nil {
		return func() {}, nil
	}
	return func() {
		flying.Wait()
		old.CloseIdleConnections()
	}, nil
}

// RenewAll returns when no request is under way on an old connection.
func (s *Sender) RenewAll() error {
	var waits []func()
	for i := range s.clients {
		wait, err := s.Renew(i)
		if err != nil {
			return err
		}
		waits = append(waits, wait)
	}
	for _, wait := range waits {
		wait()
	}
	return nil
}

// Quiet calls f when no request of Run is under way, and sends none meanwhile.
func (s *Sender) Quiet(f func()) {
	for range cap(s.seats) {
		s.seats <- struct{}{}
	}
	f()
	for range cap(s.seats) {
		<-s.seats
	}
}

// Next returns the next request, and what to do with its answer. Without a request the run ends.
type Next func() (*Request, func(*Exchange))

// Run sends rate requests a second, each when it is due, until the context ends or there is no next one. It returns when all are answered, with
// the number of those that were not sent because they were late. The functions of Next are called concurrently.
func (s *Sender) Run(ctx context.Context, rate float64, next Next) (skipped int) {
	var flying sync.WaitGroup
	begin := time.Now()
	for i := 0; ctx.Err() == nil; i++ {
		due := begin.Add(time.Duration(float64(i) * float64(time.Second) / rate))
		if late := time.Since(due); s.config.Late > 0 && late > s.config.Late {
			skipped++
			continue
		}
		time.Sleep(time.Until(due))
		r, done := next()
		if r == nil {
			break
		}
		s.seats <- struct{}{}
		flying.Go(func() {
			defer func() { <-s.seats }()
			e := s.Send(context.WithoutCancel(ctx), r, i)
			e.Due = due
			done(e)
		})
	}
	flying.Wait()
	return skipped
}

// Send sends a request on the connection of that number, and returns when it is answered.
func (s *Sender) Send(ctx context.Context, r *Request, number int) *Exchange {
	c := &s.clients[number%len(s.clients)]
	c.mu.Lock()
	using, flying := c.http, c.flying
	flying.Add(1)
	c.mu.Unlock()
	defer flying.Done()
	return Send(ctx, using, s.config.URL, r)
}

// Get returns the content of a path.
func (s *Sender) Get(ctx context.Context, path string) ([]byte, error) {
	c := &s.clients[0]
	c.mu.Lock()
	using := c.http
	c.mu.Unlock()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.config.URL+path, nil)
	if err != nil {
		return nil, err
	}
	response, err := using.Do(request)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close() // The body was read to its end.
	return body, err
}

// Send sends a request with a client.
func Send(ctx context.Context, using *http.Client, url string, r *Request) *Exchange {
	out := &Exchange{Request: r, Begin: time.Now()}
	out.Due = out.Begin
	// A transport that has given up may still find a connection.
	var conn atomic.Pointer[net.Conn]
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) { conn.Store(&info.Conn) }})
	out.post(ctx, using, url+r.Path+"?timeout=10s")
	out.End = time.Now()
	if found := conn.Load(); found != nil {
		out.Conn = *found
	}
	out.read()
	return out
}

func (e *Exchange) post(ctx context.Context, using *http.Client, url string) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(e.Body))
	if err != nil {
		e.Err = err
		return
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := using.Do(request)
	if err != nil {
		e.Err = err
		return
	}
	e.Code, e.RetryAfter = response.StatusCode, response.Header.Get("Retry-After")
	e.Text, e.Err = io.ReadAll(response.Body)
	_ = response.Body.Close() // The body was read to its end.
}
