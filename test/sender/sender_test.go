package sender

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// server answers by the name that a body has.
func server(t *testing.T, handle http.HandlerFunc) Config {
	t.Helper()
	s := httptest.NewUnstartedServer(handle)
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	return Config{URL: s.URL, Connections: 2, UnderWay: 8, Connect: func() (*http.Client, error) {
		return &http.Client{Transport: s.Client().Transport.(*http.Transport).Clone(), Timeout: time.Minute}, nil
	}}
}

func newSender(t *testing.T, config Config) *Sender {
	t.Helper()
	s, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// An answer is what it says, and everything that is no clear answer is an error.
func TestSend_ReadsAnswers(t *testing.T) {
	config := server(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if code, text, found := strings.Cut(string(body), " "); found {
			if code == "503" {
				w.Header().Set("Retry-After", "1")
				w.WriteHeader(http.StatusServiceUnavailable)
			}
			_, _ = io.WriteString(w, text)
		}
	})
	s := newSender(t, config)
	const forbidden = `,"status":{"code":403}`
	for body, want := range map[string]struct {
		path     string
		answer   Answer
		unproven bool
	}{
		`200 {"response":{"uid":"u","allowed":true}}`:                        {"/admit/granular", Allowed, false},
		`200 {"response":{"uid":"u","allowed":false` + forbidden + `}}`:      {"/admit/granular", Denied, false},
		`200 {"response":{"uid":"u","allowed":false,"status":{"code":500}}}`: {"/admit/granular", Errored, false},
		`200 {"response":{"uid":"u","allowed":false}}`:                       {"/admit/granular", Errored, false},
		`200 {"response":{"uid":"other","allowed":true}}`:                    {"/admit/granular", Errored, false},
		`200 {}`: {"/admit/granular", Errored, false},
		`200 x`:  {"/admit/granular", Errored, false},
		`503 {"response":{"uid":"u","allowed":true}}`:                       {"/admit/granular", Errored, false},
		`200 {"status":{"allowed":true,"reason":"granular: x"}}`:            {"/authorize", Allowed, false},
		`200 {"status":{"allowed":true,"reason":"RBAC: x"}}`:                {"/authorize", Errored, false},
		`200 {"status":{"allowed":false}}`:                                  {"/authorize", Denied, false},
		`200 {"status":{"allowed":false,"reason":"it is not proven that"}}`: {"/authorize", Denied, true},
		`200 {"status":{"allowed":false,"denied":true}}`:                    {"/authorize", Errored, false},
		`200 {"status":{"allowed":false,"evaluationError":"x"}}`:            {"/authorize", Errored, false},
	} {
		got := s.Send(t.Context(), &Request{Path: want.path, Body: []byte(body), UID: "u"}, 0)
		if got.Answer != want.answer || got.Unproven != want.unproven || (got.Err != nil) != (want.answer == Errored) || got.Conn == nil {
			t.Errorf("%s: %s, unproven %t, %v", body, got.Answer, got.Unproven, got.Err)
		}
	}
	quick := &Request{Path: "/admit/granular", Body: []byte("200 abc"), Contains: []byte("b")}
	if got := s.Send(t.Context(), quick, 0); got.Answer != Allowed {
		t.Error(got.Answer, got.Err)
	}
	if quick.Contains = []byte("d"); s.Send(t.Context(), quick, 0).Answer != Errored {
		t.Error("an answer without the text is right")
	}
}

// A result tells wrong answers, failures and missing proofs apart.
func TestResult(t *testing.T) {
	r, begin := NewResult(), time.Now()
	for _, e := range []*Exchange{
		{Answer: Allowed}, {Answer: Denied}, {Answer: Denied, Unproven: true}, {Answer: Errored, Err: io.EOF}, {},
	} {
		e.Request, e.Due, e.End = &Request{Name: "r", Want: Allowed, Body: []byte("12")}, begin, begin.Add(time.Second)
		r.Note(e)
	}
	// An exchange without an answer is wrong too.
	if r.Due != 5 || r.Right != 1 || r.Wrong != 2 || r.Unproven != 1 || r.Failed != 1 || len(r.Faults) != 3 || r.Bytes != 10 || r.At(1) != time.Second {
		t.Errorf("%+v", r)
	}
	if r.Add(r); r.Due != 10 || r.Right != 2 || r.Wrong != 4 || r.Unproven != 2 || r.Failed != 2 {
		t.Errorf("%+v", r)
	}
}

