//go:build integration

package chain

import "fmt"

// inNamespace is a match condition.
func inNamespace(name string) string {
	return fmt.Sprintf("has(request.resourceAttributes) && request.resourceAttributes.namespace == '%s'", name)
}

const (
	// aboutFields matches only granular verbs. The marker and the generic verbs are left to the other authorizers.
	aboutFields = "request.resourceAttributes.verb.startsWith('granular:')"
	ofPayments  = "has(request.extra) && '" + teamKey + "' in request.extra && 'payments' in request.extra['" + teamKey + "']"
	erring      = "erring"
)

// inOrder are webhooks that all answer: one that is skipped, one that denies and one that allows, before the API server.
func (s *scene) inOrder() []entry {
	return []entry{
		{name: "skipped", kubeconfig: s.skipped.kubeconfig, policy: "Deny", conditions: []string{inNamespace("kube-system")}},
		{name: "protector", kubeconfig: s.protector.kubeconfig, policy: "Deny", conditions: []string{inNamespace(protected), aboutFields}},
		{name: "grantor", kubeconfig: s.grantor.kubeconfig, conditions: []string{inNamespace(granted), aboutFields, ofPayments}},
	}
}

// healthy has a webhook that is skipped, one that denies and one that allows, before the API server.
func healthy(s *scene) string {
	return chainOf(append(s.inOrder(), entry{name: inCluster})...)
}

// broken has in addition a webhook that is down under each failurePolicy, and one whose condition fails, each for a namespace of its own.
func broken(s *scene) string {
	entries := s.inOrder()
	for _, mode := range down {
		kubeconfig := map[string]string{"closed": s.closed, "failing": s.failing.kubeconfig, "hanging": s.hanging.kubeconfig}[mode]
		for _, policy := range policies {
			name := downIn(mode, policy)
			entries = append(entries, entry{
				name: name, kubeconfig: kubeconfig, policy: policy, timeout: "300ms",
				conditions: []string{inNamespace(name), aboutFields},
			})
		}
	}
	return chainOf(append(entries,
		entry{name: atTheDoor, kubeconfig: s.closed, policy: "Deny", conditions: []string{inNamespace(atTheDoor)}},
		entry{name: stuck, kubeconfig: s.hanging.kubeconfig, policy: "Deny", timeout: "30s", conditions: []string{inNamespace(stuck), aboutFields}},
		entry{name: erring, kubeconfig: s.skipped.kubeconfig, conditions: []string{inNamespace(erring) + " && " + aboutFields + " && request.extra['example.com/absent'][0] == 'x'"}},
		entry{name: inCluster},
	)...)
}

// withRBAC evaluates roles and bindings in process. It keeps no decisions that could hide a revocation: the API server is asked only about
// permissions that RBAC does not grant.
func withRBAC(*scene) string {
	return chainHead + rbacEntry + entry{name: inCluster}.String()
}
