//go:build integration

package scale

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
	// connections is the number of HTTP/2 connections that share the load: three kube-apiservers with a few each.
	connections = 8
	// objectBytes is the size of each of the two objects of a review.
	objectBytes = 8 << 10
	// patience is the maximum time of an answer: a busy machine is no fault of the webhook.
	patience = 30 * time.Second
	// inFlight is the number of requests that three kube-apiservers have under way at most, with their default limits. A request that is due
	// waits for its turn, and the wait counts.
	inFlight  = 3 * (200 + 400)
	maxFaults = 10
)

// review is a request with its only correct answer.
type review struct {
	name, path string
	body       []byte
	allowed    bool
}

// sender acts as the kube-apiservers. It sends a request once, as a kube-apiserver that refuses the write if that fails.
type sender struct {
	url     string
	clients []*http.Client
	// mix returns the next request.
	mix func(*rand.Rand) *review
}

func newSender(s *stack.Stack) (*sender, error) {
	out := &sender{url: s.WebhookURL(), mix: mix()}
	for range connections {
		client, err := s.WebhookClient()
		if err != nil {
			return nil, err
		}
		client.Timeout = patience
		out.clients = append(out.clients, client)
	}
	return out, nil
}

func (s *sender) close() {
	for _, client := range s.clients {
		client.CloseIdleConnections()
	}
}

// phase is the result of a phase.
type phase struct {
	due, right, wrong, failed int
	// unproven are questions that were refused because enforcement was not proven: fieldperm, or the API server that it probes, had too little
	// processor time for a proof. Users are refused then, which is right, and no reviews.
	unproven int
	// lastFailure is the time of the last request that failed, after the begin.
	lastFailure time.Duration
	faults      []string
	latencies   []time.Duration
	took        time.Duration
}

func (p *phase) String() string {
	slices.Sort(p.latencies)
	at := func(share float64) time.Duration {
		return p.latencies[min(len(p.latencies)-1, int(share*float64(len(p.latencies))))].Round(10 * time.Microsecond)
	}
	return fmt.Sprintf("%d requests, %.0f a second, %d wrong, %d failed, %d without proof; p50 %s, p99 %s, max %s", p.due, float64(p.due)/p.took.Seconds(), p.wrong, p.failed, p.unproven, at(0.5), at(0.99), at(1))
}

// run sends requests when they are due, until the context ends.
func (s *sender) run(ctx context.Context, rate float64) *phase {
	out := &phase{}
	random := rand.New(rand.NewPCG(3, 4)) //nolint:gosec // The same mix each time.
	var mu sync.Mutex
	var flying sync.WaitGroup
	seats := make(chan struct{}, inFlight)
	begin := time.Now()
	for i := 0; ctx.Err() == nil; i++ {
		due := begin.Add(time.Duration(float64(i) * float64(time.Second) / rate))
		time.Sleep(time.Until(due))
		r := s.mix(random)
		seats <- struct{}{}
		flying.Go(func() {
			defer func() { <-seats }()
			err := s.send(r, i)
			mu.Lock()
			defer mu.Unlock()
			out.due++
			out.latencies = append(out.latencies, time.Since(due))
			switch {
			case err == nil:
				out.right++
				return
			case errors.Is(err, errUnproven):
				out.unproven++
				return
			case strings.HasPrefix(err.Error(), wrong):
				out.wrong++
			default:
				out.failed++
				out.lastFailure = max(out.lastFailure, time.Since(begin))
			}
			if len(out.faults) < maxFaults {
				out.faults = append(out.faults, fmt.Sprintf("%s, after %s: %v", r.name, time.Since(begin).Round(time.Millisecond), err))
			}
		})
	}
	flying.Wait()
	out.took = time.Since(begin)
	return out
}

const wrong = "wrong: "

var errUnproven = errors.New("enforcement is not proven")

func (s *sender) send(r *review, number int) error {
	response, err := s.clients[number%len(s.clients)].Post(s.url+r.path+"?timeout=10s", "application/json", bytes.NewReader(r.body))
	if err != nil {
		return err
	}
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close() // The body was read to its end.
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%d: %s", response.StatusCode, body)
	}
	if r.path == "/authorize" {
		var is authorizationv1.SubjectAccessReview
		if err := json.Unmarshal(body, &is); err != nil {
			return err
		}
		if !is.Status.Allowed && strings.Contains(is.Status.Reason, "it is not proven") {
			return errUnproven
		}
		if is.Status.Allowed != r.allowed {
			return fmt.Errorf(wrong+"%s", body)
		}
		return nil
	}
	var is admissionv1.AdmissionReview
	if err := json.Unmarshal(body, &is); err != nil {
		return err
	}
	switch {
	case is.Response == nil || is.Response.Allowed != r.allowed:
		return fmt.Errorf(wrong+"%s", body)
	case !r.allowed && (is.Response.Result == nil || is.Response.Result.Code != http.StatusForbidden):
		return fmt.Errorf("no denial but an error: %s", body)
	}
	return nil
}

