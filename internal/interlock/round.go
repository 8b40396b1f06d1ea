package interlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"

	"github.com/fieldperm/fieldperm/generators/webhooks"
)

var errChanged = errors.New("the webhook configuration has changed and is proven anew")

// firstRetry is the delay after the first failed round. The delay doubles up to the interval.
const firstRetry = 250 * time.Millisecond

// Run proves enforcement at once, at every interval and after every change, until the context ends. Then it withdraws the
// proof. A refresh.Loop would collect changes before it handles them; here a change is proven at once.
func (i *Interlock) Run(ctx context.Context) {
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithName("proof"))
	retry := firstRetry
	for {
		started := i.config.Clock.Now()
		i.round(ctx)
		// From start to start: a slow round must end before the last proof does.
		wait := max(firstRetry, i.config.Interval-i.config.Clock.Since(started))
		if i.Status() == nil {
			retry = firstRetry
			i.resources.prune(i.config.Clock.Now())
		} else {
			wait, retry = min(wait, retry), i.later(retry)
		}
		timer := i.config.Clock.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			i.withdraw(ReasonStopping, errors.New("fieldperm is shutting down"))
			i.mu.Lock()
			i.left(nil)
			i.mu.Unlock()
			return
		case <-timer.C():
		case <-i.trigger:
			timer.Stop()
			retry = firstRetry
		}
	}
}

// later returns the delay after this one. It is bounded: doubling for minutes would overflow, and rounds would follow without a
// delay.
func (i *Interlock) later(retry time.Duration) time.Duration { return min(2*retry, i.config.Interval) }

