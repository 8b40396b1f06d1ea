//go:build integration

package load

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/fieldperm/fieldperm/test/stack"
)

const (
	// connections is the number of HTTP/2 connections that share the load: about as many as API servers use.
	connections = 4
	// maxFaults limits the number of wrong answers in the report.
	maxFaults = 10
	// patience is the maximum time of an answer: a busy machine is no fault of the webhook.
	patience = 30 * time.Second
	// inFlight is the default limit of concurrent user requests in a kube-apiserver, mutating and others: a kube-apiserver sends no more
	// requests to its webhooks. A request that is due waits for its turn, and the wait counts.
	inFlight = 200 + 400
)

var errWrong = errors.New("wrong")

// sender acts as the kube-apiserver of fieldperm.
type sender struct {
	url     string
	clients []*http.Client
}

func newSender(s *stack.Stack) (*sender, error) {
	out := &sender{url: s.WebhookURL()}
	for range connections {
		client, err := s.WebhookClient()
		if err != nil {
			return nil, err
		}
		out.clients = append(out.clients, client)
	}
	return out, nil
}

func (s *sender) close() {
	for _, client := range s.clients {
		client.CloseIdleConnections()
	}
}

// result is the result of a run.
type result struct {
	// failed are requests without a decision: an error, or no answer in time.
	due, right, wrong, failed int
	// faults are the first wrong answers.
	faults    []string
	took      time.Duration
	latencies []time.Duration
	bytes     int64
}

func (r *result) String() string {
	return fmt.Sprintf("load: %d requests due, %d answered rightly, %d wrongly, %d failed, %.0f a second over %s, %.1f KB each; latency p50 %s, p99 %s, max %s",
		r.due, r.right, r.wrong, r.failed, float64(r.right)/r.took.Seconds(), r.took.Round(time.Millisecond), float64(r.bytes)/1024/float64(max(1, r.due)), r.at(0.5), r.at(0.99), r.at(1))
}

// at returns the latency that this share of the requests does not exceed.
func (r *result) at(share float64) time.Duration {
	if len(r.latencies) == 0 {
		return 0
	}
	slices.Sort(r.latencies)
	return r.latencies[min(len(r.latencies)-1, int(share*float64(len(r.latencies))))].Round(10 * time.Microsecond)
}

// run sends requests of the mix in random order, each when it is due, and returns when all are answered. A latency starts when the request
// is due.
func (s *sender) run(ctx context.Context, m *mix, rate int, duration time.Duration) *result {
	out := &result{due: int(duration.Seconds() * float64(rate))}
	out.latencies = make([]time.Duration, 0, out.due)
	random := rand.New(rand.NewPCG(1, 1)) //nolint:gosec // The same mix each time.
	var mu sync.Mutex
	var flying sync.WaitGroup
	seats := make(chan struct{}, inFlight)
	begin := time.Now()
	for i := range out.due {
		due := begin.Add(time.Duration(i) * time.Second / time.Duration(rate))
		time.Sleep(time.Until(due))
		r := m.pick(random)
		out.bytes += int64(len(r.body))
		seats <- struct{}{}
		flying.Go(func() {
			defer func() { <-seats }()
			err := s.send(ctx, r, i)
			latency := time.Since(due)
			mu.Lock()
			defer mu.Unlock()
			out.add(r, err, latency, time.Since(begin))
		})
	}
	flying.Wait()
	out.took = time.Since(begin)
	return out
}

// flooding is the number of requests that flood has in flight.
const flooding = 32

// flood sends a request again and again, the next one after each answer. A latency starts when the request is sent.
func (s *sender) flood(ctx context.Context, r *request, duration time.Duration) *result {
	out := &result{}
	var mu sync.Mutex
	var flying sync.WaitGroup
	begin := time.Now()
	for i := range flooding {
		flying.Go(func() {
			for time.Since(begin) < duration {
				sent := time.Now()
				err := s.send(ctx, r, i)
				latency := time.Since(sent)
				mu.Lock()
				out.due++
				out.add(r, err, latency, time.Since(begin))
				mu.Unlock()
			}
		})
	}
	flying.Wait()
	out.took = time.Since(begin)
	return out
}

// add records the outcome of a request, at a time since the begin of the run.
func (r *result) add(of *request, err error, latency, at time.Duration) {
	r.latencies = append(r.latencies, latency)
	if err == nil {
		r.right++
		return
	}
	if errors.Is(err, errWrong) {
		r.wrong++
	} else {
		r.failed++
	}
	if len(r.faults) < maxFaults {
		r.faults = append(r.faults, fmt.Sprintf("%s, after %s: %v", of.name, at.Round(time.Millisecond), err))
	}
}

// send returns nil if the answer is correct.
func (s *sender) send(ctx context.Context, r *request, number int) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+r.path+"?timeout=10s", bytes.NewReader(r.body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	response, err := s.clients[number%len(s.clients)].Do(req)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close() // The body was read to its end.
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return &statusError{code: response.StatusCode, retryAfter: response.Header.Get("Retry-After"), body: body}
	}
	return r.check(body)
}

// statusError is an answer without a decision.
type statusError struct {
	code       int
	retryAfter string
	body       []byte
}

func (e *statusError) Error() string { return fmt.Sprintf("%d: %s", e.code, e.body) }

// check compares an answer with the correct one.
func (r *request) check(body []byte) error {
	if r.contains != nil {
		if !bytes.Contains(body, r.contains) {
			return fmt.Errorf("%w: lacks %s: %s", errWrong, r.contains, body)
		}
		return nil
	}
	if r.path == "/authorize" {
		var review authorizationv1.SubjectAccessReview
		if err := json.Unmarshal(body, &review); err != nil {
			return err
		}
		if status := review.Status; status.Allowed != r.allowed || status.Denied || !strings.HasPrefix(status.Reason, r.reason) {
			return fmt.Errorf("%w: allowed is %v, want %v: %s", errWrong, status.Allowed, r.allowed, body)
		}
		return nil
	}
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(body, &review); err != nil {
		return err
	}
	switch response := review.Response; {
	case response == nil || response.UID != r.uid:
		return fmt.Errorf("%w: no response to this request: %s", errWrong, body)
	case response.Allowed != r.allowed:
		return fmt.Errorf("%w: allowed is %v, want %v: %s", errWrong, response.Allowed, r.allowed, body)
	case !r.allowed && (response.Result == nil || response.Result.Code != http.StatusForbidden):
		return fmt.Errorf("no denial but an error: %s", body)
	}
	return nil
}
