package webhooks

import (
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/fieldperm/fieldperm/api/v1alpha1"
)

// Operations are the operations that a rule for barriers has together. The zero value has none.
type Operations string

const (
	// Writes are CREATE and UPDATE. A barrier on a field needs both.
	Writes Operations = "writes"
	// Deletions are DELETE, of one object and of a collection. Only a policy that denies deletions needs them.
	Deletions Operations = "deletions"
	// Connects are CONNECT. Only a policy that denies connections to Pods needs them.
	Connects Operations = "connections"
)

// everyOperations has all Operations, in the order of rules.
var everyOperations = []Operations{Writes, Deletions, Connects}

// types returns the operations as the API server knows them.
func (o Operations) types() []admissionregistrationv1.OperationType {
	switch o {
	case Writes:
		return []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update}
	case Deletions:
		return []admissionregistrationv1.OperationType{admissionregistrationv1.Delete}
	case Connects:
		return []admissionregistrationv1.OperationType{admissionregistrationv1.Connect}
	}
	return nil
}

// OperationsOf returns the Operations that a webhook rule with these operations has as a whole.
func OperationsOf(types []admissionregistrationv1.OperationType) []Operations {
	if slices.Contains(types, admissionregistrationv1.OperationAll) {
		return slices.Clone(everyOperations)
	}
	var out []Operations
	for _, o := range everyOperations {
		if !slices.ContainsFunc(o.types(), func(one admissionregistrationv1.OperationType) bool { return !slices.Contains(types, one) }) {
			out = append(out, o)
		}
	}
	return out
}

// On returns rules for the operations on resources.
func (o Operations) On(resources []v1alpha1.ResourceRule) []Rule {
	out := make([]Rule, 0, len(resources))
	for _, r := range resources {
		out = append(out, Rule{Operations: o, ResourceRule: r})
	}
	return out
}

// Rule is a rule of the webhook for barriers, which holds for every version and scope. The zero Rule matches nothing.
type Rule struct {
	Operations Operations
	v1alpha1.ResourceRule
}

// rendered returns the rules in the form of the API server.
func rendered(rules []Rule) []admissionregistrationv1.RuleWithOperations {
	var out []admissionregistrationv1.RuleWithOperations
	for _, rule := range rules {
		scope := admissionregistrationv1.AllScopes
		out = append(out, admissionregistrationv1.RuleWithOperations{
			Operations: rule.Operations.types(),
			Rule:       admissionregistrationv1.Rule{APIGroups: rule.APIGroups, APIVersions: []string{"*"}, Resources: rule.Resources, Scope: &scope},
		})
	}
	return out
}