// Every request is sent once, and the number under way is limited.
func TestRun(t *testing.T) {
	var mu sync.Mutex
	var bodies []string
	var under, most atomic.Int64
	config := server(t, func(w http.ResponseWriter, r *http.Request) {
		now := under.Add(1)
		defer under.Add(-1)
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		most.Store(max(most.Load(), now))
		bodies = append(bodies, string(body))
	})
	s := newSender(t, config)
	number := 0
	var done atomic.Int64
	if skipped := s.Run(t.Context(), 1e6, func() (*Request, func(*Exchange)) {
		if number++; number > 100 {
			return nil, nil
		}
		body, _ := json.Marshal(number) //nolint:errchkjson // A number.
		return &Request{Path: "/", Body: body}, func(*Exchange) { done.Add(1) }
	}); skipped != 0 {
		t.Errorf("%d were not sent", skipped)
	}
	slices.Sort(bodies)
	if len(bodies) != 100 || len(slices.Compact(bodies)) != 100 || done.Load() != 100 {
		t.Errorf("%d requests, %d answers", len(bodies), done.Load())
	}
	if most.Load() > int64(config.UnderWay) {
		t.Errorf("%d requests under way, want at most %d", most.Load(), config.UnderWay)
	}
}

// A sender that may not be late sends nothing in place of what it missed.
func TestRun_SkipsWhatIsLate(t *testing.T) {
	block := make(chan struct{})
	config := server(t, func(http.ResponseWriter, *http.Request) { <-block })
	config.UnderWay, config.Late = 1, time.Nanosecond
	s := newSender(t, config)
	number := 0
	skipped := s.Run(t.Context(), 1e6, func() (*Request, func(*Exchange)) {
		switch number++; number {
		case 1:
			return &Request{Path: "/"}, func(*Exchange) {}
		case 2:
			close(block)
			return &Request{Path: "/"}, func(*Exchange) {}
		}
		return nil, nil
	})
	if skipped == 0 {
		t.Error("all requests were in time")
	}
}

// After a renewal requests use the new connection, and those of the old one are answered; a quiet sender has no request under way.
func TestRenewAndQuiet(t *testing.T) {
	arrived, block := make(chan struct{}, 8), make(chan struct{})
	var under atomic.Int64
	config := server(t, func(_ http.ResponseWriter, r *http.Request) {
		under.Add(1)
		defer under.Add(-1)
		if body, _ := io.ReadAll(r.Body); string(body) == "wait" {
			arrived <- struct{}{}
			<-block
		}
	})
	config.Connections = 1
	s := newSender(t, config)
	first := s.Send(t.Context(), &Request{Path: "/"}, 0)
	var flying sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	sent := false
	answers := make(chan *Exchange, 8)
	flying.Go(func() {
		s.Run(ctx, 1000, func() (*Request, func(*Exchange)) {
			if sent {
				cancel()
				return nil, nil
			}
			sent = true
			return &Request{Path: "/", Body: []byte("wait")}, func(e *Exchange) { answers <- e }
		})
	})
	<-arrived
	wait, err := s.Renew(0)
	if err != nil {
		t.Fatal(err)
	}
	second := s.Send(t.Context(), &Request{Path: "/"}, 0)
	if first.Conn == nil || second.Conn == nil || first.Conn == second.Conn {
		t.Error("the connection is the old one")
	}
	quiet := make(chan int64)
	go s.Quiet(func() { quiet <- under.Load() })
	close(block)
	if n := <-quiet; n != 0 {
		t.Errorf("%d requests are under way", n)
	}
	wait()
	flying.Wait()
	if old := <-answers; old.Code != http.StatusOK || old.Conn != first.Conn {
		t.Errorf("the request of the old connection: %d, %v", old.Code, old.Err)
	}
}

func TestNew_NeedsEverything(t *testing.T) {
	if _, err := New(Config{URL: "https://127.0.0.1", Connections: 1, UnderWay: 1}); err == nil {
		t.Error("a sender without Connect")
	}
}
