package interlock

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	admissionv1 "k8s.io/api/admission/v1"
	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/fieldperm/fieldperm/schema/endpoint"
)

// Each round proves that admission sees CREATE and UPDATE. Only conditions allow deletions and connections to Pods, and other policies in
// a cluster often refuse these in kube-system, also to probes. So they have proofs of their own: one for each server since the proof was last
// withdrawn. Without one, no deletion or connection is let through, and other requests are.

// shown is what probes have shown of one server since the proof was last withdrawn.
type shown struct {
	// fails means that an error of the webhook stops a write.
	fails bool
	// sees has further operations that admission sees.
	sees map[Operation]bool
}

// furtherProbes returns a probe of each operation that not every round proves. The connection is to a Pod that does not exist, because such a
// request cannot be a dry run.
func furtherProbes() []Target {
	return []Target{
		{Operation: admissionv1.Delete, Version: "v1", Resource: "configmaps", Namespace: "kube-system", Name: updateProbe().Name},
		{Operation: admissionv1.Connect, Version: "v1", Resource: "pods", Subresource: "exec", Namespace: "kube-system", Name: Name},
	}
}

// operations is the result of the probes of one round.
type operations struct {
	mu sync.Mutex
	// shown has the servers that were probed. missing has why an operation is not proven on one of them.
	shown   map[string]shown
	missing map[Operation]error
}

// proveFurther sends the probes of further operations that are still missing for a server. An error means that admission does not see one of
// them, although the configuration says so.
func (i *Interlock) proveFurther(ctx context.Context, server Server, out *operations) error {
	i.mu.Lock()
	sees := maps.Clone(i.shown[server.Address].sees)
	i.mu.Unlock()
	if sees == nil {
		sees = map[Operation]bool{}
	}
	for _, target := range furtherProbes() {
		if sees[target.Operation] {
			continue
		}
		err := i.config.Prober.TryToProve(ctx, server, target)
		if errors.Is(err, errPassed) {
			return err
		}
		sees[target.Operation] = err == nil
		if err != nil {
			out.mu.Lock()
			out.missing[target.Operation] = fmt.Errorf("no %s is let through: %w", target.Operation, err)
			out.mu.Unlock()
		}
	}
	out.mu.Lock()
	defer out.mu.Unlock()
	out.shown[server.Address] = shown{fails: true, sees: sees}
	return nil
}

// proven returns why it is not proven that admission sees the operation of a request. A state without an error proves CREATE and UPDATE.
func (s *state) proven(a *authorizationv1.ResourceAttributes) error {
	operation := operationOf(a)
	if operation == admissionv1.Create || operation == admissionv1.Update || slices.Contains(s.further, operation) {
		return nil
	}
	return fmt.Errorf("%s is not proven", operation)
}

// operationOf returns the admission operation of a request, "" if it is none that /authorize may allow.
func operationOf(a *authorizationv1.ResourceAttributes) Operation {
	switch {
	case a.Verb == "create" && endpoint.IsConnection(a.Group, a.Resource, a.Subresource):
		return admissionv1.Connect
	case a.Verb == "create":
		return admissionv1.Create
	case a.Verb == "update", a.Verb == "patch":
		return admissionv1.Update
	case a.Verb == "delete", a.Verb == "deletecollection":
		return admissionv1.Delete
	}
	return ""
}