// mix returns a function that draws requests in the proportions of the traffic. Half of them are questions to /authorize: a kube-apiserver
// asks one for each write that it has no cached answer for. Every tenth review changes a field without a verb, and is denied.
func mix() func(*rand.Rand) *review {
	var byOperators, byController, byUsers float64
	for _, w := range traffic(*nodes, *controllers) {
		switch w.name {
		case customResource:
			byOperators = w.rate
		case workloadStatus:
			byController = w.rate
		case userWrite:
			byUsers = w.rate
		}
	}
	return func(random *rand.Rand) *review {
		question, denied := random.IntN(2) == 0, random.IntN(10) == 0
		switch drawn := random.Float64() * (byOperators + byController + byUsers); {
		case drawn < byOperators:
			i := random.IntN(*controllers)
			of := i % *definitions
			at := target{group: group(of), resource: resource(of), kind: fmt.Sprintf("Machine%d", of), namespace: "scale", name: fmt.Sprintf("m-%d", random.IntN(*objects)), user: account(i)}
			if denied {
				return at.request(question, false, `"spec":{"replicas":1}`, `"spec":{"replicas":1,"paused":true}`)
			}
			return at.request(question, true, `"spec":{"replicas":1}`, `"spec":{"replicas":2}`)
		case drawn < byOperators+byController:
			at := target{group: "apps", resource: "deployments", sub: "status", kind: "Deployment", namespace: "scale", name: fmt.Sprintf("web-%d", random.IntN(*objects)), user: account(0)}
			if denied {
				return at.request(question, false, `"status":{"replicas":1}`, `"status":{"replicas":1},"spec":{"paused":true}`)
			}
			const condition = `"status":{"conditions":[{"type":"Available","status":%q}]}`
			return at.request(question, true, fmt.Sprintf(condition, "False"), fmt.Sprintf(condition, "True"))
		}
		i := random.IntN(*bindings)
		at := target{group: "apps", resource: "deployments", kind: "Deployment", namespace: fmt.Sprintf("team-%d", i%max(1, *bindings/100)), name: "web", user: fmt.Sprintf("person-%d@example.com", i)}
		if denied {
			return at.request(question, false, `"spec":{"replicas":1}`, `"spec":{"replicas":1,"paused":true}`)
		}
		return at.request(question, true, `"spec":{"replicas":1}`, `"spec":{"replicas":2}`)
	}
}

// target is what a user writes to.
type target struct{ group, resource, sub, kind, namespace, name, user string }

// request returns a question about the write, or its review.
func (a *target) request(question, allowed bool, before, after string) *review {
	groups := `["system:serviceaccounts","system:authenticated"]`
	name := fmt.Sprintf("%s of %s/%s by %s", a.kind, a.namespace, a.name, a.user)
	if question {
		return &review{name: "question: " + name, path: "/authorize", allowed: true, body: fmt.Appendf(nil,
			`{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","spec":{"user":%q,"groups":%s,"resourceAttributes":{"verb":"patch","group":%q,"version":"v1","resource":%q,"subresource":%q,"namespace":%q,"name":%q}}}`,
			a.user, groups, a.group, a.resource, a.sub, a.namespace, a.name)}
	}
	const of = `{"apiVersion":"%s/v1","kind":%q,"metadata":{"name":%q,"namespace":%q,"uid":"u","annotations":{"padding":%q}},%s}`
	padding := strings.Repeat("x", objectBytes)
	gvr := fmt.Sprintf(`{"group":%q,"version":"v1","resource":%q}`, a.group, a.resource)
	gvk := fmt.Sprintf(`{"group":%q,"version":"v1","kind":%q}`, a.group, a.kind)
	return &review{name: name, path: "/admit/granular", allowed: allowed, body: fmt.Appendf(nil,
		`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","kind":%s,"resource":%s,"requestKind":%s,"requestResource":%s,"subResource":%q,"requestSubResource":%q,"name":%q,"namespace":%q,"operation":"UPDATE","userInfo":{"username":%q,"groups":%s},"object":%s,"oldObject":%s,"dryRun":false,"options":{"apiVersion":"meta.k8s.io/v1","kind":"UpdateOptions"}}}`,
		gvk, gvr, gvk, gvr, a.sub, a.sub, a.name, a.namespace, a.user, groups,
		fmt.Sprintf(of, a.group, a.kind, a.name, a.namespace, padding, after), fmt.Sprintf(of, a.group, a.kind, a.name, a.namespace, padding, before))}
}
