package probe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/fieldperm/fieldperm/internal/allowlist"
	"github.com/fieldperm/fieldperm/internal/interlock"
	"github.com/fieldperm/fieldperm/internal/refresh"
	"github.com/fieldperm/fieldperm/schema/endpoint"
)

const (
	// renewal is how long a refusal stays valid if nothing changes.
	renewal = 10 * time.Minute
	// perSecond and atOnce bound the rate of probes of this process, for any number of endpoints and servers.
	perSecond, atOnce = 20, 40
)

func timing() refresh.Timing {
	return refresh.Timing{Interval: 15 * time.Second, Settle: 100 * time.Millisecond, FirstRetry: 500 * time.Millisecond, LastRetry: 15 * time.Second}
}

// Barrier is one barrier to probe.
type Barrier struct {
	// Name is the barrier's name in schema.Schema.Barriers, or that of a policy in admission.Reviewer.Denies.
	Name string
	// Operation is DELETE or CONNECT. It is empty for writes: then CREATE and UPDATE are tried, which a rule has together.
	Operation interlock.Operation
	// Endpoints are the endpoints that write a field behind the barrier, or whose requests the policy denies.
	Endpoints []endpoint.Endpoint
}

// Config configures Probes. All fields except Learned are required.
type Config struct {
	Prober *interlock.Prober
	// Servers returns the kube-apiservers to probe.
	Servers interlock.Servers
	// Served returns the resources that they serve, nil while these are not known.
	Served func() *allowlist.List
	// Objects has the objects that are known to exist.
	Objects *Objects
	// Barriers returns the barriers whose rules are in force. Version returns the version of the rules.
	Barriers func() []Barrier
	Version  func() string
	// Unasked returns a namespace that the webhook excludes, "" for none.
	Unasked func() string
	// Changed is called when the result of Of may have changed. It must not block.
	Changed func()
	Clock   clock.PassiveClock
}

// Probes probes barriers. Make it with New.
type Probes struct {
	config Config
	loop   *refresh.Loop
	limit  flowcontrol.RateLimiter

	mu sync.Mutex
	// servers are the servers of the last pass, known is its allowlist. Both are nil before the first pass.
	servers []string
	known   *allowlist.List
	results map[place]result
}

// request is an endpoint with the operation of a Barrier.
type request struct {
	endpoint.Ref
	operation interlock.Operation
}

// place is a request to a kube-apiserver.
type place struct {
	server string
	request
}

// result is the result of the last probe. The zero result proves nothing.
type result struct {
	at      time.Time
	version string
	// holds are the barriers that refused the write.
	holds []string
	err   error
}

// New returns Probes. Run starts them.
func New(config Config) *Probes {
	p := &Probes{config: config, loop: refresh.New(timing()), limit: flowcontrol.NewTokenBucketRateLimiter(perSecond, atOnce), results: map[place]result{}}
	config.Objects.mu.Lock()
	config.Objects.learned = p.Changed
	config.Objects.mu.Unlock()
	return p
}

// Changed must be called when barriers, rules, servers or objects may have changed. It never blocks.
func (p *Probes) Changed() { p.loop.Changed() }

// Run probes until the context ends.
func (p *Probes) Run(ctx context.Context) {
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithName("probe"))
	p.loop.Run(ctx, p.pass, func(err error) {
		klog.FromContext(ctx).V(2).Info("Barriers are probed again soon", "reason", err.Error())
	})
}

