package interlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/fieldperm/fieldperm/internal/refresh"
)

// BarriersConfig configures Barriers. All fields are required.
type BarriersConfig struct {
	Prober *Prober
	// Servers returns the kube-apiservers to ask.
	Servers Servers
	// State returns the state of the stored configuration, "" while there is none. Known returns a text for the objects that are in force here.
	State, Known func() string
	// Renew is called with a state that a server does not have after renewAfter. It must not block.
	Renew func(state string)
	// Changed is called when the result of Missing may have changed. It must not block.
	Changed func()
}

// Barriers knows which kube-apiservers have loaded the configuration for barriers as it is stored. It asks each of them by one probe for all rules, after
// each change and again and again. Make it with NewBarriers.
type Barriers struct {
	config BarriersConfig
	loop   *refresh.Loop

	mu   sync.Mutex
	seen seen
	late late // Only Run uses it.
}

// seen is the result of one round. The zero result has asked nobody.
type seen struct {
	// state and known are what the servers were asked for.
	state, known string
	// servers is how many there are. err is why it is not known that all have the rules, nil if it is.
	servers int
	err     error
}

// NewBarriers returns Barriers that have asked nobody. Run starts it.
func NewBarriers(config BarriersConfig) *Barriers {
	return &Barriers{config: config, loop: refresh.New(refresh.Timing{
		Interval: 5 * time.Second, Settle: 20 * time.Millisecond, FirstRetry: 50 * time.Millisecond, LastRetry: time.Second,
	})}
}

// ProbeAgain must be called when the configuration or the servers may have changed. It never blocks.
func (p *Barriers) ProbeAgain() { p.loop.Changed() }

// Run asks until the context ends.
func (p *Barriers) Run(ctx context.Context) { p.loop.Run(ctx, p.round, func(error) {}) }

// round asks every server once. An error requests another round soon.
func (p *Barriers) round(ctx context.Context) error {
	next := seen{state: p.config.State(), known: p.config.Known()}
	servers, err := p.config.Servers()
	answers, causes := make([]error, len(servers)), make([]error, len(servers))
	var group sync.WaitGroup
	for i, server := range servers {
		if next.state == "" {
			answers[i] = errors.New("the webhook configuration has not been written yet")
			continue
		}
		group.Go(func() {
			answer, err, cause := p.config.Prober.Loaded(ctx, server, uncoveredProbe())
			switch {
			case err != nil:
			case !answer.says(stateText(next.state)):
				err = fmt.Errorf("kube-apiserver %s: %w yet", server.Address, ErrOtherState)
			case !answer.says(knownText(next.known)):
				err = fmt.Errorf("kube-apiserver %s: has the rules, and a replica of fieldperm that it asks does not know the same objects yet: if it stays so, see that each replica can list and watch them", server.Address)
			}
			answers[i], causes[i] = err, cause
		})
	}
	group.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err == nil {
		err = worst(answers)
	}
	switch {
	case err == nil:
		p.late = late{}
	case errors.Is(err, ErrOtherState) && p.late.is(next.state, time.Now()):
		p.config.Renew(next.state)
	}
	next.servers, next.err = len(servers), err
	p.mu.Lock()
	before := p.seen
	p.seen = next
	p.mu.Unlock()
	if before.state == next.state && before.known == next.known && before.servers == next.servers && fmt.Sprint(before.err) == fmt.Sprint(next.err) {
		return err
	}
	for i, cause := range causes {
		if cause != nil {
			klog.FromContext(ctx).Error(cause, "A probe of the rules for barriers came to nothing", "server", servers[i].Address)
		}
	}
	p.config.Changed()
	return err
}

// worst returns the first error that wraps ErrOtherState, or else the first, so that the answers of the same servers give the same.
func worst(answers []error) error {
	if i := slices.IndexFunc(answers, func(err error) bool { return errors.Is(err, ErrOtherState) }); i >= 0 {
		return answers[i]
	}
	return cmp.Or(answers...)
}

// Missing returns why it is not known that every kube-apiserver has loaded the stored configuration, nil if it is known. The error wraps
// ErrOtherState if one has not. servers is how many have.
func (p *Barriers) Missing() (servers int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.seen.err != nil:
		return 0, p.seen.err
	case p.seen.servers == 0 || p.seen.state != p.config.State() || p.seen.known != p.config.Known():
		return 0, errors.New("the kube-apiservers have not been asked yet")
	}
	return p.seen.servers, nil
}
