package interlock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/singleflight"
	admissionv1 "k8s.io/api/admission/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/klog/v2"

	"github.com/fieldperm/fieldperm/internal/sample"
)

const (
	// refusalLife is how long a failed proof of a resource is remembered, so that whoever asks on and on
	// sends no canary each time.
	refusalLife = time.Second
	// renewals is how many resources are proven anew at the same time.
	renewals = 4
)

// resources are the proofs of single resources, needed where the configuration cannot be read: a
// manifest may leave out one of them.
type resources struct {
	mu      sync.Mutex
	known   map[Target]*proof
	flights singleflight.Group
}

// proof is about a target without a name: what holds for one object of a namespace holds for all.
type proof struct {
	// name is an object that a canary may be sent for, "" for CREATE.
	name  string
	until time.Time
	err   error
	// used since the last round.
	used bool
	// failed is when the webhook's error was last seen to stop a canary.
	failed time.Time
	// epoch is the interlock's at the start: whatever opens it takes every proof of a resource with it.
	epoch uint64
}

// proveResource is nil once canaries have shown, within the interval, that the operations that the verb
// allows are looked at.
func (i *Interlock) proveResource(ctx context.Context, a *authorizationv1.ResourceAttributes) error {
	target := Target{Operation: admissionv1.Update, Group: a.Group, Resource: a.Resource, Subresource: a.Subresource, Namespace: a.Namespace}.normal()
	if a.Verb == "create" {
		target.Operation = admissionv1.Create
		return i.provenFor(ctx, target, "")
	}
	if a.Name == "" {
		return errors.New("the request names no object to send a canary for")
	}
	err := i.provenFor(ctx, target, a.Name)
	if errors.Is(err, errNotFound) && a.Subresource == "" {
		// Nothing can be updated. A PUT or an apply creates it, for which create is authorized too.
		target.Operation = admissionv1.Create
		return i.provenFor(ctx, target, "")
	}
	return err
}

// provenFor looks at what is remembered, then sends canaries. The same target is proven once at a time.
func (i *Interlock) provenFor(ctx context.Context, target Target, name string) error {
	if err, ok := i.resources.fresh(target, name, i.config.Clock.Now(), i.epoch.Load()); ok {
		return err
	}
	flight := i.resources.flights.DoChan(fmt.Sprintf("%q", target), func() (any, error) {
		// Others may wait for it too: it ends by its own timeout.
		return nil, i.proveTarget(context.WithoutCancel(ctx), target, name, true)
	})
	select {
	case <-ctx.Done():
		return ctx.Err()
	case result := <-flight:
		return result.Err
	}
}

// fresh returns what is remembered of a target, and marks it as used.
func (r *resources) fresh(target Target, name string, now time.Time, epoch uint64) (answer error, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.known[target]
	if p == nil || !now.Before(p.until) || p.epoch != epoch {
		return nil, false
	}
	p.used = true
	if p.err == nil {
		p.name = name
	}
	return p.err, true
}

// proveTarget sends a canary to every server and remembers the result.
func (i *Interlock) proveTarget(ctx context.Context, target Target, name string, used bool) error {
	started, next := i.config.Clock.Now(), &proof{name: name, epoch: i.epoch.Load(), used: used}
	if before := i.resources.get(target); before != nil && before.epoch == next.epoch {
		next.failed = before.failed
	}
	mode := ModeDeny
	if next.failed.IsZero() || started.Sub(next.failed) >= failInterval {
		mode, next.failed = ModeFail, started
	}
	next.err = i.canaries(ctx, target, name, mode)
	next.until = started.Add(2 * i.config.Interval)
	if next.err != nil {
		next.until = i.config.Clock.Now().Add(refusalLife)
	}
	if errors.Is(next.err, errNotFound) {
		next = nil
	}
	i.resources.set(target, next)
	if next == nil {
		return errNotFound
	}
	if next.err != nil {
		klog.FromContext(ctx).Info("Enforcement on a resource is not proven", "group", target.Group, "resource", target.Resource, "subresource", target.Subresource, "operation", target.Operation, "err", next.err)
	}
	if errors.Is(next.err, errPassed) && i.config.Observe != nil {
		i.config.Observe(ReasonResource, next.err)
	}
	if next.err == nil && next.epoch != i.epoch.Load() {
		return errors.New("something changed while it was proven")
	}
	return next.err
}

func (r *resources) get(target Target) *proof {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.known[target]
}

// set replaces what is known of a target; nil forgets it. A use that happened meanwhile stays noted.
func (r *resources) set(target Target, next *proof) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if next == nil {
		delete(r.known, target)
		return
	}
	if before := r.known[target]; before != nil {
		next.used = next.used || before.used
	}
	r.known[target] = next
}

func (i *Interlock) canaries(ctx context.Context, target Target, name string, mode Mode) error {
	served, ok := i.config.Resources(target.Group, target.Resource)
	if !ok {
		return fmt.Errorf("%s is not served", resourceName(target))
	}
	var body map[string]any
	if target.Operation == admissionv1.Create {
		var err error
		if body, err = i.config.Sample(target.Group, target.Resource, served); err != nil {
			return fmt.Errorf("no object is known that a canary could create: %w", err)
		}
		sample.Place(body, canaryManager, target.Namespace)
	}
	servers, err := i.config.Servers()
	if err != nil {
		return err
	}
	target.Name = name
	return everywhere(ctx, servers, func(ctx context.Context, server Server) error {
		return i.config.Prober.Prove(ctx, server, target, served.Version, body, mode)
	})
}

// renew proves anew what was used since the last round, and forgets the rest. It does not wait.
func (r *resources) renew(ctx context.Context, i *Interlock) {
	type use struct {
		target Target
		name   string
	}
	var uses []use
	r.mu.Lock()
	for target, p := range r.known {
		if p.used && p.err == nil {
			p.used = false
			uses = append(uses, use{target, p.name})
		} else if !i.config.Clock.Now().Before(p.until) {
			delete(r.known, target)
		}
	}
	r.mu.Unlock()
	if len(uses) == 0 {
		return
	}
	go func() {
		var group errgroup.Group
		group.SetLimit(renewals)
		for _, u := range uses {
			group.Go(func() error {
				_, _, _ = r.flights.Do(fmt.Sprintf("%q", u.target), func() (any, error) {
					return nil, i.proveTarget(ctx, u.target, u.name, false)
				})
				return nil
			})
		}
		_ = group.Wait() // Every error is logged where it is remembered.
	}()
}

// Unproven returns why single resources are not let through, as far as it is remembered.
func (i *Interlock) Unproven() []error {
	i.resources.mu.Lock()
	defer i.resources.mu.Unlock()
	var out []error
	for _, p := range i.resources.known {
		if p.err != nil {
			out = append(out, p.err)
		}
	}
	return out
}

// Proven returns how many single resources are known to be enforced or not.
func (i *Interlock) Proven() int {
	i.resources.mu.Lock()
	defer i.resources.mu.Unlock()
	return len(i.resources.known)
}
