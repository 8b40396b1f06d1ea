package tighten

import (
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/client-go/kubernetes/scheme"
)

const (
	escalateVerb = "escalate"
	bindVerb     = "bind"
	// constrained begins the verbs of constrained impersonation.
	constrained = "impersonate:"
	userExtras  = "userextras"
)

// special are verbs that kube-apiserver asks about besides those of requests, with the resources on which it does. They write no object, so
// they stay with a subject that loses "*".
var special = []struct {
	verbs, groups, resources []string
}{
	// A rule for Roles and for their bindings (pkg/registry/rbac).
	{[]string{bindVerb, escalateVerb}, []string{rbacv1.GroupName}, []string{"roles", "clusterroles"}},
	// Impersonation (k8s.io/apiserver/pkg/endpoints/filters/impersonation). An extra is a subresource of userextras.
	{[]string{"impersonate"}, []string{"", authenticationv1.GroupName}, []string{"users", "groups", "serviceaccounts", "uids", userExtras}},
	{[]string{constrained + "user-info", constrained + "serviceaccount", constrained + "arbitrary-node", constrained + "associated-node"},
		[]string{authenticationv1.GroupName}, []string{"users", "groups", "serviceaccounts", "nodes", "uids", userExtras}},
	// Signers of certificates (plugin/pkg/admission/certificates).
	{[]string{"approve", "sign", "attest"}, []string{certificatesv1.GroupName}, []string{"signers"}},
	// Tokens for admission webhooks (pkg/registry/core/serviceaccount).
	{[]string{"attest"}, []string{authenticationv1.GroupName}, []string{authenticationv1.AttestationAdmissionReviewAPIGroups}},
	// The status of devices (pkg/registry/resource).
	{[]string{resourcev1.VerbPrefixAssociatedNode + updateVerb, resourcev1.VerbPrefixAssociatedNode + patchVerb, resourcev1.VerbPrefixArbitraryNode + updateVerb, resourcev1.VerbPrefixArbitraryNode + patchVerb},
		[]string{resourcev1.GroupName}, []string{"resourceclaims/" + resourcev1.SubresourceDriver}},
	// Requests of nodes (plugin/pkg/admission/noderestriction). The resource is an audience or a signer, which only "*" covers here.
	{[]string{"request-serviceaccounts-token-audience"}, []string{""}, []string{rbacv1.ResourceAll}},
	{[]string{"request-serviceaccounts-podcertificate-signer"}, []string{certificatesv1.GroupName}, []string{rbacv1.ResourceAll}},
}

// otherVerbs are what is left of the verb "*" of a rule about resources: all verbs that kube-apiserver asks about, except update, patch and
// granular verbs.
func otherVerbs(rule *rbacv1.PolicyRule) []string {
	out := []string{"get", "list", "watch", createVerb, "delete", "deletecollection", "unsafe-delete-ignore-read-errors"}
	for _, s := range special {
		if aboutAny(rule, s.groups, s.resources) {
			out = append(out, s.verbs...)
		}
	}
	if slices.ContainsFunc(rule.APIGroups, isForeign) {
		out = append(out, "use") // The most common verb of other programs.
	}
	return out
}

// aboutAny reports whether a rule is about one of the resources of one of the groups.
func aboutAny(rule *rbacv1.PolicyRule, groups, resources []string) bool {
	for _, group := range groups {
		for _, name := range resources {
			if matches(rule, Resource{group, name}) {
				return true
			}
			// A rule names the extras of a user one by one.
			if name == userExtras && slices.Contains(rule.APIGroups, group) && slices.ContainsFunc(rule.Resources, func(of string) bool { return strings.HasPrefix(of, userExtras+"/") }) {
				return true
			}
		}
	}
	return false
}

// isForeign reports whether a group of a rule is not one of kube-apiserver. Other programs may ask about verbs of their own there.
func isForeign(group string) bool {
	switch group {
	case "apiextensions.k8s.io", "apiregistration.k8s.io":
		return false
	}
	return group == rbacv1.APIGroupAll || !scheme.Scheme.IsGroupRegistered(group)
}

// impersonates reports whether grants let their holder use constrained impersonation.
func impersonates(grants []Grant) bool {
	return slices.ContainsFunc(grants, func(g Grant) bool {
		return slices.ContainsFunc(g.Rules, func(rule rbacv1.PolicyRule) bool {
			return slices.ContainsFunc(rule.Verbs, func(verb string) bool { return strings.HasPrefix(verb, constrained) }) ||
				slices.Contains(rule.Verbs, rbacv1.VerbAll) && aboutAny(&rule, []string{authenticationv1.GroupName}, []string{"users", "groups", "serviceaccounts", "nodes"})
		})
	})
}