// round runs all proofs once, then stores the proof or withdraws it.
func (i *Interlock) round(ctx context.Context) {
	started := i.config.Clock.Now()
	i.lookAtFiles()
	i.mu.Lock()
	epoch := i.epoch.Load()
	i.mu.Unlock()

	var servers map[string]*watch
	configured, reason, err := i.configured(ctx, &epoch)
	if err == nil {
		servers, reason, err = i.prove(ctx, configured)
	}
	if ctx.Err() != nil {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	switch reason {
	case ReasonProven:
		i.late = late{}
	case ReasonNotLoaded, ReasonProbeNotEnforced:
		if i.late.is(configured, i.config.Clock.Now()) {
			i.renewed = configured
		}
	default:
		// Nothing is known of what the servers have loaded.
	}
	switch {
	case err != nil:
		i.withdrawLocked(reason, err)
		return
	case epoch != i.epoch.Load():
		// The proof was withdrawn during the round. Another round has been requested.
		return
	}
	next := &state{until: started.Add(2 * i.config.Interval), servers: servers}
	if err := next.lasts(); err != nil {
		i.withdrawLocked(ReasonWatchEnded, err)
		return
	}
	i.store(next)
}

// configured returns the state of the webhook configuration, "" if it is a static manifest, or the reason why it does not enforce. A configuration that
// the watch has not delivered yet begins a new epoch, unless one has begun since.
func (i *Interlock) configured(ctx context.Context, epoch *uint64) (state string, reason Reason, err error) {
	if i.config.Configuration != nil {
		readCtx, cancel := context.WithTimeout(ctx, probeTimeout)
		defer cancel()
		configuration, err := i.config.Configuration(readCtx)
		if err != nil {
			return "", ReasonConfigurationUnread, fmt.Errorf("webhook configuration: cannot be read: see that the API server answers and that fieldperm may get it, which rbac.yaml of fieldperm-gen manifests grants (%w)", err)
		}
		if reason, err := i.static(configuration); err != nil {
			return "", reason, err
		}
		if state := webhooks.State(configuration); state == "" || state == i.renewed || i.loose.Load() {
			if configuration, err = i.inNewState(readCtx, configuration); err != nil {
				return "", ReasonConfigurationChanged, err
			}
		}
		i.mu.Lock()
		if i.epoch.Load() == *epoch {
			i.seenLocked(configuration)
			*epoch = i.epoch.Load()
		}
		i.mu.Unlock()
		state = webhooks.State(configuration)
	}
	if i.config.Manifests != nil || i.config.Configuration == nil {
		if reason, err := i.filesEnforce(); err != nil {
			return "", reason, err
		}
	}
	return state, ReasonProven, nil
}

// inNewState writes a new state into a configuration that enforces. So no version of it that does not enforce has this state.
func (i *Interlock) inNewState(ctx context.Context, c *admissionregistrationv1.ValidatingWebhookConfiguration) (*admissionregistrationv1.ValidatingWebhookConfiguration, error) {
	if i.spaced.wait(i.config.Clock.Now()) {
		return nil, fmt.Errorf("webhook configuration %q: is changed by another client again and again: find its user in the audit log", c.Name)
	}
	i.loose.Store(false)
	at := slices.IndexFunc(c.Webhooks, func(w admissionregistrationv1.ValidatingWebhook) bool { return w.Name == webhooks.GranularWebhook })
	client, _ := webhooks.ClientConfigFor(&c.Webhooks[at].ClientConfig, webhooks.GranularPath, webhooks.ProbePath) // Static has seen both.
	written, err := i.config.Write(ctx, webhooks.InState(c, client, webhooks.GranularProbed, webhooks.NewState(c)))
	switch {
	case apierrors.IsConflict(err):
		i.loose.Store(true)
		return nil, errChanged // The next round reads what another replica has written.
	case err != nil:
		i.loose.Store(true)
		return nil, fmt.Errorf("webhook configuration %q: fieldperm cannot write its webhook %q: see that fieldperm may update it, which rbac.yaml of fieldperm-gen manifests grants (%w)", c.Name, webhooks.ProbeWebhook, err)
	}
	i.spaced.wrote(i.config.Clock.Now())
	return written, nil
}

// prove returns the servers that enforce, each with a watch that was open before all else, or the reason why enforcement is not proven on all of them.
func (i *Interlock) prove(ctx context.Context, state string) (map[string]*watch, Reason, error) {
	servers, err := i.config.Servers()
	if err != nil {
		return nil, ReasonServersUnknown, err
	}
	if len(servers) == 0 {
		return nil, ReasonServersUnknown, errors.New("no kube-apiserver is known")
	}
	watches, err := i.hold(ctx, servers)
	switch {
	case errors.Is(err, errReadsNone):
		return nil, ReasonManifestsNotLoaded, err
	case err != nil:
		return nil, ReasonWatchEnded, err
	}
	if err := everywhere(ctx, servers, func(ctx context.Context, server Server) error {
		if err := i.config.Prober.Prove(ctx, server, granularProbe(), nil, ModeDeny); err != nil || state == "" {
			return err
		}
		return i.inForce(ctx, server, state)
	}); err != nil {
		switch {
		case errors.Is(err, errPassed):
			return nil, ReasonProbeNotEnforced, err
		case errors.Is(err, errNotLoaded):
			return nil, ReasonNotLoaded, err
		}
		return nil, ReasonProbeError, err
	}
	// This proof is last because it is the most expensive one.
	if i.config.Manifests != nil {
		if reason, err := i.filesInForce(ctx, servers); err != nil {
			return nil, reason, err
		}
	}
	return watches, ReasonProven, nil
}

var errNotLoaded = errors.New("has not loaded the webhook configuration as it is stored")

// inForce returns nil if a server has loaded the webhook configuration in a state.
func (i *Interlock) inForce(ctx context.Context, server Server, state string) error {
	answer, err, cause := i.config.Prober.Loaded(ctx, server, granularProbe())
	switch {
	case errors.Is(err, ErrOtherState), err == nil && !answer.says(stateText(state)):
		return fmt.Errorf("kube-apiserver %s: %w: if it stays so, see that its admission plugin ValidatingAdmissionWebhook is on, and that it can watch webhook configurations", server.Address, errNotLoaded)
	case cause != nil:
		return fmt.Errorf("%w (%w)", err, cause)
	}
	return err
}
