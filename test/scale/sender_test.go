//go:build integration

package scale

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fieldperm/fieldperm/test/sender"
	"github.com/fieldperm/fieldperm/test/stack"
)

const (
	// connections is the number of HTTP/2 connections that share the load: three kube-apiservers with a few each.
	connections = 8
	// objectBytes is the size of each of the two objects of a review.
	objectBytes = 8 << 10
	// inFlight is the number of requests that three kube-apiservers have under way at most, with their default limits.
	inFlight = 3 * (200 + 400)
)

// load sends what reaches fieldperm.
type load struct {
	*sender.Sender
	// mix returns the next request.
	mix func(*rand.Rand) *sender.Request
}

func newLoad(t *testing.T, s *stack.Stack) *load {
	t.Helper()
	out, err := sender.New(sender.Config{URL: s.WebhookURL(), Connections: connections, UnderWay: inFlight, Connect: func() (*http.Client, error) { return s.WebhookClient() }})
	must(t, err)
	t.Cleanup(out.Close)
	return &load{out, mix()}
}

// run sends requests when they are due, until the context ends.
func (l *load) run(ctx context.Context, rate float64) *sender.Result {
	random := rand.New(rand.NewPCG(3, 4)) //nolint:gosec // The same mix each time.
	out := sender.NewResult()
	l.Run(ctx, rate, func() (*sender.Request, func(*sender.Exchange)) { return l.mix(random), out.Note })
	return out
}

// play sends requests for a phase, at least as long as the event lasts.
func (l *load) play(t *testing.T, rate float64, event func()) *sender.Result {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan *sender.Result, 1)
	go func() { result <- l.run(ctx, rate) }()
	end := time.After(*duration)
	if event != nil {
		event()
	}
	<-end
	cancel()
	return <-result
}

// judge allows a number of failures.
func judge(t *testing.T, name string, r *sender.Result, failures int) {
	t.Helper()
	t.Logf("%s: %s", name, r)
	if r.Wrong > 0 || r.Failed > failures || r.Right == 0 {
		t.Errorf("%s: %d wrong, %d failed (at most %d), %d right: %s", name, r.Wrong, r.Failed, failures, r.Right, strings.Join(r.Faults, "\n"))
	}
}

// mix returns a function that draws requests in the proportions of the traffic. Half of them are questions to /authorize: a kube-apiserver
// asks one for each write that it has no cached answer for. Every tenth review changes a field without a verb, and is denied.
func mix() func(*rand.Rand) *sender.Request {
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
	return func(random *rand.Rand) *sender.Request {
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
func (a *target) request(question, allowed bool, before, after string) *sender.Request {
	groups := `["system:serviceaccounts","system:authenticated"]`
	name := fmt.Sprintf("%s of %s/%s by %s", a.kind, a.namespace, a.name, a.user)
	if question {
		return &sender.Request{Name: "question: " + name, Path: "/authorize", Want: sender.Allowed, Body: fmt.Appendf(nil,
			`{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","spec":{"user":%q,"groups":%s,"resourceAttributes":{"verb":"patch","group":%q,"version":"v1","resource":%q,"subresource":%q,"namespace":%q,"name":%q}}}`,
			a.user, groups, a.group, a.resource, a.sub, a.namespace, a.name)}
	}
	want := sender.Denied
	if allowed {
		want = sender.Allowed
	}
	const of = `{"apiVersion":"%s/v1","kind":%q,"metadata":{"name":%q,"namespace":%q,"uid":"u","annotations":{"padding":%q}},%s}`
	padding := strings.Repeat("x", objectBytes)
	gvr := fmt.Sprintf(`{"group":%q,"version":"v1","resource":%q}`, a.group, a.resource)
	gvk := fmt.Sprintf(`{"group":%q,"version":"v1","kind":%q}`, a.group, a.kind)
	return &sender.Request{Name: name, Path: "/admit/granular", UID: "u", Want: want, Body: fmt.Appendf(nil,
		`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","kind":%s,"resource":%s,"requestKind":%s,"requestResource":%s,"subResource":%q,"requestSubResource":%q,"name":%q,"namespace":%q,"operation":"UPDATE","userInfo":{"username":%q,"groups":%s},"object":%s,"oldObject":%s,"dryRun":false,"options":{"apiVersion":"meta.k8s.io/v1","kind":"UpdateOptions"}}}`,
		gvk, gvr, gvk, gvr, a.sub, a.sub, a.name, a.namespace, a.user, groups,
		fmt.Sprintf(of, a.group, a.kind, a.name, a.namespace, padding, after), fmt.Sprintf(of, a.group, a.kind, a.name, a.namespace, padding, before))}
}
