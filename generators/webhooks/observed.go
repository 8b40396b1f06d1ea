package webhooks

import (
	"slices"
	"strconv"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
)

// Observed says which requests the webhooks of ObservedConfiguration receive.
type Observed struct {
	// Users and Groups are the subjects of observations, Resources what is observed of them.
	Users, Groups []string
	Resources     []v1alpha1.ResourceRule
	// Tried are the rules for sets that do not refuse writes.
	Tried []v1alpha1.ResourceRule
	// Everything means that the webhooks receive the requests of all users and resources, if there is anything to observe or to try. Then
	// the configuration has no text of an observation or set.
	Everything bool
}

// These are the limits of what API servers are told. An API server refuses the whole configuration if one text in it is too long, and skips
// a webhook whose match condition costs too much. Above them fieldperm receives more requests, and leaves out those it has no use for.
const (
	// maxCondition bounds a match condition in bytes. API servers do not compile one with more than 100,000 characters.
	maxCondition = 32 << 10
	// maxGroups bounds the groups in it: an evaluation compares each with each group of the user.
	maxGroups = 64
	// maxRules bounds the names in the rules of a webhook in bytes. etcd stores objects of up to 1.5 MB.
	maxRules = 128 << 10
)

// ObservedConfiguration returns the configuration whose webhooks refuse nothing: an API server that cannot call them lets the write pass.
// client returns how it calls a path.
func ObservedConfiguration(client func(path string) admissionregistrationv1.WebhookClientConfig, o Observed) *admissionregistrationv1.ValidatingWebhookConfiguration {
	out := newConfiguration(ObservedName)
	out.Labels = map[string]string{NameLabel: RESTName}
	if rules := withSubresources(o.Resources); len(rules) > 0 && len(o.Users)+len(o.Groups) > 0 {
		var conditions []admissionregistrationv1.MatchCondition
		if condition := isOneOf(o.Users, o.Groups); condition != "" && !o.Everything {
			conditions = append(conditions, admissionregistrationv1.MatchCondition{Name: "is-observed", Expression: condition})
		}
		one := webhook(ObservationsWebhook, client(ObservedPath), bounded(rules, o.Everything), conditions...)
		for i := range one.Rules {
			// Granular verbs take the place of update and patch, so no other operation shows a verb to grant.
			one.Rules[i].Operations = []admissionregistrationv1.OperationType{admissionregistrationv1.Update}
		}
		out.Webhooks = append(out.Webhooks, lenient(one))
	}
	if len(o.Tried) > 0 {
		reach := client(TriedPath)
		out.Webhooks = append(out.Webhooks, lenient(webhook(TrialsWebhook, reach, bounded(o.Tried, o.Everything), uncoveredConditions(namespaceOf(reach))...)))
	}
	return out
}

// lenientTimeoutSeconds bounds how long a write waits for an observation.
const lenientTimeoutSeconds = 3

func lenient(w admissionregistrationv1.ValidatingWebhook) admissionregistrationv1.ValidatingWebhook {
	ignore, timeout := admissionregistrationv1.Ignore, int32(lenientTimeoutSeconds)
	w.FailurePolicy, w.TimeoutSeconds = &ignore, &timeout
	return w
}

// withSubresources returns webhook rules for resources that stand for their subresources, too.
func withSubresources(list []v1alpha1.ResourceRule) []v1alpha1.ResourceRule {
	r := rules{}
	for _, rule := range list {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				r.add(group, resource)
				if resource == "*" {
					r.add(group, "*/*")
				} else if !strings.Contains(resource, "/") {
					r.add(group, resource+"/*")
				}
			}
		}
	}
	return r.list()
}

// bounded returns the rules, or one for everything if they are too long for an API server.
func bounded(list []v1alpha1.ResourceRule, everything bool) []v1alpha1.ResourceRule {
	size := 0
	for _, rule := range list {
		for _, name := range slices.Concat(rule.APIGroups, rule.Resources) {
			size += len(name)
		}
	}
	if everything || size > maxRules {
		return []v1alpha1.ResourceRule{{APIGroups: []string{"*"}, Resources: []string{"*/*"}}}
	}
	return list
}

// isOneOf returns the match condition for users and members of groups, "" if it is too long or too expensive for an API server.
func isOneOf(users, groups []string) string {
	users, groups = slices.Compact(slices.Sorted(slices.Values(users))), slices.Compact(slices.Sorted(slices.Values(groups)))
	quoted := func(names []string) string {
		texts := make([]string, len(names))
		for i, name := range names {
			texts[i] = strconv.Quote(name)
		}
		return "[" + strings.Join(texts, ", ") + "]"
	}
	if len(groups) > maxGroups {
		return ""
	}
	var out []string
	if len(users) > 0 {
		out = append(out, "request.userInfo.username in "+quoted(users))
	}
	if len(groups) > 0 {
		out = append(out, "has(request.userInfo.groups) && request.userInfo.groups.exists(g, g in "+quoted(groups)+")")
	}
	if out := strings.Join(out, " || "); len(out) <= maxCondition {
		return out
	}
	return ""
}
