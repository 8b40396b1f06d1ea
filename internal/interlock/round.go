package interlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/klog/v2"
)

// firstRetry is the delay after the first failed round. The delay doubles up to the interval.
const firstRetry = 250 * time.Millisecond

// Run proves enforcement at once, at every interval and after every change, until the context ends. Then it withdraws the
// proof. A refresh.Loop would collect changes before it handles them; here a change is proven at once.
func (i *Interlock) Run(ctx context.Context) {
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithName("interlock"))
	retry := firstRetry
	for {
		i.round(ctx)
		wait := i.config.Interval
		if i.Status() == nil {
			retry = firstRetry
			i.resources.prune(i.config.Clock.Now())
		} else {
			wait, retry = min(wait, max(retry, i.settling())), i.later(retry)
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

// settling returns how long the configuration still takes to settle.
func (i *Interlock) settling() time.Duration {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.notBefore.Sub(i.config.Clock.Now())
}

// round runs all proofs once, then stores the proof or withdraws it.
func (i *Interlock) round(ctx context.Context) {
	started := i.config.Clock.Now()
	i.lookAtFiles()
	i.mu.Lock()
	epoch := i.epoch.Load()
	i.mu.Unlock()

	servers, seen, reason, err := i.prove(ctx)
	if ctx.Err() != nil {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case err != nil:
		i.withdrawLocked(reason, err)
		return
	case epoch != i.epoch.Load():
		// The proof was withdrawn during the round. Another round has been requested.
		return
	case started.Before(i.notBefore):
		i.withdrawLocked(ReasonSettling, errors.New("the webhook configuration is new: it is given time to reach every kube-apiserver"))
		return
	}
	i.shown = seen.shown
	next := &state{until: started.Add(2 * i.config.Interval), servers: servers}
	if err := next.lasts(); err != nil {
		i.withdrawLocked(ReasonWatchEnded, err)
		return
	}
	for _, probe := range furtherProbes() {
		if err := seen.missing[probe.Operation]; err != nil {
			next.missing = append(next.missing, err)
		} else {
			next.further = append(next.further, probe.Operation)
		}
	}
	i.store(next)
}

// prove returns the servers that enforce, each with a watch that was open before all else, and what probes have shown of them, or the reason
// why enforcement is not proven on all servers.
func (i *Interlock) prove(ctx context.Context) (map[string]*watch, *operations, Reason, error) {
	if i.config.Configuration != nil {
		readCtx, cancel := context.WithTimeout(ctx, probeTimeout)
		defer cancel()
		configuration, err := i.config.Configuration(readCtx)
		if err != nil {
			return nil, nil, ReasonConfigurationUnread, fmt.Errorf("webhook configuration: cannot be read: see that the API server answers and that fieldperm may get it, which rbac.yaml of fieldperm-gen manifests grants (%w)", err)
		}
		i.seen(configuration)
		if reason, err := i.static(configuration); err != nil {
			return nil, nil, reason, err
		}
	}
	if i.config.Manifests != nil || i.config.Configuration == nil {
		if reason, err := i.filesEnforce(); err != nil {
			return nil, nil, reason, err
		}
	}
	servers, err := i.config.Servers()
	if err != nil {
		return nil, nil, ReasonServersUnknown, err
	}
	if len(servers) == 0 {
		return nil, nil, ReasonServersUnknown, errors.New("no kube-apiserver is known")
	}
	watches, err := i.hold(ctx, servers)
	if err != nil {
		return nil, nil, ReasonWatchEnded, err
	}
	seen := &operations{shown: map[string]shown{}, missing: map[Operation]error{}}
	if err := everywhere(ctx, servers, func(ctx context.Context, server Server) error {
		if err := i.config.Prober.Prove(ctx, server, updateProbe(), nil, i.mode(server)); err != nil {
			return err
		}
		if err := i.config.Prober.Prove(ctx, server, createProbe(), map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": Name, "namespace": createProbe().Namespace},
		}, ModeDeny); err != nil {
			return err
		}
		return i.proveFurther(ctx, server, seen)
	}); err != nil {
		if errors.Is(err, errPassed) {
			return nil, nil, ReasonProbeNotEnforced, err
		}
		return nil, nil, ReasonProbeError, err
	}
	// This proof is last because it is the most expensive one.
	if i.config.Manifests != nil {
		if reason, err := i.filesInForce(ctx, servers); err != nil {
			return nil, nil, reason, err
		}
	}
	return watches, seen, ReasonProven, nil
}

// mode returns the mode of the next probe to a server. ModeFail is used once for each server, because each use is a 500 in its
// metrics.
func (i *Interlock) mode(server Server) Mode {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.shown[server.Address].fails {
		return ModeDeny
	}
	return ModeFail
}

// updateProbe returns the target of an update: an object that every kube-apiserver creates when it starts.
func updateProbe() Target {
	return Target{Operation: admissionv1.Update, Version: "v1", Resource: "configmaps", Namespace: "kube-system", Name: "extension-apiserver-authentication"}
}

func createProbe() Target {
	return Target{Operation: admissionv1.Create, Version: "v1", Resource: "configmaps", Namespace: "kube-system"}
}
