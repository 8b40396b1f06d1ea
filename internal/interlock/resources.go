package interlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	admissionv1 "k8s.io/api/admission/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/klog/v2"

	"github.com/fieldperm/fieldperm/internal/allowlist"
)

const (
	// refusalLife is how long a failed proof is cached, so that repeated requests do not each send a probe.
	refusalLife = time.Second
	// maxProofs bounds the cache of proofs. A target that does not fit is proven at each request.
	maxProofs = 20_000
)

// resources holds the proofs of single targets of aggregated API servers. These servers may not read the webhook configuration, so
// each target needs its own proof.
type resources struct {
	mu    sync.Mutex
	known map[Target]*proof
	// failed has the groups for which an error of the webhook was seen to stop a probe, each with the epoch of that probe.
	failed  map[string]uint64
	flights singleflight.Group
}

// proof is the cached result for a target.
type proof struct {
	// until is when the result expires: after one interval, because no round renews it.
	until time.Time
	err   error
	// epoch is the interlock's epoch when the proof started. A new epoch makes every proof invalid.
	epoch uint64
}

// proveResource returns nil if probes have shown, within the interval, that admission sees the operation that the verb authorizes
// on the object.
func (i *Interlock) proveResource(ctx context.Context, a *authorizationv1.ResourceAttributes) error {
	target := Target{Operation: admissionv1.Update, Group: a.Group, Resource: a.Resource, Subresource: a.Subresource, Namespace: a.Namespace, Name: a.Name}.normal()
	// A review without a version does not come from a request. The answer is about the preferred version.
	served, _ := i.config.Resources(a.Group, a.Resource)
	if target.Version = a.Version; a.Version == "" || a.Version == "*" {
		target.Version = served.Version
	}
	if !slices.Contains(served.Versions, target.Version) || !target.addressable() {
		return errors.New("the request names what no object can be called")
	}
	create := target
	create.Operation, create.Name = admissionv1.Create, ""
	if a.Verb == "create" {
		return i.provenFor(ctx, create)
	}
	if a.Name == "" {
		return errors.New("the request names no object to send a probe for")
	}
	err := i.provenFor(ctx, target)
	if errors.Is(err, ErrNotFound) && a.Subresource == "" {
		// There is no object to update. A PUT or an apply would create it, and then create is authorized too.
		return i.provenFor(ctx, create)
	}
	return err
}

// provenFor returns the cached result, or sends probes. The same target is proven only once at a time.
func (i *Interlock) provenFor(ctx context.Context, target Target) error {
	if err, known := i.fresh(target); known {
		return err
	}
	flight := i.resources.flights.DoChan(fmt.Sprintf("%q", target), func() (any, error) {
		// Other callers may wait for this proof too, so it ends by its own timeout and not by ctx.
		return i.proveTarget(context.WithoutCancel(ctx), target), nil
	})
	select {
	case <-ctx.Done():
		return ctx.Err()
	case result := <-flight:
		p, ok := result.Val.(*proof)
		if !ok {
			return errors.New("came to no result")
		}
		return i.counts(p)
	}
}

// counts returns nil if the proof succeeded, has not expired, and started in the current epoch.
func (i *Interlock) counts(p *proof) error {
	switch {
	case p.err != nil:
		return p.err
	case p.epoch != i.epoch.Load():
		return errors.New("something changed while it was proven")
	case !i.config.Clock.Now().Before(p.until):
		return errors.New("the proof took longer than it counts")
	}
	return nil
}

// fresh returns the cached result for a target. known is false if there is none.
func (i *Interlock) fresh(target Target) (answer error, known bool) {
	i.resources.mu.Lock()
	defer i.resources.mu.Unlock()
	p := i.resources.known[target]
	if p == nil || p.epoch != i.epoch.Load() || !i.config.Clock.Now().Before(p.until) {
		return nil, false
	}
	return p.err, true
}

// proveTarget sends a probe to every server and caches the result. It does not cache the result that an object does not exist.
func (i *Interlock) proveTarget(ctx context.Context, target Target) *proof {
	started := i.config.Clock.Now()
	next := &proof{epoch: i.epoch.Load(), until: started.Add(i.config.Interval)}
	// ModeFail is used once for each group: the server of a group uses one configuration, which is known to be unchanged.
	mode := ModeFail
	i.resources.mu.Lock()
	if epoch, tried := i.resources.failed[target.Group]; tried && epoch == next.epoch {
		mode = ModeDeny
	}
	i.resources.mu.Unlock()
	switch next.err = i.sendProbes(ctx, target, mode); {
	case next.err != nil:
		next.until = i.config.Clock.Now().Add(refusalLife)
	case mode == ModeFail:
		i.resources.mu.Lock()
		i.resources.failed[target.Group] = next.epoch
		i.resources.mu.Unlock()
	}
	if errors.Is(next.err, ErrNotFound) {
		i.resources.forget(target)
		return next
	}
	i.resources.remember(target, next)
	if next.err != nil {
		klog.FromContext(ctx).Info("Enforcement on a resource is not proven", "group", target.Group, "resource", target.Resource, "subresource", target.Subresource, "operation", target.Operation, "err", next.err)
	}
	if errors.Is(next.err, errPassed) && i.config.Observe != nil {
		i.config.Observe(ReasonResource, next.err)
	}
	return next
}

func (r *resources) remember(target Target, p *proof) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.known[target]; known || len(r.known) < maxProofs {
		r.known[target] = p
	}
}

func (r *resources) forget(target Target) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.known, target)
}

// prune removes the results that are not valid any more.
func (r *resources) prune(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for target, p := range r.known {
		if !now.Before(p.until) {
			delete(r.known, target)
		}
	}
}

func (i *Interlock) sendProbes(ctx context.Context, target Target, mode Mode) error {
	served, ok := i.config.Resources(target.Group, target.Resource)
	if !ok {
		return fmt.Errorf("%s is not served", resourceName(target))
	}
	var body map[string]any
	if target.Operation == admissionv1.Create {
		body = minimal(target, served)
	}
	servers, err := i.config.Servers()
	if err != nil {
		return err
	}
	return everywhere(ctx, servers, func(ctx context.Context, server Server) error {
		return i.config.Prober.Prove(ctx, server, target, body, mode)
	})
}

// minimal returns an object without any field. If a server refuses it before it calls the webhook, nothing is proven, and the
// creation is not allowed.
func minimal(target Target, served allowlist.Served) map[string]any {
	metadata := map[string]any{"name": Name}
	if target.Namespace != "" {
		metadata["namespace"] = target.Namespace
	}
	version := target.Version
	if target.Group != "" {
		version = target.Group + "/" + version
	}
	return map[string]any{"apiVersion": version, "kind": served.Kind, "metadata": metadata}
}

// Unproven returns why single resources are not allowed, as far as results are cached.
func (i *Interlock) Unproven() []error {
	i.resources.mu.Lock()
	defer i.resources.mu.Unlock()
	var out []error
	for _, p := range i.resources.known {
		if p.err != nil && i.config.Clock.Now().Before(p.until) {
			out = append(out, p.err)
		}
	}
	return out
}

// Proven returns how many proofs of single targets are cached.
func (i *Interlock) Proven() int {
	i.resources.mu.Lock()
	defer i.resources.mu.Unlock()
	return len(i.resources.known)
}