// pass sends the probes that are due. An error requests another pass soon.
func (p *Probes) pass(ctx context.Context) error {
	list := p.config.Served()
	servers, err := p.config.Servers()
	if err != nil || list == nil {
		return errors.Join(errors.New("servers or what they serve are not known"), err)
	}
	version := p.config.Version()
	wanted, endpoints := map[request][]string{}, map[request]endpoint.Endpoint{}
	for _, b := range p.config.Barriers() {
		for _, e := range b.Endpoints {
			at := requestOf(&b, &e)
			wanted[at], endpoints[at] = append(wanted[at], b.Name), e
		}
	}
	p.prepare(list, servers, wanted)
	group, ctx := errgroup.WithContext(ctx)
	var behind bool
	var mu sync.Mutex
	for _, server := range servers {
		group.Go(func() error {
			for _, at := range inOrder(endpoints) {
				e := endpoints[at]
				if !served(list, &e) || !p.due(place{server.Address, at}, version, wanted[at]) {
					continue
				}
				if err := p.limit.Wait(ctx); err != nil {
					return err
				}
				next := result{at: p.config.Clock.Now(), version: version}
				next.holds, next.err = p.probe(ctx, server, list, &e, at.operation, wanted[at])
				if ctx.Err() != nil {
					return ctx.Err()
				}
				p.note(ctx, place{server.Address, at}, next)
				if next.err == nil && len(next.holds) < len(wanted[at]) {
					mu.Lock()
					behind = true // another replica answered, which does not know these barriers yet
					mu.Unlock()
				}
			}
			return nil
		})
	}
	err = group.Wait()
	p.config.Changed()
	if err == nil && behind {
		return errors.New("a replica does not know a barrier yet")
	}
	return err
}

func requestOf(b *Barrier, e *endpoint.Endpoint) request {
	return request{endpoint.Ref{Group: e.Group, Resource: e.Resource, Subresource: e.Subresource}, b.Operation}
}

// prepare records the servers and the allowlist of this pass, and removes results that are not about them.
func (p *Probes) prepare(list *allowlist.List, servers []interlock.Server, wanted map[request][]string) {
	addresses := interlock.Addresses(servers)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.servers, p.known = addresses, list
	for at := range p.results {
		if wanted[at.request] == nil || !slices.Contains(addresses, at.server) {
			delete(p.results, at)
		}
	}
}

// due reports whether a place must be probed. A failed probe is repeated in each pass.
func (p *Probes) due(at place, version string, barriers []string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := p.results[at]
	return last.err != nil || last.version != version || p.config.Clock.Since(last.at) >= renewal ||
		slices.ContainsFunc(barriers, func(barrier string) bool { return !slices.Contains(last.holds, barrier) })
}

func (p *Probes) note(ctx context.Context, at place, next result) {
	p.mu.Lock()
	before := p.results[at]
	p.results[at] = next
	p.mu.Unlock()
	if errors.Is(next.err, interlock.ErrUnbarred) && !errors.Is(before.err, interlock.ErrUnbarred) {
		klog.FromContext(ctx).Error(next.err, "A barrier does not hold")
	}
}

// probe tries the possible writes until one shows whether barriers are enforced.
func (p *Probes) probe(ctx context.Context, server interlock.Server, list *allowlist.List, e *endpoint.Endpoint, operation interlock.Operation, barriers []string) ([]string, error) {
	unasked := p.config.Unasked()
	err := fmt.Errorf("%s: %w", nameOf(e, operation), unsent(e, list, operation))
	for _, w := range writes(e, operation, list, p.config.Objects, namespaceBut(unasked)) {
		resource, name := w.object()
		if unasked != "" && name.Namespace == unasked && resource.Resource != "namespaces" {
			p.config.Objects.Forget(resource, name) // the webhook excludes it
			continue
		}
		holds, failure := p.config.Prober.Bars(ctx, server, w.target, w.body, barriers)
		switch {
		case failure == nil || errors.Is(failure, interlock.ErrUnbarred):
			return holds, failure
		case errors.Is(failure, interlock.ErrNotFound):
			p.config.Objects.Forget(resource, name)
		default:
			err = failure
		}
	}
	return nil, err
}

// inOrder returns the requests in the order of their names.
func inOrder(endpoints map[request]endpoint.Endpoint) []request {
	return slices.SortedFunc(maps.Keys(endpoints), func(a, b request) int {
		return cmp.Or(
			cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Subresource, b.Subresource), cmp.Compare(a.operation, b.operation),
		)
	})
}
